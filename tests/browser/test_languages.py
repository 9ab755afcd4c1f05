"""Languages in a browser: what Streamlit says itself, and the choice that counts at once."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from rag import language as languages
from rag.ui.language import STREAMLIT_WORDS
from tests.browser.conftest import Product, settle
from tests.browser.test_every_page import OPENED, PAGES, QUESTION, ask, open_page

pytestmark = pytest.mark.browser

#: Everything that is read or heard: texts, and what stands for them.
SAID = """() => {
  const said = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest("script, style")) said.add(walker.currentNode.data.trim());
  for (const name of ["aria-label", "placeholder", "title", "alt"])
    for (const node of document.querySelectorAll(`[${name}]`)) said.add(node.getAttribute(name).trim());
  return [...said];
}"""


def left_in_english(page: Page, language: str) -> list[str]:
    """Return what Streamlit says of itself in English although the language has words for it."""
    with languages.speaking(language):
        english = {words for words in STREAMLIT_WORDS if languages._(words) != words}
    return sorted(english & set(page.evaluate(SAID)))


@pytest.mark.parametrize("language", ["de", "ar"])
def test_what_streamlit_says_itself_is_in_the_language_of_the_reader(
    language: str, offline_product: Product, browser: Browser, offline_admin: BrowserContext
) -> None:
    context = browser.new_context(storage_state=offline_admin.storage_state(), viewport={"width": 1280, "height": 860})
    context.add_cookies([{"name": "hr_language", "value": language, "url": offline_product.address}])
    page, left = context.new_page(), {}
    open_page(page, offline_product.address)
    ask(page, QUESTION)
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    settle(page)
    left["an answer"] = left_in_english(page, language)
    for path in PAGES:
        open_page(page, offline_product.address + path)
        left[path] = left_in_english(page, language)
    for path, button in OPENED:
        if not button or "has-text" in button:  # by its English name
            continue
        open_page(page, offline_product.address + path)
        page.locator(button).locator("visible=true").first.click()
        settle(page)
        left[f"{path} {button}"] = left_in_english(page, language)
    context.close()
    assert {path: words for path, words in left.items() if words} == {}


def test_the_language_is_changed_without_a_reload_and_kept(
    offline_product: Product, browser: Browser, offline_admin: BrowserContext
) -> None:
    context = browser.new_context(storage_state=offline_admin.storage_state(), viewport={"width": 1280, "height": 860})
    page = context.new_page()
    open_page(page, offline_product.address + "/account")
    page.evaluate("window.isTheSamePage = true")
    for chosen, title, direction in (
        ("العربية", "حسابك", "rtl"),
        ("Deutsch", "Ihr Konto", "ltr"),
        ("English", "Your account", "ltr"),
    ):
        page.get_by_test_id("stSelectbox").locator("input").first.click()
        page.get_by_role("option", name=chosen).click()
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        expect(page.locator("html")).to_have_attribute("dir", direction)
        settle(page)
    assert page.evaluate("window.isTheSamePage")
    context.close()
    visitor = browser.new_context(locale="nl-NL")
    page = visitor.new_page()
    page.goto(offline_product.address)
    expect(page.get_by_role("button", name="Aanmelden")).to_be_visible()
    visitor.close()
