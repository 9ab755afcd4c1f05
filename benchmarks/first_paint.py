"""How soon the chat is seen and can be used, and how long another page takes: Chromium on the server's own cores.

    python -m benchmarks.first_paint [--runs 5] [--documents 2000]

The server has been asked once before. Each run opens the chat in a browser that knows nothing of it, then once more
with what that browser has kept, and goes to other pages by their links. Counted are the browser's own first contentful
paint, the moment the field for a question can be typed in, and from a click on a link to the new page with nothing left
to draw. With `--documents` so many more are made, and words are typed into the search of the documents page: counted is
from the last letter to the number of documents above the table. At the end every page is opened by its address, on a
desk and on a phone: counted is how far what is drawn moves by itself (the browser's own layout shift, all added up).
Needs Playwright (`pip install playwright`) and a Chromium (`--chromium`, `/usr/bin/chromium` otherwise).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, sync_playwright
from psycopg.conninfo import make_conninfo

from benchmarks.library import add_documents
from benchmarks.product import Product
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, start_server

#: Milliseconds: the first paint of the chat, until it can be used, to another page, and from a word to its documents.
PAINT_MS, READY_MS, SWITCH_MS, SEARCH_MS = 1000.0, 2000.0, 700.0, 200.0
#: The most that a page may move by itself, of a whole window, and the windows.
MOST_SHIFT = 0.05
WINDOWS = {"desk": (1280, 860), "phone": (390, 844)}
PAGES = ("Documents", "Analytics", "Chat")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
#: Notes in `typed` and `shown` when a letter came in, and when the line above the table said another number.
WATCH = """() => {
  const line = () => document.body.innerText.match(/[\\d,]+( of [\\d,]+)? documents?\\.|No document matches/)?.[0];
  window.typed = window.shown = null;
  const was = line();
  document.addEventListener("input", () => { typed = performance.now(); }, { capture: true, once: true });
  const look = () => {
    if (typed && line() !== was) shown = performance.now(); else requestAnimationFrame(look);
  };
  look();
}"""
#: What has moved since the page was opened; a page on which nothing did has no entry to wait for.
SHIFTED = """() => new Promise((done) => {
  new PerformanceObserver((list) => done(
    list.getEntries().filter((entry) => !entry.hadRecentInput).reduce((sum, entry) => sum + entry.value, 0)
  )).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(0), 500);
})"""
SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]'


def opened(context: BrowserContext, url: str) -> tuple[Page, float, float]:
    """Open the chat; its first paint and the moment it can be used, in milliseconds."""
    page = context.new_page()
    begun = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator("textarea").last.wait_for(state="visible", timeout=30_000)
    ready_ms = (time.perf_counter() - begun) * 1000
    page.wait_for_function(f"({FIRST_PAINT}) !== null")
    return page, float(page.evaluate(FIRST_PAINT)), ready_ms


def switched(page: Page, title: str) -> float:
    """Go to another page by its link; milliseconds until it is drawn."""
    link = page.locator('[data-testid="stSidebarNavLink"]', has_text=title).first
    begun = time.perf_counter()
    link.click()
    page.wait_for_function("title => document.title.startsWith(title)", arg=title, timeout=30_000)
    page.locator(SETTLED).wait_for(timeout=30_000)
    return (time.perf_counter() - begun) * 1000


def searched(page: Page, words: str) -> float:
    """Type words into the search of the documents page; milliseconds until the number of documents has changed."""
    page.evaluate(WATCH)
    page.get_by_placeholder("Search in titles and text").fill(words)
    page.wait_for_function("() => shown", timeout=30_000)
    took_ms = float(page.evaluate("shown - typed"))
    page.locator(SETTLED).wait_for(timeout=30_000)
    return took_ms


def pages_of(context: BrowserContext, url: str) -> list[str]:
    """The addresses that the sidebar leads to, and the account's."""
    page = context.new_page()
    page.goto(url)
    links = page.locator('[data-testid="stSidebarNavLink"]')
    links.first.wait_for()
    page.locator(SETTLED).wait_for(timeout=30_000)
    found = [*links.evaluate_all("links => links.map((link) => new URL(link.href).pathname)"), "/account"]
    page.close()
    return found


