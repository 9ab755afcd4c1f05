"""Documents kept in order: tagged, moved and read again together; language and dates set by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import Product, settle, sign_up, start_product
from tests.browser.tables import TITLE, cells, click_row, tick
from tests.browser.test_documents_in_browser import drop
from tests.patience import patient

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def offline_product(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product of its own: these journeys change rows and columns of the library that other tests look at."""
    running = start_product(tmp_path_factory.mktemp("keeping") / "data")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def offline_admin(browser: Browser, offline_product: Product) -> BrowserContext:
    return sign_up(browser, offline_product)


#: Height of the row of actions, and how far its end is from the tools of the table, in pixels, for a number in it.
ROW = """(number) => {
  const row = document.querySelector(".st-key-documents_bulk");
  const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), changed = [];
  while (texts.nextNode())
    if (texts.currentNode.data.includes("2")) changed.push(texts.currentNode);
  const put = (from, to) => changed.forEach(text => text.data = text.data.replace(from, to));
  put("2", number);
  const ends = [...row.querySelectorAll("button")].map(button => button.getBoundingClientRect().right);
  const tools = document.querySelector("[data-testid=stDataFrame] [data-testid=stElementToolbar]");
  const found = [row.getBoundingClientRect().height, tools.getBoundingClientRect().left - Math.max(...ends)];
  put(number, "2");
  return found;
}"""


def add(page: Page, name: str, text: str) -> None:
    """Drop a file, wait until it is ready, and put its card away. It may be there from a first try of the test."""
    drop(page, name, text)
    is_there = page.get_by_text(re.compile(r"is ready|is in the library already"))
    expect(is_there.first).to_be_visible()
    page.get_by_role("button", name="Dismiss").first.click()
    expect(is_there).to_have_count(0)


def search(page: Page, text: str, found: int) -> None:
    box = page.get_by_placeholder("Search in titles and text")
    settle(page)
    expect(box).to_have_count(1)  # the one before an undo stays until the page is drawn again
    box.fill(text)
    expect(page.get_by_text(re.compile(rf"^{found} of \d+ documents\."))).to_be_visible()


def close_panel(page: Page) -> None:
    """Close the panel of a document. A key that comes while it is drawn again is lost."""
    for _ in range(10):
        settle(page)
        page.keyboard.press("Escape")
        with suppress(AssertionError):
            expect(page.get_by_role("dialog")).to_have_count(0, timeout=patient(2_000))
            # The address says of the panel that the script knows it closed, and that a tick may follow.
            page.wait_for_url(lambda url: "document=" not in url)
            return
    expect(page.get_by_role("dialog")).to_have_count(0)


def put_away(page: Page) -> None:
    """Dismiss the notices of documents that are ready."""
    while page.get_by_role("button", name="Dismiss").count():
        page.get_by_role("button", name="Dismiss").first.click()
        settle(page)


def test_several_documents_are_tagged_moved_read_again_and_one_is_put_right_by_hand(
    offline_product: Product, offline_admin: BrowserContext
) -> None:
    page = offline_admin.new_page()
    page.goto(offline_product.address + "/documents")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    add(page, "ladders.txt", "Ladders are tested every spring by the caretaker of the warehouse.")
    add(page, "forklifts.txt", "Forklifts are tested every autumn by the caretaker of the warehouse.")
    search(page, "caretaker warehouse", 2)

    tick(page, 0, 1)
    for number in ("2", "2,050"):
        height, room = page.evaluate(ROW, number)
        assert height < 60, "the actions break into a second row, and the boxes below move"
        assert room > 0, "the tools of the table cover an action"
    page.get_by_role("button", name="Tag", exact=True).click()
    page.get_by_role("combobox", name="Add").fill("machines")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Change 2 documents").click()
    expect(cells(page, "machines")).to_have_count(2)

    page.get_by_role("button", name="Move", exact=True).click()
    page.get_by_role("combobox", name="Move to the folder").fill("Safety")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Move 2 documents").click()
    expect(cells(page, "Safety")).to_have_count(2)

    # What costs nothing is not asked about.
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Read the files again").click()
    expect(page.get_by_text("is ready").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("In progress")).to_have_count(0)
    put_away(page)

    panel = page.get_by_role("dialog")
    click_row(page, 0, TITLE, panel)
    panel.get_by_role("tab", name="Details").click()
    expect(panel.get_by_role("button", name="Save")).to_be_visible()
    settle(page)
    panel.get_by_role("combobox", name="Language").click()
    page.get_by_role("option", name="German").click()
    expect(panel.get_by_role("combobox", name="Language")).to_have_value("German")
    # The key Escape closes the calendar or the list that is open, and not the panel with what was typed.
    calendar = page.get_by_test_id("stDateInputCalendar")
    panel.get_by_role("spinbutton", name="year, Review on").click()
    expect(calendar).to_be_visible()
    page.keyboard.press("Escape")
    expect(calendar).to_have_count(0)
    panel.get_by_role("combobox", name="Owner").click()
    expect(page.get_by_role("option")).not_to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("option")).to_have_count(0)
    expect(panel.get_by_role("combobox", name="Language")).to_have_value("German")
    # What is typed while the panel is drawn again is lost.
    settle(page)
    panel.get_by_role("spinbutton", name="year, Valid until").click()
    page.keyboard.type("20260115")
    settle(page)
    assert [part[:4] for part in date_of(panel, "Valid until")] == ["2026", "01 –", "15"]
    panel.get_by_role("button", name="Save").click()
    expect(panel.get_by_text("No longer valid since").first).to_be_visible()
    close_panel(page)
    for put_right in ("German", "Expired"):
        expect(cells(page, put_right)).to_have_count(1)

    # The same rows come back with nothing ticked. Other tests ask this product: the second deletion stays.
    for time in (1, 2):
        tick(page, 0, 1)
        page.get_by_role("button", name="Delete 2 documents").click()
        expect(page.get_by_text("2 documents are in the bin")).to_be_visible()
        if time == 1:
            page.get_by_role("button", name="Undo").click()
            expect(page.get_by_text("2 documents are in the bin")).to_have_count(0)
            search(page, "caretaker warehouse", 2)
    page.close()


