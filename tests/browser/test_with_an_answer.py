"""What people do with an answer: copy, rate, pass on, share, keep, throw away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Product, settle
from tests.browser.tables import BOX, click_row
from tests.browser.test_every_page import ask, open_page, signed_in_as
from tests.standins.providers import ProviderStandin, default_reply

pytestmark = pytest.mark.browser

QUESTION = "How many days of annual leave do full-time employees have?"
ANSWER = "Full-time employees have **27 days** of annual leave a year [1]."
NEXT = ("Who approves annual leave?", "When is leave booked?", "What about part-time?")


@pytest.fixture(scope="module")
def employee(browser: Browser, product: Product, admin: BrowserContext) -> Iterator[BrowserContext]:
    context = signed_in_as("Employee", browser, product, admin)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


@pytest.fixture
def answering(shared_standin: ProviderStandin) -> Iterator[None]:
    shared_standin.reply(lambda messages: "\n".join(NEXT) if "Suggest 3" in str(messages[0]["content"]) else ANSWER)
    yield
    shared_standin.reply(default_reply)


def asked(context: BrowserContext, product: Product, question: str = QUESTION) -> Page:
    """Ask in a new chat, and wait for what can be done with the answer."""
    page = context.new_page()
    open_page(page, product.address)
    ask(page, question)
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    settle(page)
    return page


def choose(page: Page, title: str, action: str) -> None:
    """Choose what is done with the latest conversation of a title."""
    listed = page.locator(".st-key-chat_recent")
    row = listed.get_by_test_id("stHorizontalBlock").filter(has=page.get_by_role("button", name=title)).first
    row.get_by_role("button").last.click()
    page.get_by_role("menuitem", name=action, exact=True).click()


@pytest.mark.usefixtures("answering")
def test_an_answer_is_copied_with_its_sources_and_shows_no_figures_to_employees(
    employee: BrowserContext, product: Product
) -> None:
    page = asked(employee, product)
    now = page.locator(".st-key-chat_now")
    now.get_by_role("button", name="Copy", exact=True).click()
    expect(now.get_by_role("button", name="Copied")).to_be_visible()
    copied = str(page.evaluate("navigator.clipboard.readText()"))
    assert copied.startswith(ANSWER)
    assert re.search(r"^\[1\] Employee handbook.*, p\. \d", copied, flags=re.MULTILINE), copied
    shown = now.inner_text()
    assert not re.search(r"\d ?%|\$|\d ?ms\b|\d s\b|no charge", shown), shown
    page.close()


@pytest.mark.usefixtures("answering")
def test_a_conversation_is_shared_exported_renamed_pinned_and_deleted(
    employee: BrowserContext, admin: BrowserContext, product: Product, tmp_path: Path
) -> None:
    page = asked(employee, product)
    choose(page, QUESTION[:20], "Share")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Share by link").click()
    link = dialog.locator("code").inner_text().strip()
    assert link == page.url, "with the address that the person came by, not the one that the server listens at"
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    colleague = admin.new_page()
    open_page(colleague, link)
    expect(colleague.get_by_text("Shared by", exact=False)).to_be_visible()
    expect(colleague.get_by_test_id("stChatMessage").get_by_text("27 days")).to_be_visible()
    expect(colleague.get_by_test_id("stFeedback")).to_have_count(0)
    colleague.close()

    choose(page, QUESTION[:20], "Export")
    for kind, begins in (("PDF", b"%PDF-"), ("Word", b"PK"), ("Markdown", b"# ")):
        with page.expect_download() as download:
            dialog.get_by_role("button", name=kind).click()
        path = tmp_path / kind
        download.value.save_as(path)
        assert path.read_bytes().startswith(begins), kind
    assert re.search(r"/api/documents/[0-9a-f-]+/file#page=\d", (tmp_path / "Markdown").read_text())
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    choose(page, QUESTION[:20], "Rename")
    dialog.get_by_role("textbox").fill("Leave of full-timers")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    listed = page.locator(".st-key-chat_recent")
    expect(listed.get_by_role("button", name="Leave of full-timers", exact=True)).to_be_visible()
    choose(page, "Leave of full-timers", "Pin")
    expect(listed.get_by_text("Pinned", exact=True)).to_be_visible()
    choose(page, "Leave of full-timers", "Delete")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_have_count(0)
    expect(listed.get_by_role("button", name="Leave of full-timers")).to_have_count(0)
    expect(page.get_by_text("How can I help")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(listed.get_by_role("button", name="Leave of full-timers", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    page.close()


@pytest.mark.usefixtures("answering")
def test_a_thumb_down_asks_why_and_a_person_answers_into_the_conversation(
    employee: BrowserContext, browser: Browser, admin: BrowserContext, product: Product
) -> None:
    page = asked(employee, product, "How many days of annual leave does an apprentice have?")
    now = page.locator(".st-key-chat_now")
    now.get_by_test_id("stFeedback").locator("button").last.click()
    why = page.get_by_test_id("stPopoverBody")
    # It asks at once, without another click.
    for reason in (
        "The answer is wrong",
        "Something is missing",
        "The answer is out of date",
        "The source does not say this",
    ):
        expect(why.get_by_text(reason, exact=True)).to_be_visible()
    why.get_by_text("The answer is out of date", exact=True).click()
    why.get_by_role("textbox").fill("There are new rules since May.")
    why.get_by_role("button", name="Ask HR").click()
    expect(now.get_by_text("Passed on to the people in charge", exact=False)).to_be_visible()

    context = signed_in_as("Manager", browser, product, admin)
    manager = context.new_page()
    open_page(manager, product.address + "/analytics?analytics_view=Unanswered questions")
    waiting = manager.get_by_text("asked a person", exact=False)
    click_row(manager, 0, BOX, waiting)
    waiting.first.click()
    manager.get_by_role("textbox", name="Answer").fill("It is *28 days* since May.")
    manager.get_by_role("button", name="Send", exact=True).click()
    expect(waiting).to_have_count(0)
    context.close()

    page.reload()
    expect(page.get_by_text("A person answered", exact=False)).to_be_visible()
    expect(page.get_by_text("It is *28 days* since May.")).to_be_visible()
    page.close()


@pytest.mark.usefixtures("answering")
def test_small_talk_is_met_in_its_language_at_no_cost(
    employee: BrowserContext, product: Product, shared_standin: ProviderStandin
) -> None:
    page = employee.new_page()
    open_page(page, product.address)
    before = dict(shared_standin.calls)
    for number, (said, words) in enumerate(
        (
            ("Bedankt!", "graag"),
            ("Hallo, wer bist du?", "Ich"),
            ("write me a poem", "documents"),
            ("너 누구야?", "문서"),
        ),
        1,
    ):
        ask(page, said)
        expect(page.get_by_test_id("stFeedback")).to_have_count(number)
        expect(page.get_by_test_id("stChatMessage").last).to_contain_text(re.compile(words, re.IGNORECASE))
        settle(page)
    assert dict(shared_standin.calls) == before
    page.close()