def shifted(context: BrowserContext, address: str) -> float:
    """Open a page in a tab of its own; how far it moved by itself until it was drawn."""
    page = context.new_page()
    page.goto(address)
    page.locator("[data-testid=stMainBlockContainer] [data-testid=stElementContainer]").first.wait_for(state="attached")
    page.locator(SETTLED).wait_for(timeout=30_000)
    moved = float(page.evaluate(SHIFTED))
    page.close()
    return moved


def add_rules(data_dir: Path, documents: int) -> None:
    """Make documents in the folder of a product that runs."""
    server = start_server(data_dir)
    database = Database(server.application, sealing_key(server.owner))
    database.open()
    add_documents(make_conninfo(server.superuser, dbname=DATABASE), database, documents)
    database.close()


def show(name: str, found_ms: list[float], bar_ms: float) -> bool:
    """Print a row; whether the bar is met by the median."""
    median = statistics.median(found_ms)
    print(f"{name:32}{median:>9.0f}{max(found_ms):>9.0f}{bar_ms:>9.0f}{os.getloadavg()[0]:>8.1f}", flush=True)
    return median <= bar_ms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--documents", type=int, default=0)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    painted: dict[str, list[float]] = {"empty": [], "kept": []}
    ready: dict[str, list[float]] = {"empty": [], "kept": []}
    switches: dict[str, list[float]] = {title: [] for title in PAGES}
    searches: list[float] = []
    addresses: list[str] = []
    with tempfile.TemporaryDirectory(prefix="paint-") as folder, sync_playwright() as playwright:
        product = Product(Path(folder))
        product.start()
        if arguments.documents:
            add_rules(Path(folder), arguments.documents)
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=FLAGS)
        try:
            name, value = product.sign_in_admin().split("=", 1)
            for number in range(-1, arguments.runs):
                context = browser.new_context(viewport={"width": 1280, "height": 860})
                context.add_cookies([{"name": name, "value": value, "url": product.url}])
                for cache in ("empty", "kept"):
                    page, paint_ms, ready_ms = opened(context, product.url)
                    if number >= 0:
                        painted[cache].append(paint_ms)
                        ready[cache].append(ready_ms)
                    if cache == "empty":
                        page.close()
                page.locator(SETTLED).wait_for(timeout=30_000)
                for title in PAGES:
                    took_ms = switched(page, title)
                    if number >= 0:
                        switches[title].append(took_ms)
                if arguments.documents:
                    switched(page, "Documents")
                    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
                    found_ms = [searched(page, words) for words in ("bicycles floor 7", "rule 77", "canteen floor 399")]
                    searches += found_ms if number >= 0 else []
                context.close()
            moved: dict[str, dict[str, float]] = {}
            for window, (width, height) in WINDOWS.items():
                context = browser.new_context(viewport={"width": width, "height": height})
                context.add_cookies([{"name": name, "value": value, "url": product.url}])
                addresses = addresses or pages_of(context, product.url)
                moved[window] = {path: shifted(context, product.url + path) for path in addresses}
                context.close()
        finally:
            browser.close()
            product.stop()
    print(f"{'milliseconds':32}{'median':>9}{'max':>9}{'bar':>9}{'load':>8}")
    met = [show(f"first paint, {cache} cache", painted[cache], PAINT_MS) for cache in painted]
    met += [show(f"ready, {cache} cache", ready[cache], READY_MS) for cache in ready]
    met += [show(f"to {title}", switches[title], SWITCH_MS) for title in PAGES]
    if searches:
        met.append(show(f"search in {arguments.documents:,} documents", searches, SEARCH_MS))
    print(f"\n{'layout shift':32}" + "".join(f"{window:>9}" for window in moved))
    for path in addresses:
        print(f"{path:32}" + "".join(f"{found[path]:>9.3f}" for found in moved.values()))
    met.append(max(max(found.values()) for found in moved.values()) <= MOST_SHIFT)
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
