"""The product without a mouse: everything here is reached with Tab and opened with a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect
from reportlab.pdfgen.canvas import Canvas

from tests.browser.conftest import EMAIL, PASSWORD, Product, settle
from tests.browser.tables import press_in_no_field
from tests.patience import patient

pytestmark = pytest.mark.browser

#: What has the focus, as it is called or begins; the page itself, which can have it too, holds every word.
FOCUSED = """(() => {
  const element = document.activeElement;
  return (element.getAttribute("aria-label") || element.innerText || element.tagName).slice(0, 80);
})()"""
MOST_STEPS = 60


def tab_to(page: Page, words: str, *, back: bool = False) -> None:
    """Press Tab until what has the focus says `words`."""
    seen = []
    for _ in range(MOST_STEPS):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        seen.append(str(page.evaluate(FOCUSED)))
        if words in seen[-1]:
            return
    raise AssertionError(f"{words} is not reached with Tab: {seen}")


@pytest.mark.usefixtures("offline_admin")
def test_a_question_is_asked_and_its_source_opened_and_closed(offline_product: Product, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
    page = context.new_page()
    page.goto(offline_product.address)
    expect(page.get_by_label("E-mail")).to_be_focused()
    page.keyboard.type(EMAIL)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_text("How can I help")).to_be_visible()
    settle(page)
    tab_to(page, "Ask in HR documents")
    page.keyboard.type("How many days of annual leave do full-time employees have?")
    page.keyboard.press("Enter")
    expect(page.get_by_text("27 days of annual leave").first).to_be_visible()
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    settle(page)
    tab_to(page, "Open page", back=True)
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog")
    expect(drawer.locator("img").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    assert "Open page" in str(page.evaluate(FOCUSED)), "the focus is back where the source was opened"
    context.close()


def choose_file(page: Page, path: Path) -> None:
    """A key that meets the page while it is drawn again is lost, as a person's is, who presses it again."""
    for seconds in (5, 5, 30):
        tab_to(page, "Upload")
        try:
            with page.expect_file_chooser(timeout=patient(seconds * 1000)) as chooser:
                page.keyboard.press("Space")
        except TimeoutError:
            page.keyboard.press("Shift+Tab")
            continue
        chooser.value.set_files(path)
        return
    pytest.fail("The key for Upload opens no choice of files.")


def test_a_file_is_chosen_and_becomes_ready(
    offline_product: Product, offline_admin: BrowserContext, tmp_path: Path
) -> None:
    canvas = Canvas(str(tmp_path / "bicycle_rules.pdf"))
    canvas.drawString(72, 760, "Bicycles stand in the shed behind the mill. The code of its door changes every month.")
    canvas.save()
    page = offline_admin.new_page()
    page.goto(offline_product.address + "/documents")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    settle(page)
    choose_file(page, tmp_path / "bicycle_rules.pdf")
    # It costs nothing here, so nobody is asked.
    expect(page.get_by_text("is ready").first).to_be_visible(timeout=patient(60_000))
    page.close()


def test_a_question_of_the_analytics_is_opened_as_the_page_says(
    offline_product: Product, offline_admin: BrowserContext
) -> None:
    page = offline_admin.new_page()
    page.goto(offline_product.address)
    page.fill("[data-testid=stChatInputTextArea]", "Who pays for the dental plan?")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    page.goto(offline_product.address + "/analytics?analytics_view=Questions")
    expect(page.get_by_text("Shift + Space on the keyboard")).to_be_visible()
    settle(page)
    tab_to(page, "Fullscreen: Questions asked")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    expect(page.get_by_text("first words after", exact=False)).to_be_visible()
    page.close()


def test_esc_closes_the_list_of_shortcuts_and_not_the_document_below_it(
    offline_page: Page, offline_product: Product
) -> None:
    page = offline_page
    page.goto(f"{offline_product.address}/library")
    page.get_by_role("button", name="Verlofbeleid").click()
    picture = page.locator("img[alt*='Verlofbeleid']")
    expect(picture).to_be_visible()
    settle(page)
    listed = page.get_by_text("Turn the pages of an open document")
    press_in_no_field(page, "?", listed)
    expect(listed).to_be_visible()
    page.keyboard.press("Escape")
    expect(listed).to_have_count(0)
    expect(picture).to_be_visible()
    page.get_by_role("button", name="Ask this document").click()
    expect(page.get_by_test_id("stChatInputTextArea")).to_be_focused()
    expect(page.get_by_text("Only in Verlofbeleid")).to_be_visible()
    page.keyboard.type("?")  # is text while somebody writes
    expect(page.get_by_test_id("stChatInputTextArea")).to_have_value("?")


def test_the_table_of_documents_is_seen_whole_on_a_small_screen(
    offline_product: Product, offline_admin: BrowserContext
) -> None:
    page = offline_admin.new_page()  # 1280 pixels wide
    page.goto(offline_product.address + "/documents")
    scroller = page.locator("[data-testid=stDataFrame] .dvn-scroller")
    expect(scroller).to_be_visible()
    settle(page)
    # The table takes its width from where it is, after it was drawn.
    page.wait_for_function("place => place.scrollWidth <= place.clientWidth", arg=scroller.element_handle())
    page.close()
