"""Whether tokens reach readers as quickly while vectors of meaning are made: a thread that passes them on, beside it.

    python -m benchmarks.beside_meaning [--turns 10] [--seconds 3]

A thread wakes every 20 ms and works for 1, as the one that passes a stream on does. How long each token takes is taken
by turns: alone, and while the background process embeds passages at low priority, as in the product. The figure is the
p95 of a token's whole time beside it over that alone; the bar is 1.2.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import threading
import time

from rag.ingestion.meaning import parts_of
from rag.providers.builtin_embedders import MeaningEmbedder
from rag.samples import FOLDER

EVERY, WORK = 0.020, 0.001


def tokens(seconds: float) -> list[float]:
    """Pass tokens on for a while, and return the whole time of each in milliseconds: its wait, and its work."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        time.sleep(EVERY)
        busy_until = time.thread_time() + WORK
        while time.thread_time() < busy_until:
            pass
        taken.append(1000 * (time.perf_counter() - started))
    return taken


class Embedding:
    """Embeds parts of passages in a thread, one after the other, while it is let."""

    def __init__(self) -> None:
        text = "\n\n".join(path.read_text("utf-8") for path in sorted((FOLDER / "texts").glob("*.md")))
        self._parts = itertools.cycle(parts_of(text))
        self._embedder = MeaningEmbedder()
        self._may = threading.Event()
        self._rests = threading.Event()
        self._is_over = False
        self.done = 0
        self._embedder.embed(["A first one starts the process."], purpose="document")
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while True:
            if not self._may.is_set():
                self._rests.set()
                self._may.wait()
            if self._is_over:
                return
            self._embedder.embed([next(self._parts)], purpose="document")
            self.done += 1

    def begin(self) -> None:
        self._rests.clear()
        self._may.set()

    def pause(self) -> None:
        """Stop, and return when nothing is being embedded."""
        self._may.clear()
        self._rests.wait()

    def close(self) -> None:
        self._is_over = True
        self._may.set()
        self._thread.join()
        self._embedder.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    alone: list[float] = []
    beside: list[float] = []
    embedding = Embedding()
    try:
        for _ in range(options.turns):
            embedding.pause()
            alone += tokens(options.seconds)
            embedding.begin()
            beside += tokens(options.seconds)
    finally:
        embedding.close()
    cuts = {name: statistics.quantiles(taken, n=20) for name, taken in (("alone", alone), ("beside", beside))}
    turns = f"{options.turns} turns of {options.seconds:g} s"
    print(f"{embedding.done} parts embedded in {turns}, load {os.getloadavg()[0]:.1f}")
    for name, values in cuts.items():
        print(f"{name:8}p50 {values[9]:6.2f} ms, p95 {values[18]:6.2f} ms")
    print(f"p95 beside / alone: {cuts['beside'][18] / cuts['alone'][18]:.2f} (bar 1.2)")


if __name__ == "__main__":
    main()
