"""Runs of small suites: what is run again, what the summary names, and when a run fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patient

PROJECT = Path(__file__).resolve().parents[2]
SUITE = """
from pathlib import Path
import pytest

def tries(name):
    with Path(name).open("a") as file:
        file.write("x")
    return Path(name).stat().st_size

@pytest.mark.browser
@pytest.mark.parametrize("number", range({flaky}))
def test_passes_at_the_second_try(number):
    assert tries(f"second-{{number}}") == 2

@pytest.mark.browser
def test_passes():
    assert tries("passes") == 1
"""
NEVER = """
@pytest.mark.browser
def test_never_passes():
    assert tries("never") == 0
"""
ELSEWHERE = """
@pytest.mark.parametrize("number", range({flaky}))
def test_without_a_browser(number):
    assert tries(f"elsewhere-{{number}}") == 2
"""


def run(folder: Path, suite: str, *options: str) -> tuple[int, list[str]]:
    """Run a suite; return its exit status and the lines of its summary."""
    (folder / "test_suite.py").write_text(suite)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\nmarkers =\n  browser: is run again\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.flaky", "-p", "no:cacheprovider", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=folder, env={**environment, "PYTHONPATH": str(PROJECT)}, capture_output=True, text=True,
        timeout=patient(60), check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    heads = [number for number, line in enumerate(lines) if line.strip("= ") == "flaky"]
    assert len(heads) == 1, done.stdout + done.stderr
    return done.returncode, lines[heads[0] + 1 :]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_two_flaky_tests_are_named_and_the_run_passes(tmp_path: Path, workers: str) -> None:
    status, summary = run(tmp_path, SUITE.format(flaky=2), "-n", workers)
    assert status == 0
    assert summary[:2] == [f"test_suite.py::test_passes_at_the_second_try[{number}]" for number in range(2)]
    first = next(line for line in summary if line.startswith(f"first try of {summary[0]}: "))
    assert first.endswith("AssertionError: assert 1 == 2"), first


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(("browser", "elsewhere"), [(3, 2), (2, 3)])
def test_a_third_flaky_test_of_a_kind_fails_the_run(tmp_path: Path, workers: str, browser: int, elsewhere: int) -> None:
    suite = SUITE.format(flaky=browser) + ELSEWHERE.format(flaky=elsewhere)
    status, summary = run(tmp_path, suite, "-n", workers)
    assert status == 1
    kind = "in a browser" if browser == 3 else "elsewhere"
    assert summary[5] == f"3 flaky tests {kind} are too many: the run fails from 3 on."
    assert not summary[6].endswith("from 3 on.")


def test_two_flaky_tests_of_each_kind_do_not(tmp_path: Path) -> None:
    status, summary = run(tmp_path, SUITE.format(flaky=2) + ELSEWHERE.format(flaky=2))
    assert status == 0
    assert len({line for line in summary[:4] if line.startswith("test_suite.py::")}) == 4


def test_a_test_that_fails_twice_fails_and_is_not_flaky(tmp_path: Path) -> None:
    status, summary = run(tmp_path, SUITE.format(flaky=0) + NEVER)
    assert status == 1
    assert summary[0] == "none"
    assert (tmp_path / "never").read_text() == "xx"
