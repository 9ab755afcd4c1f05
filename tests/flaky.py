"""Browser tests that fail are run once more. Those that pass then are named at the end; three of them fail the run."""

from __future__ import annotations

import pytest

#: A run with so many has a cause that somebody has to look for.
MOST_FLAKY = 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def flaky_tests(config: pytest.Config) -> list[str]:
    """Return the names of tests that failed and then passed."""
    stats = config.pluginmanager.getplugin("terminalreporter").stats
    failed = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, [])}
    return sorted({report.nodeid for report in stats.get("rerun", [])} - failed)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workerinput"):
        return
    if exitstatus == pytest.ExitCode.OK and len(flaky_tests(session.config)) > MOST_FLAKY:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = flaky_tests(config)
    reports = (report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, []))
    if not any("browser" in report.keywords for report in reports):
        return
    terminalreporter.section("flaky")
    for name in found or ["none"]:
        terminalreporter.line(name)
    if len(found) > MOST_FLAKY:
        terminalreporter.line(f"{len(found)} flaky tests are too many: the run fails from {MOST_FLAKY + 1} on.")
