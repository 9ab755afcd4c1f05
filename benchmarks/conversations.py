"""Conversations of three turns without a language model: how many replies say what was asked for.

    python -m benchmarks.conversations [--data FOLDER] [--file FILE] [--each]

The sample documents and those of `conversation_documents/` are asked `conversations.toml`, each turn with the turns and
replies before it. Its half "tuned" was at hand while follow-ups were made to work; "reported" was not. With `--data`
documents are read once. Prints by kind and half how many turns are right.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.answering import SHOWN, Reply, ask, product
from benchmarks.natural import EMBEDDER, TENANT, embed_meaning, read_documents, read_samples
from rag.answering.pipeline import Answerer
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.collections import CollectionLibrary
from rag.profiles import HR
from rag.providers.registry import Providers
from rag.samples.vectors import read_vectors
from rag.storage.database import Database
from rag.types import ChatMessage, Collection, Identity

HERE = Path(__file__).parent
DOCUMENTS = HERE / "conversation_documents"


@dataclass(frozen=True)
class Turn:
    """A question of a conversation, and what its reply has to say."""

    asked: str
    quotes: tuple[str, ...]
    never: tuple[str, ...]
    #: The title of a document that the reply cites.
    cites: str
    #: Quotes nothing.
    is_silent: bool


@dataclass(frozen=True)
class Conversation:
    number: int
    kind: str
    half: str
    turns: tuple[Turn, ...]


def is_right(said: Reply, turn: Turn) -> bool:
    if turn.is_silent:
        return not said.titles
    return (
        said.outcome in SHOWN
        and all(holds(said.text, words) for words in turn.quotes)
        and not any(holds(said.text, words) for words in turn.never)
        and (not turn.cites or turn.cites in said.titles)
    )


def holds(text: str, words: str) -> bool:
    """Tell whether a text says these words; "10" is not said by "100" or "3.10"."""
    said = " ".join(text.replace("**", "").split())
    return re.search(rf"(?<!\d)(?<!\d[.,]){re.escape(words)}(?!\d|[.,]\d)", said) is not None


def conversations(file: Path = HERE / "conversations.toml") -> list[Conversation]:
    table = tomllib.loads(file.read_text("utf-8"))
    return [
        Conversation(
            number=number,
            kind=entry["kind"],
            half=entry["half"],
            turns=tuple(
                Turn(
                    asked=turn["asked"],
                    quotes=tuple(turn.get("quotes", ())),
                    never=tuple(turn.get("never", ())),
                    cites=turn.get("cites", ""),
                    is_silent=turn.get("is_silent", False),
                )
                for turn in entry["turns"]
            ),
        )
        for number, entry in enumerate(table["conversation"], 1)
    ]


def replies(
    answerer: Answerer, collection: Collection, identity: Identity, conversation: Conversation
) -> Iterator[tuple[Turn, Reply]]:
    """Ask the turns of a conversation as the product does, each after the replies to those before."""
    history: list[ChatMessage] = []
    for turn in conversation.turns:
        said = ask(answerer, collection, identity, turn.asked, tuple(history))
        history += [ChatMessage(role="user", content=turn.asked), ChatMessage(role="assistant", content=said.text)]
        yield turn, said


def library(database: Database, providers: Providers, pipeline: IngestionPipeline) -> Collection:
    """Return a collection with all documents, ready to be asked."""
    with database.transaction(TENANT) as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", (TENANT, TENANT))
    shelves = CollectionLibrary(database, providers)
    collection = shelves.ensure_collection(TENANT, "Conversations", HR.name, EMBEDDER, language="en")
    read_documents(pipeline, collection, [DOCUMENTS])
    read_samples(pipeline, collection)
    if pipeline.meaning is not None:
        pipeline.meaning.store_known(TENANT, collection.id, read_vectors())
    embed_meaning(pipeline.meaning, database, collection)
    return collection


def report(found: Iterable[tuple[Conversation, bool]]) -> None:
    turns, right = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for conversation, is_right in found:
        for kind in (conversation.kind, "all"):
            turns[kind, conversation.half] += 1
            right[kind, conversation.half] += is_right
    print(f"\n{'turns right':16}{'tuned':>12}{'reported':>12}")
    for kind in [*sorted({kind for kind, _ in turns} - {"all"}), "all"]:
        cells = (f"{right[kind, half]} of {turns[kind, half]}" for half in ("tuned", "reported"))
        print(f"{kind:16}" + "".join(f"{cell:>12}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--file", type=Path, default=HERE / "conversations.toml", help="other conversations")
    parser.add_argument("--each", action="store_true", help="print the replies of the tuned half")
    arguments = parser.parse_args()
    with product(arguments.data) as running:
        collection, identity = library(running.database, running.providers, running.pipeline), running.asker()
        found, wrong = [], []
        for conversation in conversations(arguments.file):
            for place, (turn, said) in enumerate(replies(running.answerer, collection, identity, conversation), 1):
                found.append((conversation, is_right(said, turn)))
                if not found[-1][1]:
                    wrong.append((conversation.number, place))
                if arguments.each and conversation.half == "tuned":
                    mark = "right" if found[-1][1] else "WRONG"
                    print(f"\n{mark} ({conversation.number} {conversation.kind}) {turn.asked} -> {said.outcome}")
                    print(said.text)
        report(found)
        print("wrong, by conversation and turn:", *wrong)


if __name__ == "__main__":
    main()
