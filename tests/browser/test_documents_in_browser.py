"""The library as an HR administrator uses it: drop, compare, keep both, open, correct, tick, delete and undo."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Product, settle
from tests.browser.tables import TITLE, click_row, tick, until_shown
from tests.patience import patient

pytestmark = pytest.mark.browser

DROP = """([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name, { type: "text/plain" }));
  for (const kind of ["dragover", "drop"])
    document.querySelector("h1").dispatchEvent(
      new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


def drop(page: Page, name: str, text: str) -> None:
    """Drop a file on the heading of the page."""
    settle(page)
    page.evaluate(DROP, [name, text])


def test_documents_are_dropped_compared_opened_ticked_deleted_and_had_back(
    offline_product: Product, offline_admin: BrowserContext
) -> None:
    page = offline_admin.new_page()
    page.goto(offline_product.address + "/documents")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    settle(page)
    # The table tells screen readers of the columns in sight, and of no others.
    columns = page.get_by_test_id("stDataFrame").locator("canvas [role=columnheader]")
    expect(columns).not_to_have_count(0)
    heads = columns.all_text_contents()
    assert {"Title", "File name", "Status", "Language", "Owner", "Updated", "Cost"} <= set(heads), heads
    scrolls = "document.querySelector('[data-testid=stMain]')"
    # One scroll, that of the table; while samples are still read, a line above it says so.
    page.wait_for_function(f"{scrolls}.scrollHeight - {scrolls}.clientHeight < 40", timeout=patient(30_000))

    drop(page, "film.mp4", "no text")
    expect(page.get_by_text("1 file not added")).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    drop(page, "parking_rules.txt", "Bicycles are parked in the cellar. Cars are parked on level two.")
    expect(page.get_by_text("is ready").first).to_be_visible()
    drop(page, "parking_rules.txt", "Bicycles are parked in the cellar. Cars are parked on level five.")
    expect(page.get_by_text("Replaces version 1 of Parking rules: 1 page differs")).to_be_visible(
        timeout=patient(20_000)
    )
    page.get_by_text("Compare page 1").click()
    expect(page.get_by_text("on level two.")).to_be_visible()
    expect(page.get_by_text("on level five.")).to_be_visible()
    keep_both = page.get_by_role("button", name="Keep both")
    until_shown(lambda: keep_both.click() if keep_both.count() else None, page.get_by_text("Parking rules (2)").first)
    while page.get_by_role("button", name="Dismiss").count():
        page.get_by_role("button", name="Dismiss").first.click()
        settle(page)

    page.get_by_placeholder("Search in titles and text").fill("bicycles cellar")
    expect(page.get_by_text(re.compile(r"^2 of \d+ documents\."))).to_be_visible()
    panel = page.get_by_role("dialog")
    click_row(page, 0, TITLE, panel)
    expect(panel.get_by_text("on level five.")).to_be_visible()
    panel.get_by_role("tab", name="Details").click()
    panel.get_by_label("Title").fill("Parking since May")
    panel.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").get_by_text("Parking since May").first).to_be_visible()
    page.get_by_role("tab", name="Try a question").click()
    page.get_by_label("Ask this document").fill("Where are cars parked?")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Passages that the answer uses")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)

    tick(page, 0, 1)
    page.get_by_role("button", name="Delete 2 documents").click()
    expect(page.get_by_text("2 documents are in the bin")).to_be_visible()
    expect(page.get_by_text("No document matches.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text(re.compile(r"^2 of \d+ documents\."))).to_be_visible()

    # New files for both: one is known by its name, the other is chosen; dropped beside the dialog, they are its own.
    tick(page, 0, 1)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Replace with new files").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("New files for 2 documents")).to_be_visible()
    drop(page, "Parking 2031.txt", "Bicycles are parked in the cellar. Cars are parked on level eight.")
    expect(dialog.get_by_text("Parking 2031.txt").last).to_be_visible()
    show = dialog.get_by_role("button", name="Show what changes")
    expect(show).to_be_disabled()
    dialog.get_by_role("combobox", name="Replaces").click()
    page.get_by_role("option", name="Parking since May").click()
    expect(dialog.get_by_text("Unchanged: Parking rules")).to_be_visible()
    show.click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("of Parking since May: 1 page differs")).to_be_visible()
    page.get_by_role("button", name="Remove this file").click()
    expect(page.get_by_text("The file is in the bin.")).to_be_visible()

    # Other tests ask this product: the documents of this one leave it.
    tick(page, 0, 1)
    page.get_by_role("button", name="Delete 2 documents").click()
    expect(page.get_by_text("2 documents are in the bin")).to_be_visible()
    page.close()


def test_a_row_opens_wherever_it_is_clicked_and_no_box_and_no_key_opens_one(
    offline_product: Product, offline_admin: BrowserContext
) -> None:
    page = offline_admin.new_page()
    page.goto(offline_product.address + "/documents")
    table = page.get_by_test_id("stDataFrame").first
    expect(table).to_be_visible()
    page.get_by_placeholder("Search in titles and text").fill("Employee handbook")
    expect(page.get_by_text(re.compile(r"^\d+ of \d+ documents?\."))).to_be_visible()
    settle(page)
    panel = page.get_by_role("dialog")
    tick(page, 0)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    settle(page)
    expect(panel).to_have_count(0)

    def close() -> None:
        # A key that comes while the panel is drawn again is lost.
        until_shown(lambda: page.keyboard.press("Escape"), page.locator("body:not(:has([role=dialog]))"))

    box = table.bounding_box()
    assert box is not None
    for across in (240, box["width"] / 2, box["width"] - 20):
        click_row(page, 0, int(across), panel)
        expect(panel.get_by_role("heading", name="Employee handbook").first).to_be_visible()
        close()

    # On a narrow page the title is out of sight once the table is scrolled sideways.
    page.set_viewport_size({"width": 420, "height": 900})
    settle(page)
    page.locator(".dvn-scroller").first.evaluate("table => table.scrollLeft = 300")
    click_row(page, 0, 200, panel)
    expect(panel.get_by_role("heading", name="Employee handbook").first).to_be_visible()
    close()
    assert page.locator(".dvn-scroller").first.evaluate("table => table.scrollLeft") == 300
    page.close()


def test_marks_lie_on_the_picture_of_a_page_until_they_are_switched_off(
    browser: Browser, offline_product: Product, offline_admin: BrowserContext
) -> None:
    page = offline_admin.new_page()
    stored = page.request.get(offline_product.address + "/api/documents?limit=100").json()["documents"]
    handbook = next(document["id"] for document in stored if document["fileName"] == "ottermere_handbook.pdf")
    address = f"{offline_product.address}/documents?document={handbook}"
    picture = page.locator("img[src*='pages/1.png']")

    def open_panel() -> None:
        page.goto(address)

    until_shown(open_panel, picture)
    heading = page.locator("[title=Heading]").first
    expect(heading).to_be_visible()
    around, inner = picture.bounding_box(), heading.bounding_box()
    assert around is not None
    assert inner is not None
    assert around["x"] < inner["x"] < inner["x"] + inner["width"] < around["x"] + around["width"]
    assert around["y"] < inner["y"] < inner["y"] + inner["height"] < around["y"] + around["height"]

    page.get_by_role("switch", name="Show marks").press("Space")
    expect(heading).to_have_count(0)
    expect(page.get_by_text("Headings:")).to_have_count(0)
    page.close()

    arabic = browser.new_context(locale="ar", storage_state=offline_admin.storage_state())
    page = arabic.new_page()
    page.goto(address)
    label = page.locator("[data-testid=stCheckbox] label").filter(has=page.get_by_role("switch", checked=True)).first
    track, knob = label.locator("> div").first.bounding_box(), label.locator("> div > div").first.bounding_box()
    assert track is not None
    assert knob is not None
    assert track["x"] < knob["x"] < track["x"] + track["width"] / 2  # from right to left, as all of the page
    arabic.close()


@pytest.mark.parametrize(("place", "name"), [("stFileUploaderDropzone", "canoes"), ("stDataFrame", "kayaks")])
def test_the_files_of_a_dropped_folder_are_taken_with_their_folders(
    place: str, name: str, offline_product: Product, offline_page: Page, tmp_path: Path
) -> None:
    """Two files of one name in it are two documents."""
    page, folder = offline_page, tmp_path / "Rules"
    for country in ("Chad", "Peru"):
        (folder / country).mkdir(parents=True)
        (folder / country / f"{name}.txt").write_text(f"The {name} of {country}: {uuid4()}.", encoding="utf-8")
    (folder / ".hidden").write_text("not for readers", encoding="utf-8")
    page.goto(f"{offline_product.address}/documents")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    settle(page)
    box = page.get_by_test_id(place).first.bounding_box()
    assert box is not None
    chrome = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
        chrome.send("Input.dispatchDragEvent", {"type": kind, "x": box["x"] + 150, "y": box["y"] + 20, "data": data})
    for country in ("Chad", "Peru"):
        ready = page.get_by_text(f"{name.title()} ({country}) is ready")
        expect(ready).to_be_visible(timeout=patient(20_000))
    assert ".hidden" not in page.get_by_test_id("stMainBlockContainer").inner_text()
    # Without folders the table has its usual width for other tests.
    at = offline_product.address + "/api/documents"
    for document in page.request.get(at + "?limit=100").json()["documents"]:
        if document["fileName"] == f"{name}.txt":
            gone = page.request.delete(f"{at}/{document['id']}", headers={"Origin": offline_product.address})
            assert gone.ok, gone.text()
