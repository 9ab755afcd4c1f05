"""Replies without a language model to questions of handbooks: what they are called, and whether they hold the answer.

    python -m benchmarks.replies DOCUMENTS [--data FOLDER] [--fit] [--each]

`DOCUMENTS` is a folder with the documents that `handbook_questions.jsonl` names by patterns (`within`): pages of the
handbooks of 18F, Clef, Meltano and the Foundation for Public Code as `clef-….md`, …, the six PDFs of Zava, and the
statutes. A question without `evidence` has no answer there: half of these ask what such handbooks often say. The sample
documents are asked `natural_questions.jsonl`, and both `everyday_questions.txt`. With `--data` documents are read once.

Prints by kind how many replies are called answered, perhaps and none, of how many the answering words are quoted, and
how well the probability of a reply says so. `--fit` prints the coefficients of `rag/answering/reply_odds.py` and their
ten-fold validation.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.answering import product
from benchmarks.natural import (
    ASKER,
    HERE,
    TENANT,
    embed_meaning,
    everyday_questions,
    read_documents,
    read_questions,
    read_samples,
)
from rag.answering.extractive import best_quotes, compared_parts, likeness_by
from rag.answering.quoting import evidence_of, signals_of
from rag.answering.reply_odds import MOST_WORDS, ReplySignals, log_odds, probability
from rag.profiles import HR
from rag.providers.builtin_embedders import MeaningEmbedder
from rag.retrieval.retriever import Retriever
from rag.storage.database import Database
from rag.types import Collection, Question

FOLDS, ROUNDS, RIDGE = 10, 10, 1.0


@dataclass(frozen=True)
class Asked:
    """A question with the documents it is asked of, and the words of its answer; none where there is none."""

    collection: str
    within: tuple[str, ...]
    text: str
    language: str
    evidence: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Reply:
    """What came of it."""

    asked: Asked
    called: str
    lines: tuple[str, ...]
    #: None where nothing was quoted, or meaning was not compared.
    signals: ReplySignals | None

    @property
    def holds(self) -> bool:
        said = plain(" ".join(self.lines))
        return bool(self.asked.evidence) and all(plain(words) in said for words in self.asked.evidence)

    @property
    def kind(self) -> str:
        if not self.asked.evidence:
            return self.asked.kind
        return "another language" if self.signals and self.signals.is_across else "same language"


def plain(text: str) -> str:
    return " ".join(text.replace("**", "").split())


def questions() -> list[Asked]:
    lines = map(json.loads, (HERE / "handbook_questions.jsonl").read_text("utf-8").splitlines())
    asked = [
        Asked("Handbooks", tuple(q["within"]), q["question"], q["language"], tuple(q["evidence"]), "near")
        for q in lines
    ]
    samples = read_questions(HERE / "natural_questions.jsonl")
    asked.extend(Asked("Samples", ("*",), q.text, q.language, q.evidence, "near") for q in samples)
    asked.extend(Asked("Handbooks", ("*",), q.text, q.language, (), "everyday") for q in everyday_questions())
    return asked


def ask(
    asked: Asked, retriever: Retriever, meaning: MeaningEmbedder | None, collection: Collection, database: Database
) -> Reply:
    """Answer a question as the product does without a language model."""
    documents = ()
    if asked.within != ("*",):
        with database.transaction(TENANT) as connection:
            rows = connection.execute(
                "SELECT id, file_name FROM documents WHERE collection_id = %s", (collection.id,)
            ).fetchall()
        documents = tuple(
            document
            for document, name in rows
            if any(fnmatch.fnmatch(unicodedata.normalize("NFC", name), pattern) for pattern in asked.within)
        )
    question = Question(
        text=asked.text, identity=ASKER, collection=collection, document_ids=documents, language=asked.language
    )
    context = retriever.retrieve_context(question, profile=HR)
    quotes = best_quotes(
        (context.rag_details.query.expanded or [asked.text])[-1],
        context.citations,
        language=asked.language,
        similarities=likeness_by(meaning) if meaning else None,
        parts_by_number=compared_parts(context),
        with_neighbours=True,
    )
    if quotes is None:
        return Reply(asked, "none", (), None)
    return Reply(asked, evidence_of(quotes, context), tuple(quotes.text.split("\n\n")), signals_of(quotes, context))


def report(replies: Sequence[Reply]) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for reply in replies:
        row = counts[f"{reply.asked.collection}, {reply.kind}"]
        is_shown = reply.called != "none"
        row.update(n=1, **{reply.called: 1}, held=int(reply.holds and is_shown))
        row["right"] += int(reply.holds and reply.called == "answered")
    print(f"{'':32}{'n':>6}{'answered':>10}{'perhaps':>9}{'none':>6}{'held':>6}{'answered and held':>19}")
    for kind, row in sorted(counts.items()):
        print(
            f"{kind:32}{row['n']:6}{row['answered']:10}{row['perhaps']:9}{row['none']:6}{row['held']:6}{row['right']:19}"
        )
    known = [(p, r.holds) for r in replies if r.signals and (p := probability(r.signals)) is not None]
    print("\nprobability, share that holds the answer, replies:")
    for low in np.arange(0, 1, 0.2):
        bin_ = [(p, held) for p, held in known if low <= p < low + 0.2]
        if bin_:
            print(f"{np.mean([p for p, _ in bin_]):6.2f}{np.mean([held for _, held in bin_]):6.2f}{len(bin_):5}")


def features(signals: ReplySignals) -> tuple[float, ...]:
    """Return the signals in the order of `Coefficients`."""
    meaning, likeness = signals.meaning or 0.0, signals.likeness or 0.0
    words = float(min(signals.words, MOST_WORDS))
    across = float(signals.is_across)
    return words, signals.word_share, signals.above_usual, likeness - meaning, across, log_odds(signals.search)


def features_by_words(signals: ReplySignals) -> tuple[float, ...]:
    """Return the signals in the order of `CoefficientsByWords`."""
    words = float(min(signals.words, MOST_WORDS))
    return words, signals.word_share, float(signals.is_across), log_odds(signals.search), float(signals.is_exact)


def fitted(rows: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logistic regression with a ridge on standardised features."""
    centre, spread = rows.mean(0), rows.std(0) + 1e-9
    design = np.column_stack([np.ones(len(rows)), (rows - centre) / spread])
    weights, penalty = np.zeros(design.shape[1]), RIDGE * np.diag([0.0, *[1.0] * rows.shape[1]])
    for _ in range(60):
        likely = 1 / (1 + np.exp(-design @ weights))
        curve = design.T @ (design * (likely * (1 - likely))[:, None]) + penalty
        weights -= np.linalg.solve(curve, design.T @ (likely - held) + penalty @ weights)
    scaled = weights[1:] / spread
    return np.array([weights[0] - scaled @ centre, *scaled])


