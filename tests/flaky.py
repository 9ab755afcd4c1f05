"""Tests that fail are run once more. Those that pass then are named at the end, and too many of them fail the run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest

#: So many tests in a browser may be flaky, and so many others; a run with more has a cause that somebody has to find.
MOST_FLAKY = 2
KINDS = ("in a browser", "elsewhere")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.flaky(reruns=1))


def flaky_tests(config: pytest.Config) -> dict[str, list[str]]:
    """Return the names of tests that failed and then passed, by kind."""
    stats = config.pluginmanager.getplugin("terminalreporter").stats
    failed = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, [])}
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for report in stats.get("rerun", []):
        if report.nodeid not in failed:
            found[KINDS[0] if "browser" in report.keywords else KINDS[1]].add(report.nodeid)
    return {kind: sorted(names) for kind, names in found.items()}


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workerinput"):
        return
    most = max(map(len, flaky_tests(session.config).values()))
    if exitstatus == pytest.ExitCode.OK and most > MOST_FLAKY:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = flaky_tests(config)
    terminalreporter.section("flaky")
    for name in list(chain(*found.values())) or ["none"]:
        terminalreporter.line(name)
    for kind, names in found.items():
        if len(names) > MOST_FLAKY:
            terminalreporter.line(
                f"{len(names)} flaky tests {kind} are too many: the run fails from {MOST_FLAKY + 1} on."
            )
    # What pytest shows in full is the second try's failure.
    for report in terminalreporter.stats.get("rerun", []):
        for line in told(report):
            terminalreporter.line(line)


def told(report: pytest.TestReport) -> Iterator[str]:
    """Yield where and why the first try of a test failed, and what was on its pages."""
    crash = getattr(report.longrepr, "reprcrash", None)
    reason = f"{crash.path}:{crash.lineno}: {crash.message[:2000]}" if crash else report.longreprtext[-1000:]
    yield f"first try of {report.nodeid}: {reason}"
    for title, text in report.sections:
        if title.startswith("browser: "):
            yield f"{title.removeprefix('browser: ')}: {text}"
