"""How soon the analytics page is drawn in a browser where a million questions were asked.

    python -m benchmarks.analytics_in_browser --data FOLDER [--runs 7]

FOLDER is what `python -m benchmarks.analytics_days --data FOLDER` wrote. The product is started on it, and Chromium
runs on the server's own processors. Counted are, from a click on the page's link in the sidebar and from its address,
the time until the figures are there and until the chart is drawn; from a click on another period to its figures; and
from a click on a row of the questions to everything about it. Beside the time that passed is the processor's time of
the product, of Postgres and of Chromium, which depends less on what else runs. Needs Playwright and a Chromium.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import Page, sync_playwright

from benchmarks.first_paint import FLAGS, SETTLED
from benchmarks.product import Product

TENANT = "one"
BARS_MS = {"first view": 1500, "one question": 200}
#: The first bar of the chart of outcomes, and the first figure.
CHART = "[data-testid=stPlotlyChart] .barlayer path"
FIGURE = "[data-testid=stMetricValue]"
#: From a table's corner to the box of its first row, in pixels.
BOX, FIRST_ROW = 17, 50


class Watch:
    """Milliseconds since it was made."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()

    def ms(self) -> float:
        return (time.perf_counter() - self._begun) * 1000


def processes_below(*roots: int) -> set[int]:
    """Return processes and all that they started."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(") ")[2].split()[1])
    found = set(roots)
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def processor_ms(processes: Iterable[int]) -> float:
    taken = 0
    for process in processes:
        for thread in Path(f"/proc/{process}/task").glob("*"):
            with suppress(OSError):
                taken += int((thread / "schedstat").read_text().split()[0])
    return taken / 1e6


class Shares:
    """The processor's time of the product, of Postgres and of Chromium."""

    def __init__(self, product: Product, data: Path) -> None:
        (lock,) = data.rglob("postmaster.pid")
        self._product, self._postgres = product.pid, int(lock.read_text("ascii").split()[0])

    def now(self) -> tuple[float, ...]:
        product, postgres = processes_below(self._product), processes_below(self._postgres)
        browser = processes_below(os.getpid()) - product - postgres - {os.getpid()}
        return tuple(map(processor_ms, (product - postgres, postgres, browser)))


def drawn(page: Page, watch: Watch) -> float:
    """Wait for the figures and for the chart; milliseconds until they are there."""
    page.locator(FIGURE).first.wait_for(timeout=120_000)
    page.locator(CHART).first.wait_for(state="attached", timeout=120_000)
    return watch.ms()


def by_link(page: Page) -> float:
    watch = Watch()
    page.locator('[data-testid="stSidebarNavLink"]', has_text="Analytics").first.click()
    return drawn(page, watch)


def by_address(page: Page) -> float:
    watch = Watch()
    page.goto(urljoin(page.url, "/analytics"), wait_until="commit")
    return drawn(page, watch)


def of_a_period(page: Page, name: str) -> float:
    """Choose another period; milliseconds until its first figure is there."""
    before = page.locator(FIGURE).first.inner_text()
    watch = Watch()
    page.get_by_role("radio", name=name, exact=True).click()
    page.wait_for_function(
        "([figure, before]) => document.querySelector(figure)?.innerText !== before", arg=[FIGURE, before],
        timeout=120_000,
    )  # fmt: skip
    return watch.ms()


def of_a_question(page: Page) -> float:
    """Choose the first of the questions; milliseconds until everything about it is there."""
    corner = page.get_by_test_id("stDataFrame").first.locator("canvas").first.bounding_box()
    assert corner is not None
    watch = Watch()
    page.mouse.click(corner["x"] + BOX, corner["y"] + FIRST_ROW)
    page.get_by_text("Tokens and costs", exact=True).wait_for(timeout=120_000)
    return watch.ms()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--chromium", default="/usr/bin/chromium")
    wanted = arguments.parse_args()
    taken: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    product = Product(wanted.data, RAG_TENANT=TENANT)
    product.start(timeout_seconds=300)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=wanted.chromium, args=FLAGS)
            name, value = product.sign_in_admin().split("=", 1)
            context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
            context.add_cookies([{"name": name, "value": value, "url": product.url}])
            shares = Shares(product, wanted.data)

            def measure(page: Page, what: str, act: Callable[[Page], float], *, counts: bool) -> None:
                # What was begun before is over.
                page.locator(SETTLED).wait_for(timeout=120_000)
                page.wait_for_timeout(1_000)
                before = shares.now()
                passed = act(page)
                # The first run warms the server and the browser.
                if counts:
                    taken[what].append((passed, *(b - a for a, b in zip(before, shares.now(), strict=True))))

            for run in range(-1, wanted.runs):
                page = context.new_page()
                page.goto(product.url)
                measure(page, "first view, by its link", by_link, counts=run >= 0)
                page.goto(product.url)
                measure(page, "first view, by its address", by_address, counts=run >= 0)
                for period in ("7 days", "90 days", "365 days"):
                    measure(page, f"a click on {period}", partial(of_a_period, name=period), counts=run >= 0)
                page.goto(f"{product.url}/analytics?analytics_view=Questions")
                page.get_by_test_id("stDataFrame").first.locator("canvas").first.wait_for(timeout=120_000)
                measure(page, "a click on a question", of_a_question, counts=run >= 0)
                page.close()
            browser.close()
    finally:
        product.stop()
    print(f"ms, medians of {wanted.runs} runs, load {os.getloadavg()[0]:.1f}")
    print(f"{'':30}{'passed':>9}{'most':>9}{'product':>11}{'Postgres':>11}{'Chromium':>11}")
    for what, rows in taken.items():
        passed, *parts = (statistics.median(values) for values in zip(*rows, strict=True))
        most = max(row[0] for row in rows)
        print(f"{what:30}{passed:>9.0f}{most:>9.0f}" + "".join(f"{part:>11.0f}" for part in parts))
    print(f"The bars: {BARS_MS['first view']} for the first view, {BARS_MS['one question']} for one question.")


if __name__ == "__main__":
    main()
