"""What it costs to confine the processes that read files: the same work in confined and in free ones, turn by turn.

    python -m benchmarks.confinement [--rounds 15]

Each round does a task once in both, in changing order. What is compared is processor time, of the process that reads or
of the one that was started, and a figure is the median of the rounds' ratios: so it is steady beside other work.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rag.ingestion.loaders.ocr import TESSERACT_SCALE, run_tesseract
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits
from rag.sandbox.confinement import READING, AccessRules

SAMPLES = sorted((Path(__file__).resolve().parent.parent / "rag" / "samples").glob("*.pdf"))
FREE = replace(READING, without=frozenset({"landlock", "seccomp", "account", "network"}))


Task = Callable[[], float]
"""Does the work and returns the processor time it took, in seconds."""


def ratio(confined: Task, free: Task, rounds: int) -> tuple[float, float, float]:
    """The median of what a confined task takes as a multiple of a free one, and the medians of both in seconds."""
    taken: dict[bool, list[float]] = {True: [], False: []}
    for round_number in range(rounds + 1):
        for is_confined in (True, False) if round_number % 2 else (False, True):
            taken[is_confined].append((confined if is_confined else free)())
    held, let = taken[True][1:], taken[False][1:]  # the first warms up
    ratios = [mine / other for mine, other in zip(held, let, strict=True)]
    return statistics.median(ratios), statistics.median(held), statistics.median(let)


def of_reader(sandbox: Sandbox, work: Callable[[], object], *, times: int) -> Task:
    """Of the one process a sandbox has, which the kernel counts in hundredths of a second."""

    def run() -> float:
        before = reader_seconds(sandbox)
        for _ in range(times):
            work()
        return reader_seconds(sandbox) - before

    return run


def reader_seconds(sandbox: Sandbox) -> float:
    (process,) = sandbox._all
    fields = Path(f"/proc/{process._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def of_children(work: Callable[[], object]) -> Task:
    """Of processes that are started and end in it."""

    def run() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        work()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return run


def reading(sandbox: Sandbox) -> Task:
    contents = [path.read_bytes() for path in SAMPLES]
    return of_reader(sandbox, lambda: [sandbox.extract_pages(content) for content in contents], times=2)


def drawing(sandbox: Sandbox) -> Task:
    content = SAMPLES[0].read_bytes()
    return of_reader(sandbox, lambda: sandbox.draw_page(content, 1, highlight="", scale=2.0), times=10)


def starting(rules: AccessRules) -> Task:
    def start() -> None:
        sandbox = Sandbox(ExtractionLimits(), processes=1, rules=rules)
        sandbox.means()
        sandbox.close()

    return of_children(start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    pairs = [[Sandbox(ExtractionLimits(), processes=1, rules=rules) for rules in (READING, FREE)] for _ in range(2)]
    (confined, free), to_draw = pairs
    for sandbox in (confined, free, *to_draw):
        print(dict(sandbox.means()))
    print("| task | confined / free | confined ms | free ms |\n|---|---|---|---|")
    rows = [
        (f"read {len(SAMPLES)} sample PDFs", reading(confined), reading(free), rounds),
        ("draw a page", *map(drawing, to_draw), rounds),
        ("start a process and load its libraries", starting(READING), starting(FREE), max(rounds // 2, 3)),
    ]
    if program := shutil.which("tesseract"):
        picture = free.draw_page(SAMPLES[0].read_bytes(), 1, highlight="", scale=TESSERACT_SCALE)
        command = [program, "stdin", "stdout", "-l", "eng", "--psm", "3"]
        rows.append((
            "recognise a page with Tesseract",
            of_children(lambda: run_tesseract(program, picture, "eng")),
            of_children(lambda: subprocess.run(command, input=picture, capture_output=True, check=True)),
            max(rounds // 2, 3),
        ))  # fmt: skip
    for name, held, let, times in rows:
        figure, mine, other = ratio(held, let, times)
        print(f"| {name} | {figure:.3f} | {mine * 1000:,.1f} | {other * 1000:,.1f} |")
    for sandbox in (confined, free, *to_draw):
        sandbox.close()


if __name__ == "__main__":
    main()
