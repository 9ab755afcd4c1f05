"""Two questions in one message without a language model: how many replies answer both.

    python -m benchmarks.several_questions DOCUMENTS [--data FOLDER] [--each]

Joins questions from `replies.py` about the same documents to messages: "A and b?", or "A? B?" in languages where no
word is known. `DOCUMENTS` and `--data` as in `replies.py`. Prints, for messages taken apart and for messages taken as
one question, in how many replies the words of both answers, of one and of none are quoted, and how many replies with
both are called answered. Questions are paired at random with a fixed seed.
"""

from __future__ import annotations

import argparse
import fnmatch
import random
import unicodedata
from collections import Counter
from pathlib import Path
from threading import Event
from uuid import UUID

from benchmarks.answering import product
from benchmarks.natural import TENANT, embed_meaning, read_documents, read_samples
from benchmarks.replies import Asked, plain, questions
from rag.answering.events import DoneEvent, TextEvent
from rag.answering.pipeline import Answerer
from rag.profiles import HR
from rag.profiles.profile import Profile
from rag.storage.database import Database
from rag.types import Collection, Identity, Outcome, Question

AND = {"en": "and", "nl": "en", "de": "und", "fr": "et", "es": "y", "it": "e", "pt": "e", "pl": "oraz", "tr": "ve"}
MOST_PAIRS = 12
WAYS = {"apart": HR, "as one": HR.changed(split_questions=False)}


def pairs() -> list[tuple[str, Asked, Asked]]:
    """Return messages with the two questions in each."""
    by_documents: dict[tuple[str, tuple[str, ...], str], list[Asked]] = {}
    for asked in questions():
        if asked.evidence:
            by_documents.setdefault((asked.collection, asked.within, asked.language), []).append(asked)
    chance, found = random.Random(7), list[tuple[str, Asked, Asked]]()
    for (_, _, language), group in by_documents.items():
        chance.shuffle(group)
        for first, second in list(zip(group[::2], group[1::2], strict=False))[:MOST_PAIRS]:
            opening, joined = first.text.strip().rstrip("?？؟"), second.text.strip()
            # A second question that tells something first begins a new sentence.
            word = AND.get(language) if len(found) % 2 == 0 and ". " not in joined else None
            bare = joined.lstrip("¿")
            small = bare if bare.startswith(("I ", "I'")) else bare[:1].lower() + bare[1:]
            found.append((f"{opening} {word} {small}" if word else f"{opening}? {joined}", first, second))
    return found


def documents_of(database: Database, collection: Collection, asked: Asked) -> tuple[UUID, ...]:
    """Return the documents to ask; empty for all."""
    if asked.within == ("*",):
        return ()
    with database.transaction(TENANT) as connection:
        rows = connection.execute("SELECT id, file_name FROM documents WHERE collection_id = %s", (collection.id,))
        named = [(document, unicodedata.normalize("NFC", name)) for document, name in rows.fetchall()]
    return tuple(document for document, name in named if any(fnmatch.fnmatch(name, like) for like in asked.within))


def reply_to(answerer: Answerer, question: Question, profile: Profile) -> tuple[str, Outcome]:
    events = list(answerer.answer(question, profile=profile, cancel=Event()))
    (ending,) = [event for event in events if isinstance(event, DoneEvent)]
    return plain("".join(event.text for event in events if isinstance(event, TextEvent))), ending.outcome


def ask_all(
    answerer: Answerer, database: Database, shelves: dict[str, Collection], asker: Identity, each: bool
) -> None:
    counts = {way: Counter[str]() for way in WAYS}
    for text, first, second in pairs():
        shelf = shelves[first.collection]
        question = Question(
            text=text, identity=asker, collection=shelf, document_ids=documents_of(database, shelf, first)
        )
        for way, profile in WAYS.items():
            said, outcome = reply_to(answerer, question, profile)
            held = sum(all(plain(words) in said for words in part.evidence) for part in (first, second))
            counts[way].update(["messages", f"words of {('none', 'one', 'both')[held]}"])
            if outcome is Outcome.ANSWERED:
                counts[way].update(["called answered", *(["called answered, with both"] if held == 2 else [])])
            if each and way == "apart":
                print(f"{held} of 2, {outcome.value}: {text}\n    {said}")
    names = sorted(set[str]().union(*counts.values()))
    print(f"{'':28}" + "".join(f"{way:>10}" for way in WAYS))
    for name in names:
        print(f"{name:28}" + "".join(f"{counts[way][name]:10}" for way in WAYS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--each", action="store_true", help="print each message with its reply")
    arguments = parser.parse_args()
    with product(arguments.data) as running:
        shelves = {name: running.collection(name) for name in ("Handbooks", "Samples")}
        read_documents(running.pipeline, shelves["Handbooks"], [arguments.documents])
        read_samples(running.pipeline, shelves["Samples"])
        for shelf in shelves.values():
            embed_meaning(running.pipeline.meaning, running.database, shelf)
        ask_all(running.answerer, running.database, shelves, running.asker(), arguments.each)


if __name__ == "__main__":
    main()
