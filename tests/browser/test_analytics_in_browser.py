"""What a manager does on a Monday: from a number to its questions, in any language."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from pypdf import PdfReader

from rag.evaluation.golden import GoldenQuestion
from rag.services import connect_services, program_of
from rag.settings import Settings
from tests.browser.conftest import Product, settle, sign_up, start_product
from tests.browser.tables import BOX, cells, click_row
from tests.integration_rows import needs
from tests.question_month import write_month

pytestmark = pytest.mark.browser

MIX = """
UPDATE chat_logs SET outcome = CASE abs(hashtext('o' || id::text)) % 16 WHEN 0 THEN 'refused' WHEN 1 THEN 'small_talk'
    WHEN 2 THEN 'perhaps' ELSE outcome END
WHERE outcome = 'answered' AND kind = 'question'
"""


@pytest.fixture(scope="module")
def company(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, BrowserContext]]:
    """A copy without keys with twenty days of questions, and test questions."""
    folder = tmp_path_factory.mktemp("traffic") / "data"
    running = start_product(folder)
    context = sign_up(browser, running)
    settings = Settings(data_dir=folder)
    parts = connect_services(settings)
    try:
        collection = parts.choose_collection(settings.tenant, None)
        write_month(
            parts.database, settings.tenant, collection.id, until=datetime.now(UTC).date(), days=20, questions_per_day=9
        )
        with parts.database.transaction(settings.tenant) as connection:
            connection.execute(MIX)
        golden = [GoldenQuestion(question=f"What does rule {n} say?", is_answerable=False) for n in range(10)]
        parts.evaluations.add_golden(program_of(settings.tenant), collection, golden)
    finally:
        parts.close()
    yield running, context
    context.close()
    running.stop()


@pytest.fixture
def tab(company: tuple[Product, BrowserContext]) -> Iterator[Page]:
    opened = company[1].new_page()
    yield opened
    opened.close()


def open_view(page: Page, product: Product, **address: str) -> None:
    query = "&".join(f"analytics_{name}={value}" for name, value in address.items())
    page.goto(f"{product.address}/analytics?{query}")
    expect(page.get_by_role("heading", name="Analytics", exact=True)).to_be_visible()
    settle(page)


def table_with(page: Page, heading: str) -> Locator:
    """Return the table that has a column with this heading."""
    headings = page.locator("canvas [role=columnheader]", has_text=re.compile(f"^{re.escape(heading)}$"))
    return page.get_by_test_id("stDataFrame").filter(has=headings)


def row_of(table: Locator, place: int) -> list[str]:
    """Return what a table's row says; the first row has the place 0."""
    row = table.locator(f"canvas [role=row][aria-rowindex='{place + 2}'] [role=gridcell]")
    expect(row).not_to_have_count(0)
    return [text.strip() for text in row.all_text_contents()]


def test_numbers_lead_to_their_questions(company: tuple[Product, BrowserContext], tab: Page) -> None:
    product = company[0]
    open_view(tab, product)
    failed = tab.get_by_role("button", name=re.compile(r"^\d+ failed"))
    number = re.findall(r"\d+", failed.inner_text())[0]
    failed.click()
    expect(tab.get_by_text(re.compile(rf"^{number} questions?\. Select a row"))).to_be_visible()
    expect(tab).to_have_url(re.compile("analytics_view=Questions"))
    expect(tab).to_have_url(re.compile("analytics_outcome=Failed"))
    tab.reload()
    expect(tab.get_by_text(re.compile(rf"^{number} questions?\. Select a row"))).to_be_visible()

    open_view(tab, product)
    not_helpful = tab.get_by_role("button", name=re.compile("not helpful"))
    number = re.findall(r"\d+", not_helpful.inner_text())[0]
    not_helpful.click()
    expect(tab.get_by_text(re.compile(rf"^{number} questions?\. Select a row"))).to_be_visible()
    expect(tab).to_have_url(re.compile("analytics_rating=Rated"))

    open_view(tab, product)
    tab.get_by_role("button", name=re.compile("not in the documents")).click()
    expect(tab.get_by_text("Add answers to the most frequent ones first.")).to_be_visible()
    expect(tab).to_have_url(re.compile("analytics_view=Unanswered"))


def test_a_link_opens_the_view_for_whoever_reads_german(
    company: tuple[Product, BrowserContext], browser: Browser
) -> None:
    product, admin = company
    context = browser.new_context(locale="de-DE", storage_state=admin.storage_state())
    page = context.new_page()
    page.goto(f"{product.address}/analytics?analytics_view=Costs&analytics_cost_by=Group")
    expect(page.get_by_role("tab", name="Kosten")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("analytics_view=Kosten"))
    expect(page.get_by_role("radio", name="Gruppe").first).to_be_checked()
    # The same in a page that is open, as Back and Forward do.
    page.evaluate(
        "history.pushState({}, '', '/analytics?analytics_view=Times'); dispatchEvent(new PopStateEvent('popstate'))"
    )
    expect(page.get_by_role("tab", name="Zeiten")).to_have_attribute("aria-selected", "true")
    context.close()


