"""Widgets on the page Other programs."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.tables import BOX, cells, click_row, remove, table_of, undo


def try_that_a_removed_widget_is_put_back(address: str, tab: Page) -> None:
    tab.get_by_role("button", name="Add a widget").click()
    form = tab.get_by_role("dialog")
    form.get_by_label("Name", exact=True).fill("Intranet corner")
    form.get_by_role("button", name="Add the widget").click()
    expect(form).to_have_count(0)
    removes = tab.get_by_role("button", name="Remove Intranet corner")
    click_row(tab, 0, BOX, removes, of=table_of(tab, "Intranet corner"))
    tag = tab.get_by_text("data-key=").first.inner_text()
    remove(tab, "Remove Intranet corner", "Intranet corner is removed.")
    expect(cells(tab, "Intranet corner")).to_have_count(0)
    undo(tab, "Intranet corner is removed.")
    click_row(tab, 0, BOX, removes, of=table_of(tab, "Intranet corner"))
    assert tab.get_by_text("data-key=").first.inner_text() == tag, "the pages that show it need no other tag"
