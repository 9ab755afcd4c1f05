"""Makes docs/images from the running product: `python -m docs.screenshots`.

Starts the product in a folder of its own, signs up by the one-time link, uploads, asks, and takes every page in light
and dark, on a desk and on a phone. The language model is a stand-in that writes the answer below from the passages it
is given; the month of questions on the analytics page is the one of tests/question_month.py. Needs Playwright
(tests/requirements.txt) and Chromium: its own, or one in CHROMIUM.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pypdf
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks.product import PASSWORD, TENANT, Product
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from tests.question_month import write_month
from tests.standins.providers import ProviderStandin

PROJECT = Path(__file__).resolve().parent.parent
IMAGES = PROJECT / "docs" / "images"
DESK, HIGH, PHONE = {"width": 1280, "height": 900}, {"width": 1280, "height": 1240}, {"width": 390, "height": 844}
PEOPLE = (
    ("Mill office", "mill@ottermere.example", "manager", "Mill"),
    ("Bindery office", "bindery@ottermere.example", "manager", "Bindery"),
    ("Paper machine 2", "machine2@ottermere.example", "employee", "Mill"),
    ("Edition binding", "editions@ottermere.example", "employee", "Bindery"),
    ("Paper studio", "studio@ottermere.example", "employee", "Busan"),
)
QUESTION = "What am I paid during a long illness, and when does income protection begin?"
#: Each sentence with words of the passage it stands on.
ANSWER = (
    (
        "After one year of service you receive **full pay for 14 weeks** of illness and half pay for a further "
        "14 weeks within any twelve months",
        "full pay for 14 weeks",
    ),
    (
        "When sick pay has ended, at the earliest after 28 weeks, income protection pays **60 % of basic pay** until "
        "you can work again, for at most five years",
        "60 % of basic pay",
    ),
    ("The insurer needs the application in week 20 at the latest; the People Team prepares it with you", "in week 20"),
)


def write_answer(messages: list[dict[str, Any]]) -> str:
    """The answer, each sentence with the number under which its passage was given."""
    given = "\n".join(str(message["content"]) for message in messages)
    passages = re.split(r"^\[(\d+)\] ", given, flags=re.MULTILINE)
    numbered = [(number, " ".join(text.split())) for number, text in zip(passages[1::2], passages[2::2], strict=True)]
    sentences = []
    for sentence, words in ANSWER:
        number = next((number for number, text in numbered if words in text), "1")
        sentences.append(f"{sentence} [{number}].")
    return " ".join(sentences)


@contextmanager
def signed_in(browser: Browser, product: Product, state: Path, *, dark: bool, phone: bool = False) -> Iterator[Page]:
    context = browser.new_context(
        viewport=PHONE if phone else DESK,  # type: ignore[arg-type]
        device_scale_factor=2,
        color_scheme="dark" if dark else "light",
        storage_state=state if state.exists() else None,
        locale="en-GB",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(30_000)
    try:
        yield page
    finally:
        context.storage_state(path=state)
        context.close()


def take(page: Page, name: str) -> None:
    """Wait until nothing moves, then write docs/images/NAME.png."""
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    page.wait_for_timeout(700)
    photograph(page, name)
    print(f"docs/images/{name}.png")  # noqa: T201


def photograph(page: Page, name: str) -> None:
    """Write docs/images/NAME.png in 256 colours: pages have few, and a file is a third as large."""
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as taken:
        taken.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def open_page(page: Page, product: Product, path: str, text: str) -> None:
    page.goto(f"{product.url}/{path}")
    page.get_by_text(text).first.wait_for()


def sign_up(page: Page, product: Product) -> None:
    page.goto(product.welcome_url)
    page.get_by_label("Your name").fill("Administrator")
    page.get_by_label("E-mail").fill("people@ottermere.example")
    page.get_by_label("Password").first.fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    page.get_by_test_id("stChatInputTextArea").wait_for()


def ask(page: Page, question: str) -> None:
    page.get_by_test_id("stChatInputTextArea").fill(question)
    page.keyboard.press("Enter")
    page.get_by_text("Sources", exact=True).first.wait_for()
    page.get_by_test_id("stFeedback").first.wait_for()


def wait_for_charts(page: Page) -> None:
    page.get_by_test_id("stPlotlyChart").first.locator("svg").first.wait_for()
    page.wait_for_timeout(2_500)  # the small ones in the figures come last and say nothing when they are there


def take_board(page: Page, product: Product) -> None:
    """The notice board, its posts as cards."""
    open_page(page, product, "board", "Sync now")
    page.get_by_text("attachment", exact=False).first.wait_for()
    page.wait_for_timeout(1_000)
    page.mouse.move(10, 10)
    take(page, "board")


def make_key(page: Page) -> None:
    page.get_by_role("button", name="Make a key").click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("Intranet search")
    page.get_by_role("button", name="Make the key").click()
    page.get_by_role("button", name="I have copied it").click()
    page.get_by_text("to revoke a key").wait_for()


def extra_document(folder: Path) -> Path:
    """A PDF that is not yet stored: the travel page of the handbook."""
    writer = pypdf.PdfWriter()
    writer.add_page(pypdf.PdfReader(PROJECT / "rag" / "samples" / "ottermere_handbook.pdf").pages[2])
    path = folder / "travel_and_expenses.pdf"
    writer.write(path)
    return path


def chromium() -> str | None:
    """The browser named in CHROMIUM or found on the path; else Playwright's own."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="screenshots-") as name,
        ProviderStandin() as standin,
        sync_playwright() as playwright,
    ):
        folder = Path(name)
        standin.reply(write_answer)
        product = Product(folder / "data", OPENAI_API_KEY="stand-in", OPENAI_BASE_URL=standin.openai_url)
        product.start()
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        try:
            take_all(browser, product, folder)
        finally:
            browser.close()
            product.stop()


