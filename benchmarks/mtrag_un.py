"""MTRAG-UN without a key: what is answered, and what is not, at the end of public conversations.

    python -m benchmarks.mtrag_un FILE [--data FOLDER] [--each] [--words]

`FILE` is `mtragun-human/generation_tasks/reference.jsonl` of a clone of IBM/mt-rag-benchmark: 507 conversations of four
domains, each with a last question and the passages that answer it. The pool that is searched are the passages of all
conversations, each a document: about 1,150, so that the task is easier than over the whole corpora, and a question
without passages of its own may find something that answers.

Prints by kind of question how many replies are called answered, perhaps and none, each with Wilson's interval of 95 %,
and how many of the shown ones cite a passage that the authors name. `--words` searches by words alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from benchmarks.answering import SHOWN, Product, Reply, ask, product
from benchmarks.natural import TENANT, embed_meaning
from rag.errors import DocumentAlreadyStored, RagError
from rag.types import ChatMessage, Collection, UploadOptions

KINDS = ("ANSWERABLE", "PARTIAL", "UNANSWERABLE", "UNDERSPECIFIED")


@dataclass(frozen=True)
class Task:
    """The last question of a conversation, and the names of the passages that answer it."""

    kind: str
    text: str
    history: tuple[ChatMessage, ...]
    right: frozenset[str]


def tasks(rows: list[dict[str, Any]]) -> list[Task]:
    found = []
    for row in rows:
        *before, last = row["input"]
        history = tuple(
            ChatMessage(role="user" if turn["speaker"] == "user" else "assistant", content=turn["text"])
            for turn in before
        )
        right = frozenset(file_name(passage) for passage in row["contexts"])
        found.append(Task(row["answerability"][0], last["text"], history, right))
    return found


def file_name(passage: Mapping[str, str]) -> str:
    return f"{passage['document_id']}.txt"


def store(running: Product, collection: Collection, rows: list[dict[str, Any]]) -> int:
    """Store each passage as a document; return how many there are."""
    passages = {file_name(passage): passage for row in rows for passage in row["contexts"]}
    for name, passage in passages.items():
        text = f"{passage.get('title', '')}\n\n{passage['text']}".strip()
        try:
            running.pipeline.process_document(
                file=text.encode(),
                file_name=name,
                tenant_id=TENANT,
                collection=collection,
                options=UploadOptions(generate_metadata=False),
            )
        except DocumentAlreadyStored:
            continue
        except RagError as exc:
            print(f"left out: {name}: {exc.message}")
    return len(passages)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Return Wilson's bounds of a share at 95 %."""
    if not of:
        return 0.0, 1.0
    z, share = 1.96, hits / of
    middle = share + z * z / (2 * of)
    spread = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - spread) / (1 + z * z / of), (middle + spread) / (1 + z * z / of)


def report(asked: list[tuple[Task, Reply]]) -> None:
    print(f"{'':16}{'n':>5}{'answered':>24}{'perhaps':>9}{'none':>6}{'shown, citing a right passage':>31}")
    for kind in KINDS:
        replies = [(task, reply) for task, reply in asked if task.kind == kind]
        answered = sum(reply.outcome == "answered" for _, reply in replies)
        perhaps = sum(reply.outcome == "perhaps" for _, reply in replies)
        shown = [(task, reply) for task, reply in replies if reply.outcome in SHOWN]
        cites = sum(any(c.file_name in task.right for c in reply.citations) for task, reply in shown)
        low, high = wilson(answered, len(replies))
        print(
            f"{kind.lower():16}{len(replies):5}{answered:8} ({low:.2f} … {high:.2f}){perhaps:9}"
            f"{len(replies) - answered - perhaps:6}{f'{cites} of {len(shown)}':>31}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--each", action="store_true", help="print each question with its reply")
    parser.add_argument("--words", action="store_true", help="search by words alone")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.file.read_text("utf-8").splitlines() if line.strip()]
    with product(arguments.data, "lexical" if arguments.words else "meaning") as running:
        collection, identity = running.collection("MTRAG-UN"), running.asker()
        print(store(running, collection, rows), "passages")
        if not arguments.words:
            embed_meaning(running.pipeline.meaning, running.database, collection)
        asked = []
        for task in tasks(rows):
            reply = ask(running.answerer, collection, identity, task.text, task.history)
            asked.append((task, reply))
            if arguments.each:
                print(f"{task.kind} {reply.outcome}: {task.text}\n   {reply.text}")
        report(asked)


if __name__ == "__main__":
    main()
