"""RGB's counterfactual sets without a key: does a reply keep to the documents, and does it show that two disagree?

    python -m benchmarks.rgb_counterfactual FILE [--language en|zh] [--each] [--words]

`FILE` is `data/en_fact.json` or `data/zh_fact.json` of a clone of chen700564/RGB (CC BY-NC-SA 4.0): 100 questions, each
with passages that answer it, the same passages with a false answer, and passages beside the point. The published
figures ask how often a model notices and corrects the false answer from what it knows. Here the documents decide, so
each question is put to its own passages in four ways: the right ones, the false ones, both, and those beside the point;
with all but the last go those beside the point. The passages of a kind are one document.

Prints for each way how many replies hold the right answer, the false one, both or neither, and their outcomes, with
Wilson's interval of 95 %. Questions that fail are counted apart and left out.
"""

from __future__ import annotations

import argparse
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.answering import SHOWN, Product, Reply, ask, product
from benchmarks.mtrag_un import wilson
from benchmarks.natural import TENANT, embed_meaning
from rag.types import Collection, Outcome, UploadOptions

KINDS = {"right": "positive", "false": "positive_wrong", "beside": "negative"}
#: The documents that a question is put to.
WAYS = {
    "right": ("right", "beside"),
    "false": ("false", "beside"),
    "both": ("right", "false", "beside"),
    "neither": ("beside",),
}


def answers(stored: Any) -> list[list[str]]:
    """Return the parts of an answer, each in all its wordings."""
    parts = stored if isinstance(stored, list) else [stored]
    return [[str(wording) for wording in (part if isinstance(part, list) else [part])] for part in parts]


def plain(text: str) -> str:
    """Return a text for comparison: small letters and digits, without spaces and marks."""
    return "".join(re.findall(r"[^\W_]", unicodedata.normalize("NFKC", text).lower()))


def holds(text: str, parts: Iterable[Sequence[str]]) -> bool:
    """Tell whether a text holds a wording of each part."""
    said = plain(text)
    return all(any(plain(wording) in said for wording in part) for part in parts)


def store(running: Product, collection: Collection, row: Mapping[str, Any]) -> dict[str, UUID]:
    """Store the passages of a question, a document for each kind; return their ids by kind."""
    found = {}
    for kind, field in KINDS.items():
        # The title says nothing about the kind.
        text = f"# Passages {row['id']}\n\n" + "\n\n".join(row[field])
        added = running.pipeline.process_document(
            file=text.encode(),
            file_name=f"{row['id']}-{kind}.md",
            tenant_id=TENANT,
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )
        found[kind] = added.document_id
    return found


def report(asked: Mapping[str, list[tuple[Mapping[str, Any], Reply]]]) -> None:
    print(
        f"{'':9}{'n':>4}{'failed':>8}{'right alone':>22}{'false alone':>22}{'both':>22}{'answered':>10}{'perhaps':>9}"
    )
    for way, replies in asked.items():
        kept = [(row, reply) for row, reply in replies if reply.outcome is not Outcome.FAILED]
        shown = Counter(
            (holds(reply.text, answers(row["answer"])), holds(reply.text, answers(row["fakeanswer"])))
            for row, reply in kept
            if reply.outcome in SHOWN
        )
        outcomes = Counter(reply.outcome for _, reply in kept)
        cells = ""
        for key in ((True, False), (False, True), (True, True)):
            low, high = wilson(shown[key], len(kept))
            cells += f"{shown[key]:8} ({low:.2f} … {high:.2f})"
        print(
            f"{way:9}{len(kept):4}{len(replies) - len(kept):8}{cells}"
            f"{outcomes[Outcome.ANSWERED]:10}{outcomes[Outcome.PERHAPS]:9}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--language", choices=("en", "zh"), default="en")
    parser.add_argument("--each", action="store_true", help="print each question with its reply")
    parser.add_argument("--words", action="store_true", help="search by words alone")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.file.read_text("utf-8").splitlines() if line.strip()]
    with product(None, "lexical" if arguments.words else "meaning") as running:
        collection, identity = running.collection("RGB", arguments.language), running.asker()
        stored = [store(running, collection, row) for row in rows]
        if not arguments.words:
            embed_meaning(running.pipeline.meaning, running.database, collection)
        asked: dict[str, list[tuple[Mapping[str, Any], Reply]]] = {way: [] for way in WAYS}
        for row, ids in zip(rows, stored, strict=True):
            for way, kinds in WAYS.items():
                limited = tuple(ids[kind] for kind in kinds)
                reply = ask(running.answerer, collection, identity, row["query"], document_ids=limited)
                asked[way].append((row, reply))
                if arguments.each:
                    print(f"{way} {reply.outcome}: {row['query']} ({row['answer']} / {row['fakeanswer']})")
                    print(f"   {reply.text}")
        report(asked)


if __name__ == "__main__":
    main()
