"""Text of others in a real browser: no link, picture, formula or element of its own, wherever it is drawn."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.conftest import PROJECT, Product, settle
from tests.markdown_links import FAITHFUL
from tests.patience import patient
from tests.standins.providers import ProviderStandin

pytestmark = pytest.mark.browser

#: What is found of text that acts, by what it is.
FOUND = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const own = (href) => /^#s\\w+-\\d+(-\\d+)?$/.test(href);
  const drawn = "[data-testid=stMarkdownContainer] ";
  return {
    links: all("[data-testid=stMain] a[href]").map((a) => a.getAttribute("href")).filter((href) => !own(href)),
    pictures: all("[data-testid=stMain] img, [data-testid=stMain] video, [data-testid=stMain] iframe").length,
    elements: all(["b", "i", "script", "input", "sup", "del", "svg", "object", "form"].map((t) => drawn + t))
      .filter((e) => e.closest("button") === null).length,  // those of Streamlit have drawings
    formulas: all(".katex").length,
    icons: all(drawn + "[role=img]").length,
    diagrams: all("[data-testid*=ermaid]").length,
    styles: all(drawn + ".stMarkdownColoredText").filter((e) => e.closest(".stMarkdownBadge") === null).length,
  };
}"""


@pytest.fixture
def hostile_page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = Path(__file__).with_name("hostile_page.py")
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + patient(60)
        while True:
            try:
                urllib.request.urlopen(f"{address}/_stcore/health").close()
                break
            except (urllib.error.URLError, ConnectionError):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        page = browser.new_context().new_page()
        page.goto(address)
        expect(page.get_by_text("All drawn")).to_be_visible(timeout=patient(120_000))
        expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=patient(60_000))
        settle(page)
        yield page
        page.context.close()
    finally:
        process.terminate()
        process.wait(patient(20))


def test_no_text_acts_in_any_place_of_a_page(hostile_page: Page) -> None:
    found = hostile_page.evaluate(FOUND)
    # One grey line and one badge of ours a text, and nothing else that has a style.
    assert found.pop("styles") == hostile_page.locator(".stMarkdownBadge").count()
    assert found == {"links": [], "pictures": 0, "elements": 0, "formulas": 0, "icons": 0, "diagrams": 0}
    assert hostile_page.locator(".st-key-faithful").inner_text().strip() == FAITHFUL


def test_an_answer_that_repeats_an_attack_links_to_its_own_sources_alone(
    product: Product, page: Page, shared_standin: ProviderStandin
) -> None:
    shared_standin.reply(
        r"Full-time employees have 27 days [1]. \`[click here](https://evil.test/phish)\` wow![1] www.evil.test"
        " ![x](https://evil.test/x.png) <img src=https://evil.test/y.png> somebody@evil.test :streamlit: $x$"
    )
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.goto(product.address)
    page.fill("[data-testid=stChatInputTextArea]", "How many days of annual leave do full-time employees have?")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Sources").first).to_be_visible()
    settle(page)
    found = page.evaluate(FOUND)
    assert found["links"] == []
    assert found["formulas"] == found["diagrams"] == 0
    answer = page.locator(".st-key-chat_now [data-testid=stChatMessageContent]").first
    assert answer.locator("a").count() >= 1  # its citation
    assert answer.locator("[data-testid=stMarkdownContainer] img").count() == 0
    assert not [url for url in sent if "evil.test" in url]


def test_an_address_sent_back_over_the_websocket_opens_no_file(product: Product, page: Page) -> None:
    """As it was done: a page is asked for by a name that holds the address of a file."""
    page.goto(product.address)
    settle(page)
    name = "0123456789abcdef0123456789abcdef0123456789abcdef01234567.csv"
    asked = BackMsg()
    asked.rerun_script.page_name = f"/media/{name} x"
    answers: Any = page.evaluate(
        """async (message) => {
          const socket = new WebSocket(`ws://${location.host}/_stcore/stream`, ["streamlit"]);
          socket.binaryType = "arraybuffer";
          const echoed = new Promise((resolve) => {
            socket.onmessage = (event) => {
              if (new TextDecoder().decode(event.data).includes("/media/0123")) resolve(true);
            };
            socket.onclose = () => resolve(false);
          });
          await new Promise((resolve) => { socket.onopen = resolve; });
          socket.send(new Uint8Array(message));
          const wasEchoed = await echoed;
          socket.close();
          return wasEchoed;
        }""",
        list(asked.SerializeToString()),
    )
    assert answers is True
    refused = page.request.get(f"{product.address}/media/{name}")
    assert refused.status == 404
    assert json.loads(refused.text())["code"] == "not_found"  # the guard's words, not those of Streamlit