def take_all(browser: Browser, product: Product, folder: Path) -> None:
    state = folder / "browser.json"
    with signed_in(browser, product, state, dark=False) as page:
        sign_up(page, product)
        page.locator(".st-key-chat_suggestion").wait_for()
        take(page, "chat-empty")
        ask(page, QUESTION)
        take(page, "chat")
        chat = page.url
        page.set_viewport_size(HIGH)  # type: ignore[arg-type]
        page.get_by_role("button", name="Open page").first.click()
        page.get_by_role("dialog").get_by_role("img").first.hover()
        page.mouse.wheel(0, 420)
        take(page, "page-view")
    with signed_in(browser, product, state, dark=False) as page:
        page.set_viewport_size(HIGH)  # type: ignore[arg-type]
        open_page(page, product, "documents", "Add documents")
        page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(extra_document(folder))
        page.get_by_role("button", name=re.compile("Process the file")).first.wait_for()
        take(page, "documents")
    product.add_people(PEOPLE)
    fill_month(folder / "data")  # after the library, whose list it would lengthen
    with signed_in(browser, product, state, dark=False) as page:
        page.set_viewport_size(HIGH)  # type: ignore[arg-type]
        open_page(page, product, "analytics", "Questions")
        wait_for_charts(page)
        take(page, "analytics")
        page.set_viewport_size(DESK)  # type: ignore[arg-type]
        take_board(page, product)
        open_page(page, product, "people", "Add a person")
        make_key(page)
        take(page, "people")
        open_page(page, product, "audit", "Here you see who changed something")
        page.get_by_test_id("stDataFrame").wait_for()
        take(page, "audit-log")
        page.goto(f"{product.url}/api/docs")
        page.locator(".opblock").first.wait_for()
        take(page, "api-docs")
    with signed_in(browser, product, state, dark=True) as page:
        open_page(page, product, chat.removeprefix(product.url).lstrip("/"), "Sources")
        take(page, "chat-dark")
        page.set_viewport_size(HIGH)  # type: ignore[arg-type]
        open_page(page, product, "analytics", "Questions")
        wait_for_charts(page)
        take(page, "analytics-dark")
    with signed_in(browser, product, state, dark=False, phone=True) as page:
        open_page(page, product, chat.removeprefix(product.url).lstrip("/"), "Sources")
        take(page, "chat-phone")
    with signed_in(browser, product, folder / "nobody.json", dark=False) as page:
        page.goto(product.url)
        page.get_by_role("button", name="Sign in").wait_for()
        photograph(page, "sign-in")


def fill_month(data_dir: Path) -> None:
    server = start_server(data_dir)
    database = Database(server.application, sealing_key(server.owner), maximum_connections=2)
    database.open()
    try:
        with database.transaction(TENANT) as connection:
            found = connection.execute("SELECT id FROM collections ORDER BY created_at LIMIT 1").fetchone()
        if found is None:
            raise SystemExit("There is no collection to write a month of questions for.")
        write_month(database, TENANT, found[0], until=datetime.now(UTC).date())
    finally:
        database.close()


if __name__ == "__main__":
    main()
