"""The same question has the same answer in every process: sets have another order in each, and sums round by order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_every_process_says_the_same_with_the_same_scores() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.answering.said"],
            cwd=PROJECT,
            env={"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2", "3")
    ]
    first, *others = [process.communicate()[0] for process in running]
    assert all(process.returncode == 0 for process in running)
    assert first.count("Quotes(") >= 40
    assert others == [first, first]
