"""How many of the pages that an expert's answer cites are cited by ours, without a key, beside published runs.

    python -m benchmarks.cited_pages --documents FOLDER --questions FILE [--published FOLDER] [--data FOLDER] [--each]

`FILE` holds one JSON object per line with "question" and "truth", an answer that names its pages as
`[handbook.pdf#page=7]`; `FOLDER` holds the PDFs. In a clone of azure-search-openai-demo they are
`evals/ground_truth.jsonl` and `data`, and `--published` is `evals/results`, whose summaries are printed beside ours.

*Citations matched* is counted as in that project: the share of the truth's citations that are among the reply's, as a
mean over the questions. A passage of ours may span two pages, and the card opens the one with the quotation: counted
once by its first page alone, and once by all of its pages. A reply that is called "not here" cites nothing. The
product is asked twice, by words alone and with vectors of meaning; the interval is that of 10,000
samples of the questions, and McNemar's test compares the questions of which either cites a page of the truth.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path

import numpy as np

from benchmarks.answering import Reply, ask, product
from benchmarks.natural import embed_meaning, read_documents

CITED = re.compile(r"\[([^\[\]#]+)#page=(\d+)\]")
SAMPLES = 10_000

Page = tuple[str, int]


@dataclass(frozen=True)
class Asked:
    """A question with the pages that its answer cites."""

    text: str
    pages: frozenset[Page]


def questions(file: Path) -> list[Asked]:
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    asked = [Asked(row["question"], frozenset((n, int(p)) for n, p in CITED.findall(row["truth"]))) for row in rows]
    return [one for one in asked if one.pages]


def matched(asked: Asked, reply: Reply, *, by_first_page: bool = False) -> float:
    """Return the share of the truth's pages, 0 … 1, that the reply cites."""
    cited = {
        (citation.file_name, page)
        for citation in reply.citations
        for page in range(citation.first_page, (citation.first_page if by_first_page else citation.last_page) + 1)
    }
    matched: float = len(asked.pages & cited) / len(asked.pages)
    return matched


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the bounds of the mean in 95 % of the samples."""
    samples = np.random.default_rng(1).choice(np.array(values), (SAMPLES, len(values))).mean(axis=1)
    low, high = np.percentile(samples, (2.5, 97.5))
    return float(low), float(high)


def mcnemar(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Return the exact two-sided probability of so unequal a change, if changes either way were as likely."""
    better = sum(b and not a for a, b in zip(before, after, strict=True))
    worse = sum(a and not b for a, b in zip(before, after, strict=True))
    changed = better + worse
    tail = sum(comb(changed, k) for k in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / float(2**changed))


def published(folder: Path) -> list[tuple[str, float, float]]:
    """Return name, citations matched and share with any citation of each run of all questions."""
    runs = []
    for file in sorted(folder.glob("*/summary.json")):
        summary = json.loads(file.read_text("utf-8"))
        if "citations_matched" in summary and "any_citation" in summary:
            runs.append((file.parent.name, summary["citations_matched"]["rate"], summary["any_citation"]["rate"]))
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--published", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--each", action="store_true", help="print each question with the pages cited")
    arguments = parser.parse_args()
    asked = questions(arguments.questions)
    shares: dict[str, list[float]] = {}
    print(f"{'':32}{'citations matched':>18}{'by first page':>15}{'any citation':>14}{'characters':>12}")
    for embedder in ("lexical", "meaning"):
        data = arguments.data / embedder if arguments.data else None
        with product(data, embedder) as running:
            collection, identity = running.collection("HR"), running.asker()
            read_documents(running.pipeline, collection, [arguments.documents])
            if embedder == "meaning":
                embed_meaning(running.pipeline.meaning, running.database, collection)
            replies = [ask(running.answerer, collection, identity, one.text) for one in asked]
        shares[embedder] = [matched(one, reply) for one, reply in zip(asked, replies, strict=True)]
        low, high = interval(shares[embedder])
        print(
            f"{'ours, ' + embedder:32}{np.mean(shares[embedder]):6.2f} ({low:.2f} … {high:.2f})"
            f"{np.mean([matched(one, r, by_first_page=True) for one, r in zip(asked, replies, strict=True)]):13.2f}"
            f"{np.mean([bool(r.citations) for r in replies]):14.2f}{np.mean([len(r.text) for r in replies]):12.0f}"
        )
        if arguments.each:
            for one, reply in zip(asked, replies, strict=True):
                cited = [(c.file_name, c.first_page, c.last_page) for c in reply.citations]
                print(f"   {matched(one, reply):.1f} {reply.outcome} {one.text}\n       {sorted(one.pages)} <- {cited}")
    for name, rate, any_rate in published(arguments.published) if arguments.published else []:
        print(f"{name:32}{rate:6.2f}{any_rate:39.2f}")
    by_words, by_meaning = shares.values()
    print(
        f"{len(asked)} questions; McNemar, by words and with meaning: "
        f"{mcnemar([s > 0 for s in by_words], [s > 0 for s in by_meaning]):.2f}"
    )


if __name__ == "__main__":
    main()