def date_of(panel: Locator, label: str) -> list[str]:
    """Return year, month and day of a date of the panel as screen readers hear them."""
    parts = (panel.get_by_role("spinbutton", name=f"{part}, {label}") for part in ("year", "month", "day"))
    return [part.get_attribute("aria-valuetext") or part.inner_text() for part in parts]


def type_date(page: Page, panel: Locator, label: str, digits: str) -> None:
    panel.get_by_role("spinbutton", name=f"year, {label}").click()
    page.keyboard.type(digits)
    page.keyboard.press("Tab")
    settle(page)


def test_owner_validity_and_review_are_kept_and_shown_when_the_panel_is_opened_again(
    offline_product: Product, offline_admin: BrowserContext
) -> None:
    page = offline_admin.new_page()
    page.goto(offline_product.address + "/documents")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    add(
        page,
        "oiling_of_the_gates.txt",
        "Gates are oiled every month by the porter of the northern yard, and locked at night.",
    )
    search(page, "porter northern yard", 1)
    panel = page.get_by_role("dialog")
    owner = panel.get_by_role("combobox", name="Owner")
    dates = {"Valid from": "20260201", "Valid until": "20350630", "Review on": "20260301"}

    def open_details() -> None:
        click_row(page, 0, TITLE, panel)
        panel.get_by_role("tab", name="Details").click()
        expect(panel.get_by_role("button", name="Save")).to_be_visible()
        settle(page)

    open_details()
    owner.click()
    page.get_by_role("option", name=re.compile("Admin|Hanna")).first.click()
    chosen = owner.input_value()
    assert chosen
    for label, digits in dates.items():
        type_date(page, panel, label, digits)
    typed = {label: date_of(panel, label) for label in dates}
    panel.get_by_role("button", name="Save").click()
    expect(panel.get_by_text("To be reviewed since").first).to_be_visible()

    # Another tab reads what is stored, and nothing of this one's state.
    page.close()
    page = offline_admin.new_page()
    page.goto(offline_product.address + "/documents")
    search(page, "porter northern yard", 1)
    panel = page.get_by_role("dialog")
    owner = panel.get_by_role("combobox", name="Owner")
    expect(cells(page, re.compile("Admin|Hanna"))).not_to_have_count(0)
    open_details()
    expect(owner).to_have_value(chosen)
    assert {label: date_of(panel, label) for label in dates} == typed
    for label, digits in dates.items():
        assert str(int(digits[:4])) in typed[label][0], typed
    close_panel(page)
    tick(page, 0)
    page.get_by_role("button", name="Delete 1 document").click()
    expect(page.get_by_text("1 document is in the bin")).to_be_visible()
    page.close()


def test_escape_keeps_what_was_typed_about_a_document(offline_product: Product, offline_page: Page) -> None:
    page = offline_page
    page.goto(f"{offline_product.address}/documents")
    panel = page.get_by_role("dialog")
    click_row(page, 0, TITLE, panel)
    panel.get_by_role("tab", name="Details").click()
    title = panel.get_by_role("textbox", name="Title")
    expect(title).to_be_visible()
    settle(page)
    before = title.input_value()
    title.fill(f"{before} of today")
    # With the cursor still in the field.
    close_panel(page)
    expect(page.get_by_text(f"Your changes to “{before}” are not saved yet.")).to_be_visible()
    page.get_by_role("button", name="Continue editing").click()
    expect(title).to_have_value(f"{before} of today")
    settle(page)
    panel.get_by_role("button", name="Discard the changes").click()
    expect(title).to_have_value(before)
    close_panel(page)
    expect(page.get_by_text("are not saved yet")).to_have_count(0)


def test_escape_keeps_a_correction_that_was_typed(offline_product: Product, offline_page: Page) -> None:
    page = offline_page
    page.goto(f"{offline_product.address}/documents")
    panel = page.get_by_role("dialog")
    click_row(page, 0, TITLE, panel)
    panel.get_by_role("button", name="Correct the text").click()
    text = panel.get_by_role("textbox", name="Text of page 1")
    expect(text).to_be_visible()
    settle(page)
    before = text.input_value()
    text.fill(f"Corrected by hand. {before}")
    # With the cursor still in the field.
    close_panel(page)
    expect(page.get_by_text("are not saved yet")).to_be_visible()
    page.get_by_role("button", name="Continue editing").click()
    expect(text).to_have_value(f"Corrected by hand. {before}")
    settle(page)
    panel.get_by_role("button", name="Save").click()
    expect(panel.get_by_text("corrected the text of this page")).to_be_visible()
    expect(panel.get_by_text("Corrected by hand.")).to_be_visible()
    expect(panel.get_by_text("Ready", exact=True)).to_be_visible()
    panel.get_by_role("button", name="Return to the text read from the file").click()
    expect(text).to_have_value(before)
    panel.get_by_role("button", name="Save").click()
    expect(panel.get_by_text("corrected the text of this page")).to_have_count(0)
    expect(panel.get_by_text("Corrections of this page: 2")).to_be_visible()
    close_panel(page)
    expect(page.get_by_text("are not saved yet")).to_have_count(0)
