"""What an administrator removes says what it is, in red, and is put back with one click, or says why not."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Product, settle
from tests.browser.tables import BOX, cells, click_row, remove, table_of, undo
from tests.browser.test_setting_up import invite

pytestmark = pytest.mark.browser


@pytest.fixture
def tab(offline_admin: BrowserContext) -> Page:
    return offline_admin.new_page()


def test_a_budget_is_put_back(offline_product: Product, tab: Page) -> None:
    tab.goto(offline_product.address + "/prices")
    tab.get_by_role("button", name="Set a budget").click()
    form = tab.get_by_role("dialog")
    form.get_by_label("US dollars a month").fill("250")
    form.get_by_role("button", name="Save").click()
    shown = tab.get_by_text(re.compile("the company: .* of .*250"))
    expect(shown).to_be_visible()
    settle(tab)
    remove(tab, "Remove the budget of the company", "The budget of the company is removed.")
    expect(shown).to_have_count(0)
    undo(tab, "The budget of the company is removed.")
    expect(shown).to_be_visible()
    remove(tab, "Remove the budget of the company", "The budget of the company is removed.")
    tab.close()


def test_an_account_is_enabled_again_and_a_key_says_that_it_is_gone(offline_product: Product, tab: Page) -> None:
    tab.goto(offline_product.address + "/people")
    invite(tab, "leaver@example.com", group="Store")
    tab.get_by_role("dialog").get_by_role("button", name="Done").click()
    tab.get_by_placeholder("Search by name, e-mail or group").fill("leaver")
    tab.keyboard.press("Enter")
    disable = tab.get_by_role("button", name="Disable this account")
    click_row(tab, 0, BOX, disable)
    disable.click()
    tab.get_by_role("dialog").get_by_role("button", name="Disable").click()
    said = re.compile(r"The account of .* is disabled\.")
    expect(tab.get_by_text(said)).to_be_visible()
    expect(tab.get_by_role("button", name="Enable", exact=True)).to_be_visible()
    settle(tab)
    tab.get_by_role("button", name="Undo").click()
    expect(disable).to_be_visible()

    tab.get_by_role("button", name="Make a key").click()
    form = tab.get_by_role("dialog")
    form.get_by_label("Name", exact=True).fill("Old robot")
    form.get_by_role("button", name="Make the key").click()
    tab.get_by_role("button", name="I have copied it").click()
    revoke = tab.get_by_role("button", name="Revoke the key of Old robot")
    click_row(tab, 0, BOX, revoke, of=table_of(tab, "Old robot"))
    revoke.click()
    dialog = tab.get_by_role("dialog")
    expect(dialog.get_by_text("A revoked key cannot be brought back.")).to_be_visible()
    expect(dialog.get_by_text("make a new key and enter the new key in the program.")).to_be_visible()
    dialog.get_by_role("button", name="Revoke the key of Old robot").click()
    expect(cells(tab, "Revoked")).not_to_have_count(0)
    tab.close()
