"""Webhooks on the page Other programs."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.tables import BOX, cells, click_row, remove, table_of, undo


def try_that_a_removed_webhook_is_put_back(address: str, tab: Page) -> None:
    tab.get_by_role("button", name="Add a webhook").click()
    form = tab.get_by_role("dialog")
    form.get_by_label("Address", exact=True).fill("https://payroll.example.com/hook")
    for name, shown in (("", "empty"), ("n" * 81, "this long")):
        form.get_by_label("Name", exact=True).fill(name)
        form.get_by_role("button", name="Add the webhook").click()
        expect(form).to_contain_text(f"Name cannot be {shown}. Enter a text of 1 to 80 characters.")
        expect(form.get_by_label("Name", exact=True)).to_have_value(name)
    form.get_by_label("Name", exact=True).fill("Payroll")
    form.get_by_role("button", name="Add the webhook").click()
    tab.get_by_role("button", name="I have copied it").click()
    removes = tab.get_by_role("button", name="Remove Payroll")
    click_row(tab, 0, BOX, removes, of=table_of(tab, "Payroll"))
    remove(tab, "Remove Payroll", "Payroll is removed.")
    expect(cells(tab, "Payroll")).to_have_count(0)
    undo(tab, "Payroll is removed.")
    expect(cells(tab, "Payroll")).not_to_have_count(0)
