"""The product as its users meet it: sign up, upload, ask, stop, open the source, rate, read the analytics."""

from __future__ import annotations

import os
import re
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from reportlab.pdfgen.canvas import Canvas

from tests.browser.conftest import EMAIL, PASSWORD, Product, settle, sign_up, start_product
from tests.patience import patient
from tests.standins.providers import ProviderStandin, many_words

pytestmark = pytest.mark.browser

QUESTION = "How many days of annual leave do full-time employees have?"


def ask(page: Page, question: str) -> None:
    page.fill("[data-testid=stChatInputTextArea]", question)
    page.keyboard.press("Enter")


def make_pdf(path: Path, *pages: str) -> Path:
    canvas = Canvas(str(path))
    for text in pages:
        for number, line in enumerate(text.splitlines()):
            canvas.drawString(72, 760 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return path


# Nobody signed in


@pytest.mark.parametrize(
    "path",
    ["/documents", "/api/openapi.json", "/api/me", "/_stcore/host-config", "/media/x.png", "/api/documents/x/file"],
)
def test_a_visitor_is_shown_nothing_but_the_way_in(product: Product, path: str) -> None:
    request = urllib.request.Request(product.address + path)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    with caught.value as answer:
        assert answer.code == 401


def test_a_visitor_of_an_admin_address_lands_on_the_sign_in_page(product: Product, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    page.goto(product.address + "/documents")
    assert "/login" in page.url
    expect(page.locator("input[type=password]")).to_be_visible()
    assert sockets == []
    context.close()


# Without keys


def test_a_newcomer_asks_the_samples_and_opens_the_page(offline_product: Product, offline_page: Page) -> None:
    page = offline_page
    page.goto(offline_product.address)
    expect(page.get_by_text("How can I help")).to_be_visible()
    ask(page, QUESTION)
    expect(page.get_by_text("These are the documents' own words.")).to_be_visible()
    expect(page.get_by_text("27 days of annual leave").first).to_be_visible()
    expect(page.get_by_text("no charge")).to_be_visible()
    page.get_by_role("button", name="Open page").first.click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_text("Employee handbook").first).to_be_visible()
    expect(drawer.locator("img").first).to_be_visible()
    page.wait_for_function(
        "() => [...document.querySelectorAll('[role=dialog] img')].some(i => i.complete && i.naturalWidth > 300)"
    )
    link = drawer.get_by_role("link", name=re.compile("PDF")).first
    assert re.search(r"/api/documents/[0-9a-f-]+/file#page=3$", link.get_attribute("href") or "")


def test_what_the_documents_do_not_say_is_not_answered(offline_product: Product, offline_page: Page) -> None:
    offline_page.goto(offline_product.address)
    ask(offline_page, "What is the capital of France?")
    expect(offline_page.get_by_text("The documents do not answer this question", exact=False)).to_be_visible()


def test_nothing_is_fetched_from_outside(offline_product: Product, offline_page: Page) -> None:
    outside: list[str] = []
    errors: list[str] = []
    # What the policy stops is no request any more, but was tried: icons of pages among it.
    offline_page.add_init_script(
        "window.refused = []; addEventListener('securitypolicyviolation', (e) => refused.push(e.blockedURI));"
    )
    offline_page.on(
        "request",
        lambda request: (
            outside.append(request.url)
            if "localhost" not in request.url and not request.url.startswith(("data:", "blob:"))
            else None
        ),
    )
    offline_page.on("pageerror", lambda error: errors.append(str(error)))
    for path in ("/", "/documents", "/analytics", "/people"):
        offline_page.goto(offline_product.address + path)
        offline_page.wait_for_selector("[data-testid=stSidebarNav]")
        settle(offline_page)
        outside += offline_page.evaluate("refused")
        icons = offline_page.evaluate("[...document.querySelectorAll('link[rel~=icon]')].map((link) => link.href)")
        assert icons == [f"{offline_product.address}/app/static/mark.svg"]
    assert (outside, errors) == ([], [])


# With keys


def test_an_admin_uploads_sees_the_cost_before_and_after(
    product: Product, page: Page, shared_standin: ProviderStandin, tmp_path: Path
) -> None:
    good = make_pdf(
        tmp_path / "Parking rules.pdf",
        "Parking rules\nThe car park opens at 6:15 in the morning.",
        "Visitors\nVisitors park on level 4 and pay 3 euros a day.",
    )
    (tmp_path / "page.pdf").write_text("<html>not a pdf</html>")
    page.goto(product.address + "/documents")
    page.wait_for_selector("input[type=file]", state="attached")
    before = shared_standin.calls["embeddings"]
    page.set_input_files("input[type=file]", [good, tmp_path / "page.pdf"])
    expect(page.get_by_text("This file is not a PDF", exact=False)).to_be_visible()
    expect(page.get_by_text("Confirm before anything is spent")).to_be_visible()
    expect(page.get_by_text("2 pages", exact=False).first).to_be_visible()
    assert shared_standin.calls["embeddings"] == before
    page.get_by_role("button", name=re.compile("Process the file")).first.click()
    expect(page.get_by_text("is ready").first).to_be_visible()
    assert shared_standin.calls["embeddings"] > before
    expect(
        page.get_by_text("Preparing for search $0.0000")
        .or_(page.get_by_text("Preparing for search <", exact=False))
        .first
    ).to_be_visible()


#: Counts the messages in every frame from now on.
COUNT_MESSAGES = """
window.fewestMessages = 99;
(function count() {
  fewestMessages = Math.min(fewestMessages, document.querySelectorAll("[data-testid=stChatMessage]").length);
  requestAnimationFrame(count);
})()
"""


def test_an_employee_follows_a_streamed_answer_to_its_page(
    product: Product, page: Page, shared_standin: ProviderStandin
) -> None:
    shared_standin.token_interval_seconds = 0.02
    shared_standin.reply("Full-time employees have **27 days** of annual leave a year [1].")
    page.goto(product.address)
    ask(page, QUESTION)
    expect(page.get_by_text("27 days").first).to_be_visible()
    expect(page.get_by_role("button", name="Open page").first).to_be_visible()
    expect(page.get_by_text("Employee handbook").first).to_be_visible()
    settle(page)
    page.evaluate(COUNT_MESSAGES)
    page.locator("[data-testid=stFeedback] button").first.click()
    page.get_by_text("Comment").first.click()
    assert page.evaluate("fewestMessages") == 2, "nothing flickers when the page is drawn again"
    page.get_by_label("What was good?").fill("Right page")
    page.keyboard.press("Tab")
    page.reload()
    expect(page.get_by_text("27 days").first).to_be_visible()


def test_stop_keeps_what_was_written(product: Product, page: Page, shared_standin: ProviderStandin) -> None:
    shared_standin.write(20)
    shared_standin.reply("Beginning of the answer. " + many_words(1000))
    page.goto(product.address)
    ask(page, "Where do visitors park, in all detail?")
    expect(page.get_by_text("Beginning of the answer", exact=False)).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped", exact=False).first).to_be_visible()
    expect(page.get_by_text("Beginning of the answer", exact=False)).to_be_visible()


def test_a_refresh_attaches_to_the_answer_again(product: Product, page: Page, shared_standin: ProviderStandin) -> None:
    shared_standin.write(20)
    shared_standin.reply("Here it starts. " + many_words(80) + "Here it ends [1].")
    page.goto(product.address)
    ask(page, "Where do visitors park on Sundays?")
    expect(page.get_by_text("Here it starts", exact=False)).to_be_visible()
    page.reload()
    expect(page.get_by_text("Here it starts", exact=False)).to_be_visible()
    shared_standin.write(None)
    expect(page.get_by_text("Here it ends", exact=False)).to_be_visible()


def test_text_grows_in_every_tab_and_the_stored_answer_takes_its_place(
    product: Product, page: Page, shared_standin: ProviderStandin
) -> None:
    shared_standin.write(20)
    shared_standin.reply("**It begins** here. " + many_words(120) + "It ends here [1].")
    page.goto(product.address)
    ask(page, "Where do visitors park at night?")
    growing = page.locator("[data-answer]")
    expect(growing.locator("strong")).to_have_text("It begins")
    before = growing.inner_text()
    shared_standin.write(100)
    page.wait_for_function(
        "(length) => document.querySelector('[data-answer]').innerText.length > length", arg=len(before)
    )
    assert "It ends" not in growing.inner_text()
    # In one step in the browser: each event draws the growing paragraph again, and one that is gone has no look.
    look = """(selector) => {
      const paragraph = document.querySelector(selector);
      const { fontSize, fontWeight, lineHeight, color, marginBottom } = getComputedStyle(paragraph);
      return { fontSize, fontWeight, lineHeight, color, marginBottom, left: paragraph.getBoundingClientRect().left };
    }"""
    while_growing = page.evaluate(look, "[data-answer] p")
    expect(page.locator(".st-key-chat_now[role=log][aria-live=polite] [data-answer]")).to_be_visible()
    second = page.context.new_page()
    second.goto(page.url)
    expect(second.locator("[data-answer] strong")).to_have_text("It begins")
    shared_standin.write(None)
    for tab in (page, second):
        expect(tab.get_by_text("It ends here", exact=False)).to_be_visible()
        expect(tab.locator("[data-answer]")).to_have_count(0)
        expect(tab.get_by_text("It begins", exact=True)).to_have_count(1)
    assert page.evaluate(look, ".st-key-chat_now [data-testid=stMarkdownContainer] p") == while_growing
    second.close()


def test_a_wrong_key_is_said_in_plain_words(product: Product, page: Page, shared_standin: ProviderStandin) -> None:
    shared_standin.accepted_key = "another"
    try:
        page.goto(product.address)
        ask(page, "Where may visitors park their cars?")
        expect(page.get_by_text("rejected the API key", exact=False).first).to_be_visible()
        assert page.get_by_text("Traceback").count() == 0
    finally:
        shared_standin.accepted_key = None


def test_a_manager_reads_the_analytics(product: Product, page: Page) -> None:
    page.goto(product.address)
    ask(page, "Where do visitors park?")
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    page.goto(product.address + "/analytics")
    expect(page.get_by_text("How questions ended")).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    page.get_by_role("tab", name="Costs").click()
    expect(page.locator(".js-plotly-plot").last).to_be_visible()
    page.get_by_role("tab", name="Questions", exact=True).click()
    expect(page.locator("[data-testid=stDataFrame]").first).to_be_visible()


@pytest.mark.usefixtures("admin")
def test_signing_out_ends_every_tab(product: Product, browser: Browser) -> None:
    context = browser.new_context()
    first = context.new_page()
    first.goto(product.address)
    first.fill("input[name=email]", EMAIL)
    first.fill("input[name=password]", PASSWORD)
    first.click("button[type=submit]")
    first.wait_for_selector("[data-testid=stChatInputTextArea]")
    second = context.new_page()
    second.goto(product.address)
    second.wait_for_selector("[data-testid=stChatInputTextArea]")
    first.get_by_role("button", name=re.compile("Admin")).click()
    first.get_by_role("button", name="Sign out").click()
    first.wait_for_url("**/login**")
    second.wait_for_url("**/login**")
    context.close()


def test_a_page_that_is_not_there_says_so_in_our_words(page: Page, product: Product) -> None:
    page.goto(f"{product.address}/payroll")
    expect(page.get_by_text("There is no page “payroll” here. Choose one in the menu, or ask below.")).to_be_visible()
    settle(page)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "main page" not in page.inner_text("body")


# The process


def test_it_starts_again_after_a_kill_with_everything_there(tmp_path: Path) -> None:
    first = start_product(tmp_path / "data", python=(sys.executable,), RAG_SAMPLES="false")
    first.process.send_signal(signal.SIGKILL)
    first.has_ended()
    second = start_product(tmp_path / "data", python=(sys.executable,), RAG_SAMPLES="false")
    second.stop()
    assert not (tmp_path / "data" / "postgres" / "postmaster.pid").exists()


def test_a_tab_that_stayed_open_over_a_restart_begins_a_new_chat_at_the_first_click(
    browser: Browser, tmp_path: Path
) -> None:
    first = start_product(tmp_path / "data", RAG_SAMPLES="false")
    context = sign_up(browser, first)
    page = context.new_page()
    page.goto(first.address)
    ask(page, "How many days of annual leave do employees have?")
    expect(page.get_by_test_id("stChatMessage")).to_have_count(2)
    settle(page)
    old = page.url
    assert "c=" in old
    first.stop()
    expect(page.locator("[data-test-connection-state=CONNECTED]")).to_have_count(0)
    # Said in our words, without Streamlit's dialog for developers; what is being written stays.
    expect(page.get_by_role("alert")).to_contain_text("The connection is lost")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "Streamlit" not in page.inner_text("body")
    second = start_product(tmp_path / "data", RAG_SAMPLES="false", PORT=first.address.rsplit(":", 1)[1])
    expect(page.locator("[data-test-connection-state=CONNECTED]")).to_have_count(1, timeout=patient(60_000))
    expect(page.get_by_text("The connection is lost")).to_have_count(0)
    page.get_by_role("button", name="New chat").click()
    expect(page.get_by_test_id("stChatMessage")).to_have_count(0)
    ask(page, "Who pays for hotels?")
    expect(page.get_by_test_id("stChatMessage")).to_have_count(2)
    settle(page)
    assert page.url != old
    page.goto(old)
    expect(page.get_by_test_id("stChatMessage")).to_have_count(2)
    context.close()
    second.stop()


def test_a_port_in_use_is_one_sentence(product: Product, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"is in use\. Stop what uses it, or choose another"):
        start_product(tmp_path / "data", PORT=product.address.rsplit(":", 1)[1])


def children() -> set[str]:
    """Return the processes that this one started and that have not ended."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not list processes in /proc")
def test_a_start_that_takes_too_long_leaves_no_process(tmp_path: Path) -> None:
    before = children()
    with pytest.raises(AssertionError, match="did not start"):
        start_product(tmp_path / "data", seconds=0, python=(sys.executable,))
    assert children() == before
