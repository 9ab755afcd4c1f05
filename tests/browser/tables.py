"""Tables in a browser: they are pictures, so rows are found by where they are and cells by what screen readers hear."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

from playwright.sync_api import Error, Locator, Page, expect

from tests.browser.conftest import settle
from tests.patience import patient

#: Where a row's box and title are, from the table's corner, and how far rows are apart, in pixels.
BOX, TITLE, FIRST_ROW, ROW = 17, 100, 50, 34


def click_row(page: Page, row: int, across: int, shows: Locator, *, of: Locator | None = None) -> None:
    """Click a row until ``shows`` is seen: a table misses a click that comes while it is drawn again."""
    table = of or page.get_by_test_id("stDataFrame").first

    def click() -> None:
        # A tooltip under which the last click left the mouse would take this one. One whose dialog closed stays open.
        page.mouse.move(0, 0)
        with suppress(AssertionError):
            expect(page.get_by_test_id("stTooltipContent")).to_have_count(0, timeout=patient(2_000))
        settle(page)
        # What came late is there now, and a second click would take it back.
        if shows.count():
            return
        # There is none while the table is drawn again, and the mouse reaches what is in sight.
        with suppress(Error):
            table.scroll_into_view_if_needed(timeout=patient(2_000))
        if corner := table.locator("canvas").first.bounding_box():
            page.mouse.click(corner["x"] + across, corner["y"] + FIRST_ROW + row * ROW)

    until_shown(click, shows)


def until_shown(act: Callable[[], None], shows: Locator) -> None:
    """Do something that a page being drawn again may miss, up to three times, until ``shows`` is there."""
    for _ in range(3):
        act()
        with suppress(AssertionError):
            expect(shows).not_to_have_count(0, timeout=patient(10_000))
            return
    expect(shows).not_to_have_count(0)


def press_in_no_field(page: Page, key: str, shows: Locator) -> None:
    """Press a key that fields would take as text. A dialog that just closed gives the focus back a moment later."""

    def act() -> None:
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(key)

    until_shown(act, shows)


def tick(page: Page, *rows: int) -> None:
    """Tick the boxes of these rows of the documents, one after the other."""
    for number, row in enumerate(rows, 1):
        click_row(page, row, BOX, page.get_by_text(f"{number} selected").first)
    settle(page)


def cells(page: Page, text: str | re.Pattern[str]) -> Locator:
    """Return the cells of tables that show a text."""
    return page.locator("canvas [role=gridcell]", has_text=text)


def remove(page: Page, label: str, said: str) -> None:
    """Press a red button, say yes, and see what is said."""
    button = page.get_by_role("button", name=label)
    expect(button.locator("span[style*=color], .stMarkdownColoredText").first).to_be_attached()
    button.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=label).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text(said)).to_be_visible()
    settle(page)


def undo(page: Page, said: str) -> None:
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text(said)).to_have_count(0)
    settle(page)


def table_of(page: Page, text: str) -> Locator:
    """Return the table that has a cell with this text."""
    return page.get_by_test_id("stDataFrame").filter(has=cells(page, text))
