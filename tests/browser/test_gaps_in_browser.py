"""From a question that nobody could answer to an answer in the asker's conversation, as two people do it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import settle, sign_up, start_product
from tests.browser.tables import BOX, click_row
from tests.browser.test_every_page import ask, open_page, signed_in_as
from tests.patience import patient

pytestmark = pytest.mark.browser

QUESTION = "How much does the firm pay towards a parking permit at Northgate station?"
ANSWER = "# Parking permits\n\nThe firm pays 40 euros a month towards a parking permit at Northgate station.\n"


def test_a_document_uploaded_from_a_gap_solves_it_and_the_asker_reads_so(browser: Browser, tmp_path: Path) -> None:
    product = start_product(tmp_path / "data")
    try:
        admin = sign_up(browser, product)
        employee = signed_in_as("Employee", browser, product, admin)
        asker = employee.new_page()
        open_page(asker, product.address)
        ask(asker, QUESTION)
        asker.get_by_role("button", name="Ask HR").click()
        expect(asker.get_by_text("Passed on to the people in charge", exact=False)).to_be_visible()

        page = admin.new_page()
        open_page(page, product.address + "/analytics?analytics_view=Unanswered questions")
        upload = page.get_by_role("button", name="Upload a document")
        click_row(page, 0, BOX, upload)
        upload.click()
        dialog = page.get_by_role("dialog")
        expect(
            dialog.get_by_text("people who asked to be told are told in their conversations", exact=False)
        ).to_be_visible()
        dialog.locator("input[type=file]").set_input_files(
            {"name": "parking permits.md", "mimeType": "text/markdown", "buffer": ANSWER.encode()}
        )
        expect(dialog.get_by_text("parking permits.md")).to_be_visible()
        dialog.get_by_role("button", name="Upload", exact=True).click()
        expect(page.get_by_text("Now answered. 1 person is told in their conversation.")).to_be_visible(
            timeout=patient(60_000)
        )
        expect(page.get_by_text("There are no unanswered questions in this period.")).to_be_visible()
        page.get_by_role("radio", name="Now answered", exact=True).click()
        click_row(page, 0, BOX, page.get_by_text("now answered by Parking permits", exact=False))

        asker.reload()
        expect(asker.get_by_text("A person answered", exact=False)).to_be_visible()
        expect(asker.get_by_text("The documents answer this now: see “Parking permits”. Ask again.")).to_be_visible()
        settle(asker)
        asker.get_by_role("button", name="Ask again").click()
        expect(asker.get_by_test_id("stChatMessage").last).to_contain_text("40 euros")
    finally:
        product.stop()
