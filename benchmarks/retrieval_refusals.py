"""How many questions are answered that the documents answer, and how many that they do not: with no key, in percent.

    python -m benchmarks.retrieval_refusals --sets FOLDER [--documents FOLDER --questions FILE] [--each 400] [--choose]

`--sets` holds one folder per set, as `retrieval_languages.py` takes them. The paragraphs of a set are parted in two
halves, each asked questions of its own half and of the other: the same subjects' neighbours, the hardest strangers
there are. `--documents` and `--questions` are those of `retrieval_quality.py`; they and the samples are asked the
everyday questions of `everyday_questions.txt`, too, which they have nothing on. A question counts as answered when
the evidence of `retrieve_context` is "answered".

Every question is of the tuning or of the held-out half, by a hash of its text. `--choose` weighs the share of the words
against the margin of the similarity again, by the sets' tuning half alone: what answers most of the own questions less
what it answers of the others.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from uuid import UUID

from benchmarks import retrieval_quality
from benchmarks.database import temporary_database
from benchmarks.retrieval_languages import EMBEDDER, TENANT, fill, read
from rag.profiles import HR
from rag.providers.registry import Providers
from rag.retrieval.evidence import RULE
from rag.retrieval.retriever import Retriever
from rag.samples import SAMPLES
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role
from tests.retrieval.shelf import Shelf
from tests.retrieval.test_samples import BENEFITS, HANDBOOK, KOREAN, VERLOF

EVERYDAY = (Path(__file__).parent / "everyday_questions.txt").read_text("utf-8").splitlines()
HALVES = ("tuning", "held-out")
MARGIN_WEIGHTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
LEAST_SHARES = [round(0.40 + 0.01 * step, 2) for step in range(31)]
#: Its halves share articles, so that strangers are none.
SHARED_ARTICLES = "squad_it"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question that was asked of documents that answer it or not."""

    set_name: str
    text: str
    has_answer: bool
    is_answered: bool
    #: Share of the words and margin of each passage that holds any.
    passages: tuple[tuple[float, float], ...]

    @property
    def half(self) -> str:
        return HALVES[blake2b(self.text.encode(), digest_size=1).digest()[0] % 2]


class Asker:
    """Asks questions and keeps what came of them."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._identity = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)
        self.asked: list[Asked] = []

    def ask(
        self, set_name: str, collection: Collection, texts: Iterable[str], *, has_answer: bool, language: str | None
    ) -> None:
        for text in texts:
            question = Question(text=text, identity=self._identity, collection=collection, language=language)
            found = self._retriever.retrieve(question, profile=HR)
            self.asked.append(
                Asked(
                    set_name=set_name,
                    text=text,
                    has_answer=has_answer,
                    is_answered=found.response.evidence == "answered",
                    passages=tuple((i.coverage.share, max(0.0, i.margin)) for i in found.scored if i.coverage.matched),
                )
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--documents", type=Path, help="PDFs")
    parser.add_argument("--questions", type=Path, help="what they answer")
    parser.add_argument("--each", type=int, default=400, help="questions of each set")
    parser.add_argument("--choose", action="store_true", help="choose the weights again")
    options = parser.parse_args()
    with temporary_database("retrieval-refusals") as database:
        with database.transaction(TENANT) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES (%s, 'Languages')", (TENANT,))
        asker = Asker(Retriever(database, Providers(Settings())))
        ask_all(asker, database, options)
    report(asker.asked)
    if options.choose:
        choose([asked for asked in asker.asked if asked.set_name != SHARED_ARTICLES and "_" in asked.set_name])


def ask_all(asker: Asker, database: Database, options: argparse.Namespace) -> None:
    for path in sorted(path for path in options.sets.iterdir() if path.is_dir()):
        ask_set(asker, database, path, options.each)
    if options.documents:
        pdfs = fill(database, "PDFs", "en", [])
        for path in sorted(options.documents.glob("*.pdf")):
            retrieval_quality.add(database, pdfs.id, path, EMBEDDER, tenant_id=TENANT)
        lines = options.questions.read_text("utf-8").splitlines()
        own = [json.loads(line)["question"] for line in lines if line.strip()]
        asker.ask("PDFs", pdfs, own, has_answer=True, language=None)
        asker.ask("PDFs", pdfs, EVERYDAY, has_answer=False, language=None)
    shelf = Shelf(database, fill(database, "samples", "en", []), EMBEDDER)
    for sample in SAMPLES:
        shelf.add_pdf(sample.read(), title=sample.title, file_name=sample.file_name, language=sample.language)
    own = [text for questions in (HANDBOOK, BENEFITS, VERLOF, KOREAN) for text, _ in questions]
    asker.ask("samples", shelf.collection, own, has_answer=True, language=None)
    asker.ask("samples", shelf.collection, EVERYDAY, has_answer=False, language=None)


def ask_set(asker: Asker, database: Database, path: Path, wanted: int) -> None:
    corpus, questions = read(path, 1)
    random.Random(5).shuffle(questions)
    language = path.name.rsplit("_", 1)[1]
    half = len(corpus) // 2
    parts = (corpus[:half], corpus[half:])
    shelves = [fill(database, f"{path.name} {n}", language, part) for n, part in enumerate(parts)]
    first = {paragraph["id"] for paragraph in parts[0]}
    for row in questions[:wanted]:
        home = 0 if row["doc_id"] in first else 1
        asker.ask(path.name, shelves[home], [row["question"]], has_answer=True, language=language)
        asker.ask(path.name, shelves[1 - home], [row["question"]], has_answer=False, language=language)


def report(asked: Sequence[Asked]) -> None:
    """A line for each set: percent answered of its own questions and of the others, by half."""
    print(f"{'':12}" + "".join(f"{f'{half}: own':>20}{'others':>15}" for half in HALVES))
    for name in dict.fromkeys(item.set_name for item in asked):
        parts = [
            [item.is_answered for item in asked if (item.set_name, item.half, item.has_answer) == (name, half, own)]
            for half in HALVES
            for own in (True, False)
        ]
        print(
            f"{name:12}" + "".join(f"{100 * sum(part) / len(part):13.1f} of {len(part):4}"[-20:] for part in parts),
            flush=True,
        )


def choose(asked: Sequence[Asked]) -> None:
    """The weights by the tuning half, best first, with what they do on the other."""
    grid = [(weight, least) for weight in MARGIN_WEIGHTS for least in LEAST_SHARES]
    tuning, held_out = ([item for item in asked if item.half == half] for half in HALVES)
    best = sorted(grid, key=lambda weights: -own_less_others(tuning, *weights))[:5]
    print(f"{'margin':>8}{'enough':>8}{'tuning':>9}{'held out':>10}   own less others, in points")
    for weight, least in dict.fromkeys([*best, (RULE.margin_weight, RULE.enough)]):
        said = " (as it is)" if (weight, least) == (RULE.margin_weight, RULE.enough) else ""
        print(
            f"{weight:8.1f}{least:8.2f}{own_less_others(tuning, weight, least):9.2f}"
            f"{own_less_others(held_out, weight, least):10.2f}{said}"
        )


def own_less_others(asked: Sequence[Asked], weight: float, least: float) -> float:
    """Percent answered of the own questions less that of the others."""
    share = {}
    for has_answer in (True, False):
        answers = [
            any(words + weight * margin >= least for words, margin in item.passages)
            for item in asked
            if item.has_answer is has_answer
        ]
        share[has_answer] = 100 * sum(answers) / len(answers)
    return share[True] - share[False]


if __name__ == "__main__":
    main()
