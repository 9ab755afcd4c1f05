"""The chat by its keys, and its sources by their chips, as a person uses them."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, ViewportSize, expect

from tests.browser.conftest import EMAIL, PASSWORD, Product, settle
from tests.browser.tables import press_in_no_field
from tests.browser.test_every_page import ask, open_page, signed_in_as

pytestmark = pytest.mark.browser
LAPTOPS: tuple[ViewportSize, ...] = ({"width": 1280, "height": 720}, {"width": 1440, "height": 900})
QUESTION = "How many days of annual leave do full-time employees have?"


def test_the_question_has_the_focus_and_keys_find_list_and_choose(offline_product: Product, offline_page: Page) -> None:
    page = offline_page
    page.goto(offline_product.address)
    question = page.get_by_test_id("stChatInputTextArea")
    expect(question).to_be_focused()
    settle(page)

    page.keyboard.type("What about @ben")
    field = page.locator("[data-testid=stPopoverBody] .st-key-chat_documents input")
    expect(field).to_be_focused()
    expect(question).to_have_value("What about ")
    page.keyboard.press("Enter")
    # Chosen, and back in the question.
    expect(page.get_by_text("Only in Benefits guide 2026")).to_be_visible()
    settle(page)
    expect(question).to_be_focused()
    question.fill("")

    listed = page.get_by_role("dialog")
    press_in_no_field(page, "?", listed)
    expect(listed.get_by_text("Find conversations and documents")).to_be_visible()
    page.keyboard.press("Escape")
    expect(listed).to_have_count(0)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    expect(question).to_be_focused()

    page.keyboard.press("Control+k")
    found = page.locator(".st-key-frame_found button")
    expect(page.locator(".st-key-frame_finder input")).to_be_focused()
    page.keyboard.type("benefits")
    expect(page.get_by_role("dialog").get_by_text("Conversations", exact=True)).to_have_count(0)
    expect(found.first).to_contain_text("enefits")
    settle(page)
    page.keyboard.press("ArrowDown")
    expect(found.first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/library?document=*")
    expect(page.locator(".st-key-page_view")).to_be_visible()
    expect(page.get_by_role("dialog").filter(has=page.locator(".st-key-frame_finder"))).to_have_count(0)


def signed_in_again(browser: Browser, product: Product) -> BrowserContext:
    """Another browser of the administrator, with a session of its own."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(product.address + "/login")
    fill_in(page)
    page.close()
    return context


def fill_in(page: Page) -> None:
    page.fill("input[name=email]", EMAIL)
    page.fill("input[name=password]", PASSWORD)
    page.click("button.primary")
    page.wait_for_selector("[data-testid=stChatInputTextArea]")


def test_a_question_that_was_typed_outlives_its_session_and_is_nobody_elses(
    offline_product: Product, offline_admin: BrowserContext, browser: Browser
) -> None:
    context = signed_in_again(browser, offline_product)
    page, other_tab = context.new_page(), context.new_page()
    open_page(page, offline_product.address)
    question = page.get_by_test_id("stChatInputTextArea")
    question.fill("What about my salary in")
    other_tab.goto(offline_product.address + "/logout")
    other_tab.click("button.primary")
    other_tab.wait_for_url("**/login?signed-out=1")
    page.evaluate("dispatchEvent(new Event('focus'))")
    page.wait_for_url("**/login?ended=1*")
    expect(page.get_by_text("You were signed out, because this session was ended elsewhere")).to_be_visible()
    fill_in(page)
    expect(question).to_have_value("What about my salary in")

    # What was sent is no draft any more.
    question.fill(QUESTION)
    question.press("Enter")
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    settle(page)
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('draft'))") == []

    # Nobody else who signs in here finds what was begun, and it is gone.
    question.fill("What about my salary in")
    page.evaluate(
        """() => {
          const own = Object.keys(sessionStorage).find((key) => key.includes("draft"));
          sessionStorage.setItem(own.replace(/[0-9a-f-]{36}$/, "of-somebody-else"), sessionStorage.getItem(own));
          sessionStorage.removeItem(own);
        }"""
    )
    open_page(page, offline_product.address)
    expect(question).to_have_value("")
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('draft'))") == []
    context.close()


