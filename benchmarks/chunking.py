"""Megabytes per second from text to chunks: our `recursive` and `smart`, and LangChain's splitter at equal sizes.

    python -m benchmarks.chunking [--megabytes 4] [--rounds 5] [--longest 50]

All methods take turns in one run on the same text, the ratios are of medians. A megabyte is 2**20 characters. Ours
make chunks with pages, spans and sections; LangChain makes strings. The second table shows whether time grows with
the length of the text alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from rag import chunk_text
from rag.ingestion.chunking.splitter import SEPARATORS
from rag.types import ChunkingMethod

TEXTS = Path(__file__).resolve().parent.parent / "rag" / "samples" / "texts"
MEGABYTE = 2**20
Method = Callable[[str], int]
"""Cuts one text; how many chunks it made."""


def handbook(characters: int, *, line: int = 90) -> str:
    """A text of this length from the samples', in lines as PDFs give them, each copy with its own numbers."""
    words = " ".join(path.read_text("utf-8").replace("\n\n", "\0") for path in sorted(TEXTS.glob("*.md"))).split(" ")
    pieces: list[str] = []
    length = used = copy = 0
    while length < characters:
        copy += 1
        for word in (*words, f"({copy})"):
            piece = word.replace("\0", "\n\n")
            used = 0 if piece.endswith("\n") else used + len(piece) + 1
            end = "\n" if used > line else " "
            used = 0 if end == "\n" else used
            pieces.append(piece + end)
            length += len(piece) + 1
    return "".join(pieces)[:characters]


def ours(method: ChunkingMethod, chunk_size: int, overlap: int) -> Method:
    return lambda text: len(chunk_text(text, method=method, chunk_size=chunk_size, overlap=overlap))


def langchain(chunk_size: int, overlap: int, separators: list[str] | None) -> Method | None:
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError:
        return None
    splitter = RecursiveCharacterTextSplitter(chunk_size=chunk_size, chunk_overlap=overlap, separators=separators)
    return lambda text: len(splitter.split_text(text))


def compare(title: str, text: str, methods: dict[str, Method | None], rounds: int) -> None:
    """One table: all methods on one text, in turns; ratios to the last."""
    usable = {name: method for name, method in methods.items() if method is not None}
    seconds: dict[str, list[float]] = {name: [] for name in usable}
    made = dict.fromkeys(usable, 0)
    for round_number in range(rounds + 1):
        for name, method in usable.items():
            started = time.perf_counter()
            made[name] = method(text)
            if round_number:  # the first round warms up
                seconds[name].append(time.perf_counter() - started)
    size = len(text) / MEGABYTE
    last = statistics.median(list(seconds.values())[-1])
    print(f"\n{title}, {size:.1f} MB, {rounds} rounds")
    print(f"{'':34}{'MB/s':>8}{'spread':>16}{'chunks':>9}{'ratio':>8}")
    for name, times in seconds.items():
        median = statistics.median(times)
        spread = f"{size / max(times):.0f} … {size / min(times):.0f}"
        print(f"{name:34}{size / median:>8.0f}{spread:>16}{made[name]:>9}{last / median:>8.2f}")


def growth(longest: int) -> None:
    """Seconds per megabyte of every method at lengths up to the longest."""
    sizes = [size for size in (1, 5, 10, 25, 50) if size <= longest]
    print(f"\n{'ms per MB at':16}" + "".join(f"{f'{size} MB':>9}" for size in sizes))
    for method in get_args(ChunkingMethod):
        if method == "semantic":
            continue  # its time is the embedder's
        row = []
        for size in sizes:
            text = handbook(size * MEGABYTE)
            started = time.perf_counter()
            chunk_text(text, method=method)
            row.append((time.perf_counter() - started) * 1000 / size)
        print(f"{method:16}" + "".join(f"{value:>9.0f}" for value in row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--longest", type=int, default=50, help="megabytes of the second table; 0 leaves it out")
    arguments = parser.parse_args()
    if langchain(1000, 200, None) is None:
        print("LangChain is not installed: pip install -r benchmarks/requirements.txt adds its rows.")
    text = handbook(int(arguments.megabytes * MEGABYTE))
    kinds = {
        "lines and paragraphs": text,
        "one line, sentences only": " ".join(text.split()),
        "Korean": (TEXTS / "leave_and_remote_work_ko.md").read_text("utf-8") * int(len(text) / 5000),
    }
    for kind, sample in kinds.items():
        compare(f"1000/200, {kind}", sample, {
            "ours, smart": ours("smart", 1000, 200),
            "LangChain, its own separators": langchain(1000, 200, None),
        }, arguments.rounds)  # fmt: skip
        compare(f"1200/200, {kind}", sample, {
            "ours, recursive": ours("recursive", 1200, 200),
            "LangChain, source 003's separators": langchain(1200, 200, list(SEPARATORS)),
        }, arguments.rounds)  # fmt: skip
    if arguments.longest:
        growth(arguments.longest)


if __name__ == "__main__":
    main()
