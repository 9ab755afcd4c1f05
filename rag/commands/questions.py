"""`search`, `ask` and `calibrate`: questions without a browser, and from which similarity on they are answered."""

from __future__ import annotations

import argparse

from rag.commands import Commands, add_command, add_place
from rag.settings import Settings

#: From this share of wrong passages on a similarity alone is no evidence.
MOST_MISTAKEN = 0.2


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    for name, text in (("search", "show the passages a question finds"), ("ask", "answer a question")):
        command = add_command(commands, name, text)
        command.add_argument("question")
        add_place(command)
        command.set_defaults(run=search if name == "search" else ask)
        if name == "search":
            command.add_argument("--profile", default="", help="search as this profile does, not the collection's own")
            command.add_argument("--explain", action="store_true", help="show every step and every score")
    parser = add_command(commands, "calibrate", "measure from which similarity on a collection's passages are evidence")
    add_place(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be set")
    parser.set_defaults(run=calibrate)


def search(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.profiles import profile_by_name, with_overrides
    from rag.public import _collection, _program
    from rag.retrieval.explain import explained, shortened
    from rag.services import services
    from rag.types import Question

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection = _collection(tenant, arguments.collection)
        # Another profile is looked through as it is: the overrides were made for the collection's own.
        profile = (
            profile_by_name(arguments.profile)
            if arguments.profile
            else with_overrides(profile_by_name(collection.profile), collection.overrides)
        )
        question = Question(text=arguments.question, identity=_program(tenant), collection=collection)
        retrieval = parts.searches.search(question, profile=profile)
    finally:
        parts.close()
    found = retrieval.response
    if arguments.explain:
        print("\n".join(explained(retrieval, profile=profile, collection=collection)), end="\n\n")
    for citation in found.citations or found.nearest:
        print("\n".join(shortened(citation)))
    if not found.citations:
        print("The documents do not answer this; above are the nearest passages.")
    return 0


def ask(arguments: argparse.Namespace, settings: Settings) -> int:
    from threading import Event

    from rag.answering.answer import DoneEvent, TextEvent
    from rag.profiles import profile_by_name, with_overrides
    from rag.public import _collection, _program
    from rag.services import services
    from rag.types import Question

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection = _collection(tenant, arguments.collection)
        profile = with_overrides(profile_by_name(collection.profile), collection.overrides)
        question = Question(text=arguments.question, identity=_program(tenant), collection=collection)
        for event in parts.answerer.answer(question, profile=profile, cancel=Event(), chat_log_id=None):
            if isinstance(event, TextEvent):
                print(event.text, end="", flush=True)
            elif isinstance(event, DoneEvent):
                print()
                for citation in event.citations:
                    print(f"[{citation.number}] {citation.title}, page {citation.first_page}")
    finally:
        parts.close()
    return 0


def calibrate(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.public import _collection
    from rag.services import services

    parts = services()
    try:
        collection = _collection(arguments.tenant or settings.tenant, arguments.collection)
        found = parts.calibrations.measure(collection, keep=not arguments.dry_run)
    finally:
        parts.close()
    print(f"{collection.name}: {found.passages} passages measured, embedded by {collection.embedding_model}")
    print(f"{'similarity of a sentence with':32}{'lowest 5 %':>12}{'median':>9}{'highest 5 %':>13}")
    low, middle = found.related
    print(f"{'  the rest of its own passage':32}{low:12.3f}{middle:9.3f}")
    middle, high = found.unrelated
    print(f"{'  a passage from elsewhere':32}{'':12}{middle:9.3f}{high:13.3f}")
    done = "would be" if arguments.dry_run else "is now"
    print(f"The threshold {done} {found.threshold:.3f}; the embedder's own is {found.default:.3f}.")
    print(f"95 of 100 passages that belong to a sentence reach it, and {100 * found.mistaken:.0f} of 100 that do not.")
    if found.mistaken > MOST_MISTAKEN:
        print(
            "That is too many: on this text the model's similarities do not tell what belongs together. Take another "
            "model, or let the embedder's own threshold count (collection settings)."
        )
    return 0
