"""A new administrator sets the product up alone: name, key, people, a document, a question, and who may read what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, FilePayload, FloatRect, Page, expect

from tests.browser.conftest import EMAIL, Product, settle, sign_up, start_product
from tests.browser.tables import BOX, cells, click_row, until_shown
from tests.browser.test_product import make_pdf
from tests.patience import patient
from tests.standins.providers import ProviderStandin

pytestmark = pytest.mark.browser
#: The part of the screen that is taken as the company's mark.
MARK: FloatRect = {"x": 0, "y": 0, "width": 240, "height": 60}


@pytest.fixture(scope="module")
def company(
    browser: Browser, standin: ProviderStandin, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Product, BrowserContext]]:
    """A copy without keys whose provider is the stand-in, and its first administrator. One folder may be followed."""
    folder = tmp_path_factory.mktemp("company")
    papers = folder / "papers"
    papers.mkdir()
    (papers / "travel.md").write_text("# Travel\n\nTrains are booked in second class.")
    running = start_product(folder / "data", OPENAI_BASE_URL=standin.openai_url, RAG_SYNC_FOLDERS=str(papers))
    context = sign_up(browser, running)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield running, context
    context.close()
    running.stop()


@pytest.fixture
def tab(company: tuple[Product, BrowserContext]) -> Iterator[Page]:
    opened = company[1].new_page()
    yield opened
    opened.close()


def invite(page: Page, people: str, *, group: str) -> None:
    """Invite people on the page People, up to the dialog with their links."""
    page.get_by_role("button", name="Invite many").click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="E-mail addresses").fill(people)
    form.get_by_role("textbox", name="Group (optional)").fill(group)
    form.get_by_role("button", name="Invite and get the links").click()
    expect(page.get_by_role("dialog").get_by_text("Send each person their own link")).to_be_visible()


#: What a company has at hand, by file name.
PAPERS = {
    "employee_handbook": ("Working hours are 38 a week.", "Cars are parked on level two, bicycles in the cellar."),
    "leave_policy": ("Full-time employees have 27 days of annual leave.",),
    "benefits": ("The dental plan pays 80 percent of a treatment.", "Glasses are paid for every two years."),
    "travel_rules": ("Trains are booked in second class.",),
    "sick_leave": ("Report sick before nine o'clock by telephone.",),
    "notice_periods": ("The notice period in probation is two weeks.",),
}


def test_a_new_company_is_set_up_to_the_end_of_its_checklist(
    company: tuple[Product, BrowserContext], browser: Browser, tab: Page, tmp_path: Path
) -> None:
    address = company[0].address
    tab.goto(address + "/set-up")
    expect(tab.get_by_text("0 of 5 steps done")).to_be_visible()
    tab.get_by_label("Company name").fill("Alder & Sons")
    tab.get_by_role("button", name="Save", exact=True).click()
    expect(tab.get_by_text("The name is saved.")).to_be_visible()
    mark: FilePayload = {"name": "mark.png", "mimeType": "image/png", "buffer": tab.screenshot(clip=MARK)}
    tab.locator("input[type=file]").set_input_files(mark)
    expect(tab.get_by_text("The logo is saved.")).to_be_visible()
    expect(tab.get_by_test_id("stMain").get_by_test_id("stImage")).to_be_visible()
    for label, language, heading in (("Language", "Deutsch", "Einrichtung"), ("Sprache", "English", "Set-up")):
        tab.get_by_role("combobox", name=label).click()
        tab.get_by_role("option", name=language).click()
        expect(tab.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    tab.get_by_label("Key of OpenAI").fill("sk-test-1234")
    tab.get_by_role("button", name="Check and save").first.click()
    expect(tab.get_by_text("The key for OpenAI works and is saved.")).to_be_visible()
    expect(tab.get_by_text("2 of 5 steps done")).to_be_visible()

    tab.get_by_role("link", name="Invite people").click()
    invite(tab, "Ada <ada@example.com>\ngrace@example.com", group="Works council")
    links = tab.get_by_role("dialog")
    links.get_by_role("button", name="Copy the link").first.click()
    expect(links.get_by_role("button", name="Copied").first).to_be_visible()
    copied = str(tab.evaluate("navigator.clipboard.readText()"))
    assert copied.startswith(address + "/set-password?token="), copied
    links.get_by_role("button", name="Done").click()
    expect(tab.get_by_text("3 active accounts")).to_be_visible()
    expect(cells(tab, "Invited")).to_have_count(2)
    invited = browser.new_context(locale="en-US")
    theirs = invited.new_page()
    theirs.goto(copied)
    theirs.fill("input[name=password]", "another long pass phrase")
    theirs.click("button[type=submit]")
    expect(theirs.get_by_text("How can I help, Ada?")).to_be_visible()
    expect(theirs.get_by_role("link", name="Set-up")).to_have_count(0)
    invited.close()

    tab.goto(address + "/set-up")
    expect(tab.get_by_text("3 of 5 steps done")).to_be_visible()
    tab.get_by_role("link", name="Add documents").click()
    expect(tab.get_by_role("heading", name="Documents")).to_be_visible()
    settle(tab)
    files = [make_pdf(tmp_path / f"{name}.pdf", *pages) for name, pages in PAPERS.items()]
    tab.locator("input[type=file]").set_input_files(files)
    process = tab.get_by_role("button", name=re.compile(r"^Process all 6\b"))
    expect(process).to_be_visible(timeout=patient(60_000))
    ready = tab.get_by_text("6 documents are ready")
    until_shown(lambda: process.click() if process.count() else None, ready)
    tab.goto(address + "/set-up")
    tab.get_by_role("link", name="Ask a question").click()
    tab.get_by_test_id("stChatInputTextArea").fill("Where are cars parked?")
    tab.keyboard.press("Enter")
    expect(tab.get_by_test_id("stFeedback")).to_be_visible()
    tab.goto(address + "/set-up")
    expect(tab.get_by_text("5 of 5 steps done")).to_be_visible()
    tab.get_by_role("button", name="Finish", exact=True).click()
    expect(tab.get_by_text("5 of 5 steps done")).to_have_count(0)
    tab.reload()
    tab.get_by_test_id("stExpander").get_by_text("Company", exact=True).click()
    expect(tab.get_by_role("textbox", name="Company name")).to_have_value("Alder & Sons")
    expect(tab.get_by_text("steps done")).to_have_count(0)


def test_what_one_person_can_read_is_on_their_card(company: tuple[Product, BrowserContext], tab: Page) -> None:
    tab.goto(company[0].address + "/people")
    invite(tab, "mary@example.com", group="Site office")
    tab.get_by_role("dialog").get_by_role("button", name="Done").click()
    tab.get_by_placeholder("Search by name, e-mail or group").fill("site office")
    tab.keyboard.press("Enter")
    expect(cells(tab, EMAIL)).to_have_count(0)
    expect(cells(tab, "mary@example.com")).not_to_have_count(0)
    reads = tab.get_by_text("What this person can read")
    click_row(tab, 0, BOX, reads)
    until_shown(reads.click, tab.get_by_text("Employees see only their own conversations."))
    expect(cells(tab, "Everybody may read it")).not_to_have_count(0)


def test_a_connection_is_checked_before_a_folder_is_followed(
    company: tuple[Product, BrowserContext], tab: Page, tmp_path: Path
) -> None:
    product = company[0]
    tab.goto(product.address + "/collections")
    tab.get_by_role("button", name="Settings", exact=True).first.click()
    tab.get_by_text("Folder on the server").click()
    path = tab.get_by_label("Path of the folder")
    check = tab.get_by_role("button", name="Check the connection")
    path.fill(str(tmp_path))
    check.click()
    expect(tab.get_by_test_id("stAlert").first).to_be_visible()
    expect(tab.get_by_text("The source can be read.")).to_have_count(0)
    path.fill(str(product.folder.parent / "papers"))
    check.click()
    expect(tab.get_by_text("The source can be read. The first documents:")).to_be_visible()
    expect(tab.get_by_text("Not synced yet.")).to_have_count(0)


def test_the_audit_log_is_narrowed_and_a_row_opened(company: tuple[Product, BrowserContext], tab: Page) -> None:
    tab.goto(company[0].address + "/people")
    invite(tab, "rosa@example.com", group="Night shift")
    tab.goto(company[0].address + "/audit")
    tab.get_by_placeholder("Name or value of a setting").fill("rosa@example.com")
    tab.keyboard.press("Enter")
    expect(tab.get_by_text("2 entries", exact=True)).to_be_visible()
    tab.get_by_role("combobox", name="Kind").click()
    tab.get_by_role("option", name="People", exact=True).click()
    expect(tab.get_by_text("1 entry", exact=True)).to_be_visible()
    click_row(tab, 0, BOX, cells(tab, "Night shift").first)
    settle(tab)
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Download as JSON lines").click()
    assert "rosa@example.com" in Path(download.value.path()).read_text()
