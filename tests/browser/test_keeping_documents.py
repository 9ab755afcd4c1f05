"""Many documents kept in order: tagged, moved and read again together; a wrong language put right by hand."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Product, settle
from tests.browser.test_documents_in_browser import BOX, TITLE, cells, click_row, drop

pytestmark = pytest.mark.browser


#: Shows a number of four digits in the row of actions; its height then.
AS_THOUSANDS = """() => {
  const row = document.querySelector(".st-key-documents_bulk");
  const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), changed = [];
  while (texts.nextNode())
    if (texts.currentNode.data.includes("2")) changed.push(texts.currentNode);
  const put = (from, to) => changed.forEach(text => text.data = text.data.replace(from, to));
  put("2", "2,050");
  const height = row.getBoundingClientRect().height;
  put("2,050", "2");
  return height;
}"""


def add(page: Page, name: str, text: str) -> None:
    """Drop a file, wait until it is ready, and put its card away."""
    drop(page, name, text)
    expect(page.get_by_text("is ready").first).to_be_visible(timeout=20_000)
    page.get_by_role("button", name="Dismiss").first.click()
    expect(page.get_by_text("is ready")).to_have_count(0)


def search(page: Page, text: str, found: int) -> None:
    page.get_by_placeholder("Search in titles and text").fill(text)
    expect(page.get_by_text(f"{found} documents. Click")).to_be_visible()


def tick(page: Page, *rows: int) -> None:
    for number, row in enumerate(rows, 1):
        click_row(page, row, BOX)
        expect(page.get_by_text(f"{number} selected")).to_be_visible()


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
    # With a number of four digits the actions are one row as well.
    assert page.evaluate(AS_THOUSANDS) < 60
    page.get_by_role("button", name="Tag", exact=True).click()
    page.get_by_role("combobox", name="Add").fill("machines")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Change 2 documents").click()
    expect(cells(page, "machines")).to_have_count(2)

    page.get_by_role("button", name="Move", exact=True).click()
    page.get_by_role("combobox", name="To the folder").fill("Safety")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Move 2 documents").click()
    expect(cells(page, "Safety")).to_have_count(2)

    page.get_by_role("button", name="Process again").click()
    page.get_by_role("button", name="Read the files again").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Process all 2 ($0.00)").click()
    expect(page.get_by_text("wait for your yes")).to_have_count(0)
    expect(page.get_by_text("is ready").first).to_be_visible()
    expect(page.get_by_text("In progress")).to_have_count(0)
    while page.get_by_role("button", name="Dismiss").count():
        page.get_by_role("button", name="Dismiss").first.click()
        settle(page)

    click_row(page, 0, TITLE)
    panel = page.get_by_role("dialog")
    panel.get_by_role("tab", name="Details").click()
    panel.get_by_role("combobox", name="Language").click()
    page.get_by_role("option", name="German").click()
    panel.get_by_role("button", name="Save").click()
    expect(panel.get_by_role("tab", name="Details")).to_be_visible()
    settle(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(cells(page, "German")).not_to_have_count(0)
    page.close()
