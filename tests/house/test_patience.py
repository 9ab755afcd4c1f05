"""Every wait of the tests is a patient one, and none compares times of the clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import patience

TESTS = Path(__file__).resolve().parents[1]
#: Options and arguments that say how long to wait, and the shortest wait that is a deadline and not a pause.
OPTIONS = {"timeout", "default_timeout", "connect_timeout", "timeout_seconds"}
WAITS = {"wait", "join", "result", "settimeout", "wait_until_idle", "wait_until_written"}
LEAST = 1
CLOCKS = {"monotonic", "perf_counter"}
#: By file, what is the thing under test, or a pause, and why.
ALLOWED = {
    "browser/test_chat_keys.py": {"timeout=2000"},  # how long until a key is pressed again
    "kill_storm.py": {"monotonic() + life"},  # until a worker is killed
    "patience.py": {"perf_counter() -"},  # measures the machine
    "payload.py": {"settimeout(5)"},  # of connections that have to be refused
    "standins/providers.py": {"- monotonic()", "timeout_seconds=18.0"},  # keeps the pace of a stream
    "journeys/test_lifecycle.py": {"settimeout(7)"},  # a connection that is idle for longer than uvicorn's five seconds
}
#: `meet` of the stand-ins makes what it is given patient.
PATIENT = {"patient", "meet"}


def called(node: ast.AST) -> str:
    """Return the last name of what a call calls, else nothing."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def seconds(node: ast.AST) -> float:
    """Return a number that is written as such, else 0."""
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return node.value if is_number else 0  # type: ignore[attr-defined]


def impatient(source: str) -> Iterator[str]:
    """Yield deadlines that are plain numbers, and differences of times."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and called(node) not in PATIENT:
            for option in node.keywords:
                if option.arg in OPTIONS and seconds(option.value) >= LEAST:
                    yield f"{option.arg}={seconds(option.value)}"
            if (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in WAITS
                and node.args
                and seconds(node.args[0]) >= LEAST
            ):
                yield f"{node.func.attr}({seconds(node.args[0])})"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            if called(node.left) in CLOCKS:
                yield f"{called(node.left)}() -"
            elif called(node.right) in CLOCKS:
                yield f"- {called(node.right)}()"
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Add)
            and called(node.left) in CLOCKS
            and called(node.right) != "patient"
        ):
            yield f"{called(node.left)}() + {ast.unparse(node.right)}"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("process.wait(timeout=20)", ["timeout=20"]),
        ("process.wait(timeout=patient(20))", []),
        ("thread.join(5)", ["join(5)"]),
        ("ready.wait(0.02)", []),
        ("' '.join(words)", []),
        ("until = time.monotonic() + seconds", ["monotonic() + seconds"]),
        ("until = time.monotonic() + patient(seconds)", []),
        ("assert time.perf_counter() - began < 3", ["perf_counter() -"]),
        ("standin.meet('chat', 2, timeout_seconds=60)", []),
    ],
)
def test_a_plain_deadline_is_found(source: str, found: list[str]) -> None:
    assert list(impatient(source)) == found


def test_no_test_waits_with_a_plain_deadline_or_compares_times() -> None:
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        name = path.relative_to(TESTS).as_posix()
        left = set(impatient(path.read_text("utf-8"))) - ALLOWED.get(name, set())
        if left:
            found[name] = sorted(left)
    assert found == {}, "write patient(…) around the number, or wait for the thing itself (tests/patience.py)"


@pytest.mark.parametrize(
    ("seconds", "factor"),
    [
        pytest.param(patience.QUIET_SECONDS / 4, patience.MARGIN, id="fast"),
        pytest.param(patience.QUIET_SECONDS * 3, patience.MARGIN * 3, id="three times as slow"),
        pytest.param(3600, patience.MOST, id="asleep"),
    ],
)
def test_the_factor_follows_the_machine_within_bounds(seconds: float, factor: float) -> None:
    assert patience.factor_of(seconds) == pytest.approx(factor)


def test_a_factor_in_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(patience.VARIABLE, "2.5")
    patience.factor.cache_clear()
    try:
        assert patience.patient(20) == 50
    finally:
        patience.factor.cache_clear()