def test_the_names_of_the_figures_are_whole_in_german_on_a_laptop(
    company: tuple[Product, BrowserContext], tab: Page
) -> None:
    product, context = company
    context.add_cookies([{"name": "hr_language", "value": "de", "url": product.address}])
    tab.set_viewport_size({"width": 1280, "height": 800})
    tab.goto(f"{product.address}/analytics")
    names = tab.locator("[data-testid=stMetricLabel] [data-testid=stMarkdownContainer]")
    expect(names).to_have_count(8)
    settle(tab)
    cut = names.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)")
    context.clear_cookies(name="hr_language")
    assert cut == []


def test_a_golden_question_is_written_changed_and_taken_out_as_a_file(
    company: tuple[Product, BrowserContext], tab: Page
) -> None:
    open_view(tab, company[0], view="Quality")
    tab.get_by_role("button", name="Add a question").click()
    form = tab.get_by_role("dialog")
    form.get_by_role("textbox", name="Question", exact=True).fill("Where do visitors park?")
    form.get_by_role("textbox", name="Expected answer").fill("Behind the main building.")
    form.get_by_role("textbox", name="Expected words").fill("main building; spaces 11")
    form.get_by_role("button", name="Add", exact=True).click()
    expect(form).to_have_count(0)
    settle(tab)
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="Export", exact=True).click()
    rows = [json.loads(line) for line in saved.value.path().read_text("utf-8").splitlines()]
    (written,) = [row for row in rows if row["question"] == "Where do visitors park?"]
    assert (written["answer"], written["evidence"]) == ("Behind the main building.", ["main building", "spaces 11"])
    assert len(rows) == 11


def questions_in_all(page: Page, number: str) -> Locator:
    """Return the figure of all questions where it is this number."""
    figure = page.get_by_test_id("stMetric").filter(has=page.get_by_text("Questions", exact=True))
    return figure.get_by_test_id("stMetricValue").get_by_text(number, exact=True)


@needs("pdf_exports")
@pytest.mark.parametrize(("by", "column"), [("Group", "analytics_group"), ("Language", "analytics_language")])
def test_a_row_of_who_asks_narrows_every_figure_to_it(
    company: tuple[Product, BrowserContext], tab: Page, by: str, column: str
) -> None:
    open_view(tab, company[0], parts=by)
    table = table_with(tab, by)
    name, questions, *_rest = row_of(table, 1)
    click_row(tab, 1, BOX, questions_in_all(tab, questions), of=table)
    # A language is a code in the address.
    expect(tab).to_have_url(re.compile(rf"{column}=(?:{name}|[a-z]{{2}})\b"))
    tab.reload()
    expect(questions_in_all(tab, questions)).to_be_visible()
    tab.get_by_role("button", name="Report").click()
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="Save as PDF").click()
    report = " ".join(" ".join(page.extract_text() for page in PdfReader(saved.value.path()).pages).split())
    assert f"only questions that match the filters: {name}" in report
    assert f"{questions} (before" in report


def test_a_row_of_the_most_asked_documents_narrows_every_figure_to_it(
    company: tuple[Product, BrowserContext], tab: Page
) -> None:
    open_view(tab, company[0])
    table = tab.get_by_test_id("stDataFrame").filter(has=cells(tab, re.compile(r"^\d+ of \d+$")))
    questions = row_of(table, 0)[1]
    click_row(tab, 0, BOX, questions_in_all(tab, questions), of=table)
    expect(tab).to_have_url(re.compile("analytics_document="))


def test_a_row_of_the_slowest_questions_opens_it(company: tuple[Product, BrowserContext], tab: Page) -> None:
    open_view(tab, company[0], view="Times")
    table = table_with(tab, "Time to the first words (s)")
    question = row_of(table, 1)[0]
    opened = tab.get_by_role("heading", name=question)
    click_row(tab, 1, BOX, opened, of=table)
    expect(tab.get_by_text("Where the time went", exact=True)).to_be_visible()
    expect(tab.get_by_text("Tokens and costs", exact=True)).to_be_visible()
    expect(tab.get_by_text("Run again with other settings")).to_be_visible()
    click_row(tab, 0, BOX, tab.get_by_role("heading", name=row_of(table, 0)[0]), of=table)


def test_a_row_of_the_questions_opens_it(company: tuple[Product, BrowserContext], tab: Page) -> None:
    open_view(tab, company[0], view="Questions", outcome="Failed")
    table = table_with(tab, "Asked by")
    question = row_of(table, 0)[1]
    click_row(tab, 0, BOX, tab.get_by_role("heading", name=question), of=table)
    # The table has the words too, as a cell.
    expect(tab.get_by_role("heading", name=question)).to_contain_text("Failed")
