"""What a question to all collections takes against the same question to one: `python -m benchmarks.all_collections`.

Collections of equally many handbook-like passages with the built-in embedder. Each question is asked in one of them, in
all that are alike, which are one search, and in as many of several profiles, each of which is a search of its own; by
turns, so that a slow minute of the machine is in all of them. Providers take no time: with theirs the ratios are lower.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from uuid import UUID

from benchmarks.database import temporary_database
from benchmarks.retrieval_overhead import TENANT, WORDS, fill
from rag.profiles import profile_of
from rag.providers.registry import Providers
from rag.retrieval.retriever import Retriever
from rag.retrieval.searching import groups_of
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role

#: A question to all collections takes at most so many times as long as one to a single collection.
BAR = 3.0
#: Of collections that are not alike, in turns.
KINDS = ("hr", "civil", "legal")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", type=int, default=8)
    parser.add_argument("--passages", type=int, default=2000, help="in each of them")
    parser.add_argument("--questions", type=int, default=60)
    options = parser.parse_args()
    with temporary_database("all-collections") as database:
        measure(database, options)


def measure(database: Database, options: argparse.Namespace) -> None:
    chance = random.Random(1)
    alike = [fill(database, options.passages, chance, name=f"Rules {number}") for number in range(options.collections)]
    mixed = [
        fill(database, options.passages, chance, name=f"Mixed {number}", profile=KINDS[number % len(KINDS)])
        for number in range(options.collections)
    ]
    retriever = Retriever(database, Providers(Settings()))
    asker = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)
    asked: dict[str, Sequence[Collection]] = {
        "one collection": alike[:1],
        "two alike": alike[:2],
        f"{len(alike)} alike": alike,
        f"{len(mixed)} of {len(groups_of(mixed[0], mixed[1:]))} kinds": mixed,
    }
    times: dict[str, list[float]] = {name: [] for name in asked}
    for number in range(options.questions + 10):
        text = f"How many {chance.choice(WORDS)} days does the {' '.join(chance.sample(WORDS, 3))} rule give?"
        for name, (first, *others) in asked.items():
            question = Question(text=text, identity=asker, collection=first, others=tuple(others))
            started = time.perf_counter()
            retriever.retrieve_context(question, profile=profile_of(first))
            if number >= 10:  # warm
                times[name].append(1000 * (time.perf_counter() - started))
    alone = times["one collection"]
    for name, taken in times.items():
        ratio = statistics.median(each / one for each, one in zip(taken, alone, strict=True))
        print(
            f"{name:16} {statistics.median(taken):6.1f} ms   {ratio:4.2f} times one collection"
            f"   {'within' if ratio <= BAR else 'OVER'} the bar of {BAR:g}"
        )


if __name__ == "__main__":
    main()
