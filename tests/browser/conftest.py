"""Fixtures for the running product in a real browser. Without Chromium, the tests are skipped with a message."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread, Timer
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.forked import forked_python, kill
from tests.patience import patient
from tests.standins.providers import ProviderStandin, default_reply

PROJECT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A page lives for seconds, so optimizing its scripts on other threads costs more time than it saves.
    "--js-flags=--efficiency-mode --invocation-count-for-maglev=4000 --invocation-count-for-turbofan=20000",
]
#: A shared product is signed in to once, and may run longer than a sign-in normally counts as recent.
DEFAULTS = {"PYTHONUNBUFFERED": "1", "RAG_RECENT_SIGN_IN_MINUTES": "600"}
#: The first browser found is used. The headless shell takes a fifth less processor time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
EMAIL, PASSWORD = "admin@example.com", "a long pass phrase"

expect.set_options(timeout=patient(20_000))

#: Sets `window.isAsked` to true while the page has asked the server for a run which is not drawn yet. The page's own
#: state shows a run only after the server has announced it. Runs started by a timer are left out, because they never
#: stop coming.
WATCH = """
(rerun, byTimer, newSession, finished, early) => {
  let hasBegun = false;
  window.isAsked = false;
  // Of a message of protocol buffers, by number: a number itself, else the bytes.
  const fields = (bytes) => {
    const found = {};
    let at = 0;
    const number = () => {
      let value = 0, scale = 1, byte;
      do { byte = bytes[at++]; value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
      return value;
    };
    while (at < bytes.length) {
      const tag = number(), kind = tag & 7, first = kind ? 0 : number();
      const length = { 1: 8, 2: kind === 2 ? number() : 0, 5: 4 }[kind] || 0;
      found[Math.floor(tag / 8)] = kind ? bytes.subarray(at, at + length) : first;
      at += length;
    }
    return found;
  };
  window.WebSocket = class extends WebSocket {
    constructor(...options) {
      super(...options);
      this.addEventListener("message", ({ data }) => {
        if (!(data instanceof ArrayBuffer)) return;
        const message = fields(new Uint8Array(data));
        if (newSession in message) hasBegun = true;
        if (hasBegun && finished in message && message[finished] !== early) window.isAsked = false;
      });
      this.addEventListener("close", () => { window.isAsked = false; });
    }
    send(data) {
      super.send(data);
      const asked = data instanceof Uint8Array ? fields(data)[rerun] : null;
      if (!asked || fields(asked)[byTimer]) return;
      hasBegun = false;
      window.isAsked = true;
    }
  };
}"""
NUMBERS = (
    BackMsg.RERUN_SCRIPT_FIELD_NUMBER,
    ClientState.IS_AUTO_RERUN_FIELD_NUMBER,
    ForwardMsg.NEW_SESSION_FIELD_NUMBER,
    ForwardMsg.SCRIPT_FINISHED_FIELD_NUMBER,
    ForwardMsg.FINISHED_EARLY_FOR_RERUN,
)
#: How many times in a row, a moment apart, the page must be at rest and unchanged.
RESTED = 10
REST = """async (rested) => {
  const moment = () => new Promise((done) => setTimeout(done, 16));
  let count = 0;
  const watch = new MutationObserver(() => { count = 0; });
  watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  // What changes without an end, such as a growing answer, is looked at as it is.
  for (let looks = 0; count < rested && looks < 20 * rested; looks++) {
    await moment();
    const isBusy = window.isAsked
      || !document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]")
      || document.querySelector("[data-testid=stSkeleton]");
    count = isBusy ? 0 : count + 1;
  }
  watch.disconnect();
}"""


@dataclass
class Product:
    """A running copy of the product with its own folder."""

    process: subprocess.Popen[str]
    address: str
    folder: Path
    #: The lines of its output so far.
    lines: list[str] = field(default_factory=list)
    #: Reads the output, because a process stops when it writes to a full pipe.
    reader: Thread | None = None

    @property
    def link(self) -> str:
        return next(str(found[0]) for line in self.lines if (found := re.findall(r"http\S+/welcome\S+", line)))

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.has_ended()

    def has_ended(self) -> None:
        """Wait until the product has ended with every process it started."""
        self.process.wait(timeout=patient(20))
        assert self.reader is not None
        assert self.process.stdout is not None
        self.reader.join(patient(20))
        self.process.stdout.close()

    def end(self) -> None:
        """End the product: with SIGTERM, on which it stops its processes, and if it does not end, with SIGKILL."""
        self.process.terminate()
        try:
            self.process.wait(timeout=patient(20))
        except subprocess.TimeoutExpired:
            kill(self.process)
            self.process.wait()


def start_product(
    folder: Path, *, seconds: float = 120, python: tuple[str, ...] | None = None, **environment: str
) -> Product:
    """Start `python -m rag serve` on a free port, or on `PORT`, and wait until it reports that it is ready.

    If it is not ready after `seconds`, it is ended with the processes it started. `python` is by default forked from a
    process which has imported the product.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = environment.get("PORT") or probe.getsockname()[1]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    process = subprocess.Popen(
        [*(python or forked_python()), "-m", "rag", "serve"],
        cwd=PROJECT,
        env={**kept, **DEFAULTS, "PORT": str(port), "RAG_DATA_DIR": str(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    product = Product(process, f"http://localhost:{port}", folder)
    assert process.stdout is not None
    # Ending the product also ends its output, so the loop below ends even if it prints nothing.
    watch = Timer(patient(seconds), product.end)
    watch.start()
    try:
        for line in process.stdout:
            product.lines.append(line)
            if "Ctrl-C stops everything" in line:
                product.reader = Thread(target=product.lines.extend, args=[process.stdout], daemon=True)
                product.reader.start()
                return product
    finally:
        watch.cancel()
    product.end()
    process.stdout.close()
    raise AssertionError(f"the product did not start: {''.join(product.lines)}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium on this machine (Debian: apt install chromium-headless-shell)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=FLAGS, timeout=patient(30_000))
        new_context = opened.new_context

        def patient_context(**options: Any) -> BrowserContext:
            context = new_context(**options)
            context.set_default_timeout(patient(30_000))
            context.add_init_script(f"({WATCH})(...{list(NUMBERS)})")
            return context

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opened, "new_context", patient_context)
            yield opened
        opened.close()


#: Fixtures shared by several tests in which tests leave nothing behind.
UNCHANGED = ("browser", "standin")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a test which runs again after a failure a new product, without the documents of the first run."""
    if getattr(item, "execution_count", 1) > 1 and isinstance(item, pytest.Function):
        for name, definitions in item._fixtureinfo.name2fixturedefs.items():
            for definition in definitions:
                if definition.func.__module__.startswith("tests.browser.") and name not in UNCHANGED:
                    definition.finish(cast("Any", item._request))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failure the text of the pages and the last output of the products."""
    report = yield
    if report.failed and report.when == "call" and isinstance(item, pytest.Function):
        opened = item.funcargs.get("browser")
        for page in [page for context in getattr(opened, "contexts", []) for page in context.pages]:
            with suppress(PlaywrightError):
                shown = page.locator("body").aria_snapshot(timeout=patient(5_000))
                report.sections.append((f"browser: {page.url}", shown))
        for name, product in item.funcargs.items():
            if isinstance(product, Product):
                report.sections.append((f"browser: {name}", "".join(product.lines[-20:])))
    return report


@pytest.fixture(scope="session")
def standin() -> Iterator[ProviderStandin]:
    with ProviderStandin() as running:
        yield running


@pytest.fixture
def shared_standin(standin: ProviderStandin) -> Iterator[ProviderStandin]:
    """The providers of `product` for one test; afterwards their replies and speed are reset."""
    yield standin
    standin.write(None)
    standin.token_interval_seconds = 0.0
    standin.reply(default_reply)


@pytest.fixture(scope="session")
def offline_product(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product without any key, in a folder with a space and Hangul in its name."""
    product = start_product(tmp_path_factory.mktemp("offline") / "인사 data")
    yield product
    product.stop()


@pytest.fixture(scope="session")
def product(browser: Browser, standin: ProviderStandin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with keys, whose providers are the stand-in."""
    running = start_product(
        tmp_path_factory.mktemp("keyed") / "data",
        OPENAI_API_KEY="sk-test",
        OPENAI_BASE_URL=standin.openai_url,
        COHERE_API_KEY="co-test",
        COHERE_BASE_URL=standin.cohere_url,
    )
    yield running
    running.stop()


def settle(page: Page) -> None:
    """Wait until every run which the page asked for has ended and is drawn, including parts loaded late."""
    page.wait_for_function("() => !window.isAsked")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", state="attached")
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.evaluate(REST, RESTED)


def sign_up(browser: Browser, product: Product) -> BrowserContext:
    """Create the first administrator through the link on the console; return a signed-in browser context."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
    page = context.new_page()
    page.goto(product.link)
    page.fill("input[name=name]", "Admin")
    page.fill("input[name=email]", EMAIL)
    page.fill("input[name=password]", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_selector("[data-testid=stChatInputTextArea]")
    page.close()
    return context


@pytest.fixture(scope="session")
def offline_admin(browser: Browser, offline_product: Product) -> BrowserContext:
    return sign_up(browser, offline_product)


@pytest.fixture(scope="session")
def admin(browser: Browser, product: Product) -> BrowserContext:
    return sign_up(browser, product)


@pytest.fixture
def page(admin: BrowserContext) -> Iterator[Page]:
    opened = admin.new_page()
    yield opened
    opened.close()


@pytest.fixture
def offline_page(offline_admin: BrowserContext) -> Iterator[Page]:
    opened = offline_admin.new_page()
    yield opened
    opened.close()