def test_a_chip_shows_its_source_and_opens_the_page_beside_the_answer(
    offline_product: Product, offline_page: Page
) -> None:
    page = offline_page
    page.goto(offline_product.address)
    question = page.get_by_test_id("stChatInputTextArea")
    expect(question).to_be_focused()
    page.set_viewport_size({"width": 1280, "height": 480})
    question.fill(QUESTION)
    question.press("Enter")
    expect(page.get_by_test_id("stFeedback")).to_be_attached()
    settle(page)
    # What comes after the answer does not scroll its beginning away; a person may.
    scrolled = page.get_by_test_id("stAppScrollToBottomContainer")
    left = "box => box.scrollHeight - box.clientHeight - box.scrollTop"
    assert scrolled.evaluate(left) > 20
    expect(page.get_by_test_id("stChatMessage").first).to_be_in_viewport(ratio=1)
    scrolled.hover()
    page.mouse.wheel(0, 5000)
    page.wait_for_function(f"({left})(document.querySelector('[data-testid=stAppScrollToBottomContainer]')) < 2")
    page.set_viewport_size({"width": 1280, "height": 860})
    page.get_by_role("button", name="Edit question").click()
    expect(question).to_be_focused()
    expect(question).to_have_value(QUESTION)
    question.fill("")
    settle(page)
    chip = page.locator('[data-testid=stChatMessage] a[href^="#s"]').first
    chip.focus()
    card = page.locator("#hr-source-card")
    expect(card).to_be_visible()
    expect(card.locator(".sentence")).not_to_be_empty()
    title = card.locator(".title").inner_text()
    page.keyboard.press("Enter")
    view = page.locator(".st-key-page_view")
    expect(view.locator("img").first).to_be_visible()
    expect(view).to_contain_text(title)
    expect(card).to_be_hidden()
    answer = chip.bounding_box()
    beside = view.bounding_box()
    assert answer is not None
    assert beside is not None
    assert answer["x"] + answer["width"] <= beside["x"], "the page covers the answer"
    page.keyboard.press("Escape")
    expect(view).to_have_count(0)

    # Who closes a dialog goes on where it was opened.
    actions = page.get_by_test_id("stMenuButtonButton").first
    actions.focus()
    page.keyboard.press("Enter")
    focused = page.locator("[role=menuitem][data-focused]")
    expect(focused).to_have_count(1)
    export = page.get_by_role("menuitem", name="Export")
    for _ in range(8):
        if "Export" in (at := focused.inner_text()):
            break
        page.keyboard.press("ArrowDown")
        with suppress(AssertionError):  # a menu that is drawn again misses a key
            expect(focused).not_to_have_text(at, timeout=2_000)
    expect(export).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Markdown")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(actions).to_be_focused()

    # A new chat by its key: the question has the focus, and what is typed is asked there.
    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_text("How can I help")).to_be_visible()
    expect(question).to_be_focused()


def test_all_collections_are_asked_at_once_and_each_source_names_its_own(
    offline_product: Product, offline_page: Page
) -> None:
    page = offline_page
    page.goto(offline_product.address)
    settle(page)
    choice = page.locator(".st-key-chat_collection")
    expect(choice.get_by_role("radio")).to_have_text(["All collections", "HR documents", "Sample notice board"])
    choice.get_by_role("radio", name="All collections").click()
    question = page.get_by_role("textbox", name="Ask in all collections")
    sources = page.locator('.st-key-chat_now [class*="_card_"]')
    for asked, collection, opens in (
        ("Which parking bays behind Gate 2 are for staff?", "Sample notice board", "Open post"),
        (QUESTION, "HR documents", "Open page"),
    ):
        question.fill(asked)
        question.press("Enter")
        expect(page.locator(".st-key-chat_now").get_by_test_id("stFeedback")).to_be_visible()
        settle(page)
        expect(sources.first).to_contain_text(collection)
        chip = page.locator('.st-key-chat_now a[href^="#s"]').first
        chip.hover()
        expect(page.locator("#hr-source-card .place")).to_contain_text(collection)
        sources.first.get_by_role("button", name=opens).click()
        view = page.locator(".st-key-page_view")
        expect(
            view.locator("img").first if opens == "Open page" else view.get_by_text("bays 40 to 62").first
        ).to_be_visible()
        page.keyboard.press("Escape")
        expect(view).to_have_count(0)
    # The conversation goes on in all of them when it is opened again.
    page.reload()
    expect(page.locator(".st-key-chat_filter").get_by_text("All collections")).to_be_visible()