def fit(replies: Sequence[Reply], *, by_words: bool) -> None:
    known = [r for r in replies if r.signals and (by_words or probability(r.signals) is not None)]
    of = features_by_words if by_words else features
    rows = np.array([of(r.signals) for r in known if r.signals])
    held = np.array([float(r.holds) for r in known])
    likely, random = np.zeros(len(held)), np.random.default_rng(1)
    for _ in range(ROUNDS):
        fold = random.permutation(len(held)) % FOLDS
        for number in range(FOLDS):
            weights = fitted(rows[fold != number], held[fold != number])
            likely[fold == number] += 1 / (1 + np.exp(-weights[0] - rows[fold == number] @ weights[1:])) / ROUNDS
    print("\nten-fold: from this probability on, replies, of them with the answer, near the subject without one")
    for least in (0.2, 0.3, 0.5, 0.55, 0.6, 0.7, 0.8):
        chosen = likely >= least
        near = sum(r.kind == "near" for r, is_chosen in zip(known, chosen, strict=True) if is_chosen)
        print(f"{least:6.2f}{chosen.sum():6}{int(held[chosen].sum()):6}{near:6}")
    others = ("across", "search", "exact") if by_words else ("above_usual", "likeness", "across", "search")
    names = ("base", "words", "said", *others)
    print(", ".join(f"{name}={value:.3f}" for name, value in zip(names, fitted(rows, held), strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--words", action="store_true", help="search and choose by words alone")
    parser.add_argument("--each", action="store_true", help="print each question with its reply")
    arguments = parser.parse_args()
    with product(arguments.data, "lexical" if arguments.words else "meaning") as running:
        collections = {name: running.collection(name) for name in ("Handbooks", "Samples")}
        read_documents(running.pipeline, collections["Handbooks"], [arguments.documents])
        read_samples(running.pipeline, collections["Samples"])
        if running.meaning:
            for collection in collections.values():
                embed_meaning(running.pipeline.meaning, running.database, collection)
        replies = []
        for asked in questions():
            reply = ask(asked, running.retriever, running.meaning, collections[asked.collection], running.database)
            replies.append(reply)
            if arguments.each:
                print(f"{reply.called}: {asked.text}", *reply.lines, sep="\n   ")
        report(replies)
        if arguments.fit:
            fit(replies, by_words=arguments.words)


if __name__ == "__main__":
    main()