def test_a_page_opens_at_its_mark_and_leaves_the_answer_where_it_was(
    offline_product: Product, offline_page: Page
) -> None:
    page = offline_page
    page.set_viewport_size({"width": 1280, "height": 800})
    open_page(page, offline_product.address)
    ask(page, QUESTION)
    settle(page)
    ask(page, "Is there a company car for junior developers?")
    settle(page)
    opener = page.locator(".st-key-chat_now").get_by_role("button", name="Open page").first
    before = opener.bounding_box()
    opener.click()
    view = page.locator(".st-key-page_view")
    # The passage on car sharing is the last of its page, below the edge of the window.
    page.wait_for_function("document.querySelector('.st-key-page_view')?.scrollTop > 0")
    expect(view.locator("img").first).to_be_visible()
    settle(page)
    after = opener.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 60


def test_an_administrators_conversations_are_on_a_laptops_screen(offline_product: Product, offline_page: Page) -> None:
    page = offline_page
    page.set_viewport_size({"width": 1280, "height": 800})
    open_page(page, offline_product.address)
    ask(page, QUESTION)
    settle(page)
    expect(page.locator("[class*=st-key-chat_open_]").first).to_be_in_viewport()
    page.get_by_test_id("stSidebarNavViewButton").click()
    expect(page.get_by_role("link", name="Audit log")).to_be_visible()
    page.get_by_test_id("stSidebarNavViewButton").click()
    open_page(page, offline_product.address + "/audit")
    expect(page.get_by_role("link", name="Audit log")).to_be_visible()


def test_the_account_stays_on_the_screen_below_every_list_of_conversations(
    offline_product: Product, browser: Browser, offline_admin: BrowserContext
) -> None:
    context = signed_in_as("Employee", browser, offline_product, offline_admin)
    page = context.new_page()
    page.set_viewport_size(LAPTOPS[0])
    for number in range(12):
        page.goto(offline_product.address)
        settle(page)
        ask(page, "Thank you!" if number else "Hello")
        expect(page.get_by_test_id("stFeedback")).to_be_attached()
        settle(page)
    account = page.locator(".st-key-frame_account button")
    page.get_by_role("button", name="Show all 12").click()
    expect(page.get_by_placeholder("Search conversations")).to_be_visible()
    settle(page)
    last = page.locator("[class*=st-key-chat_open_] button").last
    for size in LAPTOPS:
        page.set_viewport_size(size)
        expect(account).to_be_in_viewport(ratio=1)
        # The rest of the sidebar ends above it: what is scrolled to is whole.
        last.scroll_into_view_if_needed()
        expect(last).to_be_in_viewport(ratio=1)
        assert bottom_of(last) <= account.evaluate("one => one.getBoundingClientRect().top")
    page.get_by_placeholder("Search conversations").fill("hello")
    page.keyboard.press("Enter")
    expect(page.locator("[class*=st-key-chat_open_]")).to_have_count(1)
    expect(account).to_be_in_viewport(ratio=1)
    context.close()

    # An administrator's menu is longer.
    page = offline_admin.new_page()
    for path in ("/", "/documents"):
        page.goto(offline_product.address + path)
        account = page.locator(".st-key-frame_account button")
        expect(account).to_be_visible()
        settle(page)
        for size in LAPTOPS:
            page.set_viewport_size(size)
            expect(account).to_be_in_viewport(ratio=1)
    page.close()


def bottom_of(element: Locator) -> float:
    return float(element.evaluate("one => one.getBoundingClientRect().bottom"))


def test_ctrl_k_leaves_an_open_dialog_and_what_it_shows_alone(offline_product: Product, offline_page: Page) -> None:
    page = offline_page
    open_page(page, offline_product.address + "/people")
    page.get_by_role("button", name="Add a person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="E-mail").fill(f"colleague-{uuid4().hex[:8]}@example.com")
    dialog.get_by_role("textbox", name="Name").fill("A colleague")
    dialog.get_by_role("button", name="Add and get a link").click()
    expect(dialog.locator("code")).to_be_visible()
    settle(page)
    page.keyboard.press("Control+k")
    settle(page)
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(dialog.get_by_placeholder("Search for words in titles")).to_be_visible()
