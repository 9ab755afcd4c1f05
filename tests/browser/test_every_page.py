"""Every page as everybody has to be able to use it: what axe finds, what jumps, what a phone shows, what keys reach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from babel import Locale
from babel.messages.pofile import read_po
from playwright.sync_api import Browser, BrowserContext, Page, expect

from rag.language import LANGUAGES
from tests.browser.conftest import Product, settle
from tests.browser.tables import press_in_no_field
from tests.integration_rows import listed, needs
from tests.standins.providers import ProviderStandin, many_words

pytestmark = pytest.mark.browser

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
#: "/payroll" is a page that does not exist, and says so.
PAGES = (
    "/", "/library", "/documents", "/collections", "/people", "/other-programs", "/prices", "/health", "/privacy",
    "/audit", "/account", "/set-up", "/analytics", "/board", "/payroll",
)  # fmt: skip
FORMS = ("/account/password", "/account/second-factor", "/forgot-password", *listed("browser", "forms"))
#: What opens on a page, by the button that opens it.
OPENED = (
    ("/", "[data-testid=stBottomBlockContainer] [data-testid=stPopoverButton]"),
    ("/", "[data-testid=stSidebarUserContent] [data-testid=stMenuButtonButton]"),
    ("/", "[data-testid=stSidebarUserContent] [data-testid=stPopoverButton]"),
    ("/library", "[class*=st-key-library_open] button"),
    ("/people", "button:has-text('Make a key')"),
    ("/people", "button:has-text('Invite many')"),
    ("/documents", "[data-testid=stMainBlockContainer] [data-testid=stPopoverButton]"),
    ("/analytics?analytics_view=Search", ""),
    ("/analytics?analytics_view=Questions", ""),
)
QUESTION = "How many days of annual leave do full-time employees have?"
MOST_SHIFT = 0.05
#: Adds up what moved by itself from the first paint on, and what moved most.
SHIFTS = """
window.shifted = 0;
window.moved = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (entry.hadRecentInput) continue;
    window.shifted += entry.value;
    for (const { node } of entry.sources) window.moved.push((node?.innerText || "").slice(0, 30));
  }
}).observe({ type: "layout-shift", buffered: true });
"""
#: Overlays are at the end of the page, outside its landmarks: what axe calls good practice is for whole pages. What the
#: edge of a list that scrolls cuts has its whole size a turn of the wheel later; axe takes it for covered by what is
#: below the list.
CHECK = """async ([tags, rules]) => {
  const isCut = (node) => {
    const box = node.getBoundingClientRect();
    for (let list = node.parentElement; list; list = list.parentElement) {
      if (!/auto|scroll/.test(getComputedStyle(list).overflowY)) continue;
      const edges = list.getBoundingClientRect();
      if (box.bottom > edges.bottom || box.top < edges.top) return true;
    }
    return false;
  };
  const found = await axe.run(document, {
    elementRef: true, resultTypes: ["violations"],
    runOnly: tags ? { type: "tag", values: tags } : { type: "rule", values: rules },
  });
  return found.violations.flatMap((rule) => rule.nodes
    .filter((node) => rule.id !== "target-size" || !isCut(node.element))
    .map((node) =>
      `${rule.id}: ${node.html.slice(0, 160)} ${(node.any[0] || node.all[0] || node.none[0] || {}).message}`));
}"""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
#: As on a page that was just opened by its address: the next Tab begins at its top.
FROM_THE_TOP = """(() => {
  const first = document.createElement("button");
  document.body.prepend(first);
  first.focus();
  first.remove();
})()"""
#: What ends colours half-way between two schemes, the pointer's own, and those of a page that is being drawn again.
STILL = """
*, *::before, *::after { transition: none !important; animation: none !important; }
[data-stale=true] { opacity: 1 !important; }
"""


def violations(page: Page, *, tags: list[str] | None = None, rules: list[str] | None = None) -> list[str]:
    """Return what axe finds, of any severity."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    return [str(found) for found in page.evaluate(CHECK, [tags, rules])]


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("[data-testid=stMainBlockContainer] [data-testid=stElementContainer]", state="attached")
    settle(page)


#: What the browser does at Back, with the address of a page that was not opened yet.
TURN = """(path) => {
  window.cutCells?.clear();
  history.pushState({}, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}"""


def turn_to(page: Page, product: Product, path: str) -> None:
    """Open another page as the menu does, without loading all of Streamlit again: half a second of processor time.

    The first page is loaded, and so is one that is open already, for what opened on it would stay.
    """
    if not page.url.startswith(product.address) or urlsplit(page.url).path == urlsplit(path).path:
        open_page(page, product.address + path)
        return
    page.evaluate(TURN, path)
    settle(page)
    page.wait_for_selector("[data-testid=stMainBlockContainer] [data-testid=stElementContainer]", state="attached")


def ask(page: Page, question: str) -> None:
    page.fill("[data-testid=stChatInputTextArea]", question)
    page.keyboard.press("Enter")


def jumps(page: Page) -> list[str]:
    shifted, moved = page.evaluate("[window.shifted, window.moved]")
    return [f"jumps by {shifted:.3f}: {moved[:6]}"] if shifted > MOST_SHIFT else []


#: What is clicked or filled in, by its role, and a name that is none: nothing, or what an icon is called.
CONTROLS = {"button", "checkbox", "combobox", "link", "menuitem", "radio", "slider", "switch", "tab", "textbox"}
ICON_NAME = re.compile(r"\s*|.*\b[a-z0-9_]+ icon\b.*")


def unnamed(page: Page) -> list[str]:
    """Return the controls of a page that a screen reader has no words for, and the icons whose names it reads out."""
    tree = page.context.new_cdp_session(page)
    nodes = tree.send("Accessibility.getFullAXTree")["nodes"]
    tree.detach()
    named = [(str(n["role"].get("value")), str(n.get("name", {}).get("value", ""))) for n in nodes if "role" in n]
    return [
        f"{role} is called {name!r}"
        for role, name in named
        if (role in CONTROLS and ICON_NAME.fullmatch(name)) or (role == "image" and name.endswith(" icon"))
    ]


def both_schemes(page: Page, tags: list[str]) -> list[str]:
    """Check everything in light colours, and the contrast in dark ones."""
    page.add_style_tag(content=STILL)
    found = violations(page, tags=tags) + unnamed(page)
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(100)
    found += [f"dark {problem}" for problem in violations(page, rules=["color-contrast"])]
    page.emulate_media(color_scheme="light")
    return found


@pytest.fixture
def phone(offline_product: Product, browser: Browser, offline_admin: BrowserContext) -> Iterator[Page]:
    context = phone_of(browser, offline_admin)
    yield context.new_page()
    context.close()


def phone_of(browser: Browser, admin: BrowserContext) -> BrowserContext:
    return browser.new_context(
        viewport={"width": 390, "height": 844},
        is_mobile=True,
        has_touch=True,
        locale="en-US",
        storage_state=admin.storage_state(),
    )


def test_axe_finds_nothing_and_no_page_jumps(offline_product: Product, offline_page: Page) -> None:
    page, problems = offline_page, {}
    page.add_init_script(SHIFTS)
    open_page(page, offline_product.address)
    ask(page, QUESTION)
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    settle(page)
    problems["an answer"] = both_schemes(page, [*WCAG, "best-practice"])
    for path in PAGES:
        open_page(page, offline_product.address + path)
        problems[path] = jumps(page) + both_schemes(page, [*WCAG, "best-practice"])
    for path in FORMS:
        page.goto(offline_product.address + path)
        problems[path] = both_schemes(page, [*WCAG, "best-practice"])
    assert {path: found for path, found in problems.items() if found} == {}


def test_axe_finds_nothing_in_what_opens(offline_product: Product, offline_page: Page) -> None:
    page, problems = offline_page, {}
    open_page(page, offline_product.address)
    ask(page, QUESTION)
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    settle(page)
    page.get_by_role("button", name="How this answer was found").last.click()
    settle(page)
    problems["how it was found"] = both_schemes(page, WCAG)
    page.keyboard.press("Escape")
    for path, button in OPENED:
        turn_to(page, offline_product, path)
        if button:
            page.locator(button).first.click()
            settle(page)
        problems[f"{path} {button}"] = both_schemes(page, WCAG)
    page.goto(offline_product.address)
    settle(page)
    for keys in ("Control+k", "?"):
        press_in_no_field(page, keys, page.get_by_role("dialog"))
        settle(page)
        problems[keys] = both_schemes(page, WCAG)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert {path: found for path, found in problems.items() if found} == {}


#: What the others see: their own pages, and one that says whom to ask.
PAGES_OF = {
    "Employee": ("/", "/library", "/board", "/account", "/documents"),
    "Manager": ("/analytics", "/analytics?analytics_view=Questions", "/library", "/prices"),
}


def signed_in_as(role: str, browser: Browser, product: Product, admin: BrowserContext) -> BrowserContext:
    """Invite somebody of a role as an administrator does, and sign them in by their link."""
    admin.grant_permissions(["clipboard-read", "clipboard-write"])
    page = admin.new_page()
    open_page(page, product.address + "/people")
    page.get_by_role("button", name="Invite many").click()
    dialog = page.get_by_role("dialog")
    # Another test of this product may have invited somebody, and each address has one account.
    dialog.get_by_role("textbox", name="E-mail addresses").fill(f"{role.lower()}-{uuid4().hex[:8]}@example.com")
    dialog.get_by_role("combobox", name="Role").click()
    page.get_by_role("option", name=role).click()
    dialog.get_by_role("button", name="Invite and get the links").click()
    dialog.get_by_role("button", name="Copy the link").click()
    expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
    link = str(page.evaluate("navigator.clipboard.readText()"))
    page.close()
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
    page = context.new_page()
    page.goto(link)
    page.fill("input[name=password]", "paper-and-linen-thread-7")
    page.click("button[type=submit]")
    page.wait_for_selector("[data-testid=stChatInputTextArea]")
    page.close()
    return context


@pytest.mark.parametrize("role", list(PAGES_OF))
def test_axe_finds_nothing_on_the_pages_of_the_others(
    role: str, browser: Browser, offline_product: Product, offline_admin: BrowserContext
) -> None:
    context = signed_in_as(role, browser, offline_product, offline_admin)
    page, problems = context.new_page(), {}
    page.add_init_script(SHIFTS)
    for path in PAGES_OF[role]:
        open_page(page, offline_product.address + path)
        problems[path] = jumps(page) + both_schemes(page, [*WCAG, "best-practice"])
    if role == "Employee":
        open_page(page, offline_product.address)
        ask(page, QUESTION)
        expect(page.get_by_test_id("stFeedback")).to_be_visible()
        settle(page)
        problems["an answer"] = both_schemes(page, [*WCAG, "best-practice"])
    context.close()
    assert {path: found for path, found in problems.items() if found} == {}


def test_axe_finds_nothing_in_what_opens_on_a_phone(offline_product: Product, phone: Page) -> None:
    problems = {}
    for path, button in OPENED:
        if "Sidebar" in button:  # it is closed on a phone
            continue
        turn_to(phone, offline_product, path)
        if button:
            phone.locator(button).locator("visible=true").first.tap()
            settle(phone)
        problems[f"{path} {button}"] = both_schemes(phone, WCAG)
    assert {path: found for path, found in problems.items() if found} == {}


def test_on_a_phone_no_page_jumps_or_scrolls_sideways(offline_product: Product, phone: Page) -> None:
    phone.add_init_script(SHIFTS)
    problems = {}
    for path in PAGES:
        open_page(phone, offline_product.address + path)
        found = jumps(phone)
        if phone.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            found.append("scrolls sideways")
        problems[path] = found + violations(phone, tags=[*WCAG, "best-practice"])
    assert {path: found for path, found in problems.items() if found} == {}


def test_on_a_phone_a_card_shows_what_is_in_its_collection(offline_product: Product, phone: Page) -> None:
    """Rules of the sources under an answer once laid the button over all of such a card."""
    open_page(phone, offline_product.address + "/collections")
    text = phone.get_by_text("passages").first
    expect(text).to_be_visible()
    shown, button = text.bounding_box(), phone.get_by_role("button", name="Settings").first.bounding_box()
    assert shown is not None
    assert button is not None
    assert shown["y"] + shown["height"] <= button["y"], "the button is below the text"
    assert button["height"] < 60


def test_on_a_phone_the_menu_closes_after_each_choice_and_is_closed_when_a_page_opens(
    offline_product: Product, phone: Page
) -> None:
    open_page(phone, offline_product.address)
    ask(phone, QUESTION)
    settle(phone)
    menu, opener = phone.get_by_test_id("stSidebar"), phone.get_by_test_id("stExpandSidebarButton")
    for choice in (".st-key-chat_new button", "[class*=st-key-chat_open_] button"):
        opener.tap()
        expect(menu).to_have_attribute("data-collapsed", "false")
        phone.locator(choice).first.tap()
        expect(menu).to_have_attribute("data-collapsed", "true")
        settle(phone)
    opener.tap()
    expect(menu).to_have_attribute("data-collapsed", "false")
    open_page(phone, offline_product.address)
    expect(menu).to_have_attribute("data-collapsed", "true")


def test_on_a_phone_a_long_answer_is_read_from_its_beginning(
    product: Product, browser: Browser, admin: BrowserContext, shared_standin: ProviderStandin
) -> None:
    """The question goes to the top and stays there while the answer grows past the screen; then a source is opened."""
    context = phone_of(browser, admin)
    page = context.new_page()
    open_page(page, product.address)
    shared_standin.reply("Here it begins [1]. " + many_words(400))
    shared_standin.token_interval_seconds = 0.01
    field = page.get_by_test_id("stChatInput")
    try:
        for number, question in enumerate((QUESTION, "How many of them may be carried over?"), 1):
            page.get_by_test_id("stChatInputTextArea").tap()
            # As a keyboard on the screen does, which takes its height from the page.
            page.set_viewport_size({"width": 390, "height": 480})
            expect(field).to_be_in_viewport(ratio=1)
            ask(page, question)
            page.set_viewport_size({"width": 390, "height": 844})
            answer = page.get_by_test_id("stChatMessage").nth(2 * number - 1)
            page.wait_for_function(
                "(number) => document.querySelectorAll('[data-testid=stChatMessage]')[number]?.offsetHeight > 1000",
                arg=2 * number - 1,
            )
            expect(answer.get_by_text("Here it begins")).to_be_in_viewport()
            expect(page.get_by_text(question, exact=True).last).to_be_in_viewport()
            expect(field).to_be_in_viewport(ratio=1)
            expect(page.get_by_role("button", name="How this answer was found")).to_have_count(number)
            settle(page)
            expect(answer.get_by_text("Here it begins")).to_be_in_viewport()
        answer.locator('a[href^="#s"]').first.tap()
        view = page.locator(".st-key-page_view")
        expect(view.locator("img").first).to_be_visible()
        shown = view.bounding_box()
        assert shown is not None
        assert (shown["x"], shown["width"]) == (0, 390), "the page has the whole screen"
        view.locator("button:visible").first.tap()
        expect(view).to_have_count(0)
        settle(page)
        # The source below it is a chip, all of which opens it.
        source = page.locator('.st-key-chat_now [class*="_card_"]').first
        chip = source.bounding_box()
        assert chip is not None
        assert chip["height"] < 130
        source.tap(position={"x": 24, "y": 16})
        expect(view.locator("img").first).to_be_visible()
    finally:
        context.close()


def test_few_steps_of_tab_lead_to_the_question_and_to_the_newest_source(
    offline_product: Product, offline_page: Page
) -> None:
    page = offline_page
    open_page(page, offline_product.address)
    question = page.get_by_test_id("stChatInputTextArea")
    expect(question).to_be_focused()
    page.evaluate(FROM_THE_TOP)
    page.keyboard.press("Tab")
    expect(page.locator("#hr-to-question")).to_be_focused()
    page.keyboard.press("Enter")
    expect(question).to_be_focused()
    ask(page, QUESTION)
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    settle(page)
    expect(question).to_be_focused()
    seen: list[str] = []
    while not any("Source 1" in said for said in seen):
        page.keyboard.press("Shift+Tab")
        seen.append(str(page.evaluate("(e => e.getAttribute('aria-label') || e.innerText)(document.activeElement)")))
        assert len(seen) <= 10, seen
    for words in ("How this answer was found", "Ask again", "Copy", "Open page"):
        assert any(words in said for said in seen), (words, seen)


#: How far a text is from the left and from the right of its paragraph, in pixels.
GAPS = """(text) => {
  const all = [...document.querySelectorAll("[data-testid=stMainBlockContainer] p")];
  const paragraph = all.find((one) => one.textContent.includes(text));
  const range = document.createRange();
  range.selectNodeContents(paragraph);
  const box = paragraph.getBoundingClientRect(), shown = range.getBoundingClientRect();
  return [shown.left - box.left, box.right - shown.right];
}"""


@needs("meaning")
def test_on_an_arabic_page_each_text_begins_where_its_language_does(
    offline_product: Product, browser: Browser, offline_admin: BrowserContext
) -> None:
    context = browser.new_context(storage_state=offline_admin.storage_state(), viewport={"width": 1280, "height": 860})
    context.add_cookies([{"name": "hr_language", "value": "ar", "url": offline_product.address}])
    page = context.new_page()
    for question, gap in ((QUESTION, 0), ("كم يومًا من الإجازة السنوية؟", 1)):
        open_page(page, offline_product.address)
        ask(page, question)
        expect(page.get_by_test_id("stChatMessage").get_by_text(question, exact=True)).to_be_visible()
        expect(page.get_by_test_id("stFeedback").last).to_be_visible()
        settle(page)
        gaps = page.evaluate(GAPS, question)
        assert (gaps[gap] < 2, gaps[1 - gap] > 50) == (True, True), (question, gaps)
        if question == QUESTION:
            # Page and heading of a source stand beside each other, not within each other.
            place = page.locator('.st-key-chat_now [class*="_card_"]').first
            expect(place).to_contain_text("\N{FIRST STRONG ISOLATE}5 Holidays and absence")
    # In the list a long title is cut at its end, in whichever direction it is read.
    titles = page.locator('[class*=st-key-chat_open_] [data-testid="stMarkdownContainer"]')
    expect(titles).not_to_have_count(0)
    directions = {QUESTION[:12]: "ltr", "كم يومًا": "rtl"}
    for beginning, direction in directions.items():
        expect(titles.filter(has_text=beginning).first).to_have_css("direction", direction)
    # The page of a source is beside the answer, and covers neither it nor the sidebar at the right.
    page.locator('[data-testid=stChatMessage] a[href^="#s"]').first.press("Enter")
    view = page.locator(".st-key-page_view")
    expect(view.locator("img").first).to_be_visible()
    cited = page.locator('[data-testid=stChatMessage] a[href^="#s"]').first
    chip, beside = cited.bounding_box(), view.bounding_box()
    sidebar = page.get_by_test_id("stSidebar").bounding_box()
    assert chip is not None
    assert beside is not None
    assert sidebar is not None
    assert beside["x"] + beside["width"] <= chip["x"] < chip["x"] + chip["width"] <= sidebar["x"]
    page.keyboard.press("Escape")
    expect(view).to_have_count(0)
    open_page(page, offline_product.address + "/health")
    expect(page.get_by_text("pgvector")).to_be_visible()
    assert page.evaluate(GAPS, "pgvector")[1] < 2, "a sentence of the page begins at its right"
    open_page(page, offline_product.address + "/set-up")
    field = page.locator("[data-testid=stTextInput] input").first
    expect(field).to_have_css("unicode-bidi", "plaintext")
    context.close()


def test_on_an_arabic_phone_the_hidden_sidebar_is_not_seen(
    offline_product: Product, browser: Browser, offline_admin: BrowserContext
) -> None:
    context = browser.new_context(
        storage_state=offline_admin.storage_state(), viewport={"width": 390, "height": 844}, has_touch=True
    )
    context.add_cookies([{"name": "hr_language", "value": "ar", "url": offline_product.address}])
    page = context.new_page()
    open_page(page, offline_product.address)
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()
    expect(page.locator(".st-key-chat_new button")).not_to_be_in_viewport()
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.locator(".st-key-chat_new button")).to_be_in_viewport(ratio=1)
    context.close()


#: Returns texts that the edge of their own box, or of one around it, cuts off. A list that scrolls cuts nothing, and
#: what people named themselves is shortened on purpose.
CUT = """() => {
  const shortened = ".st-key-chat_recent, .st-key-frame_found, [data-testid=stDataFrame], [data-testid=stIconMaterial]";
  const lineHeight = (node) => parseFloat(getComputedStyle(node).lineHeight) || 20;
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const has_text = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
    if (!has_text || node.closest(shortened) || !node.checkVisibility({ visibilityProperty: true })) continue;
    const words = document.createRange();
    words.selectNodeContents(node);
    const own = words.getBoundingClientRect();
    for (let box = node; box && box !== document.body; box = box.parentElement) {
      const style = getComputedStyle(box), edges = box.getBoundingClientRect();
      if (box !== node && /auto|scroll/.test(style.overflowX + style.overflowY)) break;
      if (!/hidden|clip/.test(style.overflowX + style.overflowY)) continue;
      if (edges.width <= 2) break;  // for screen readers
      const isCut = box === node
        ? node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + lineHeight(node) / 2
        : own.right > edges.right + 2 || own.left < edges.left - 2 ||
          own.bottom > edges.bottom + lineHeight(node) / 2;
      if (isCut) {
        found.push(node.textContent.trim().slice(0, 60));
        break;
      }
    }
  }
  return [...new Set(found)];
}"""
#: Returns what a field has no room for: its text, else the words that stand there until something is typed.
CUT_IN_FIELDS = """() => {
  const pen = document.createElement("canvas").getContext("2d");
  return [...document.querySelectorAll("input:not([type=checkbox], [type=radio])")].filter((field) => {
    if (field.clientWidth <= 2 || !field.checkVisibility({ visibilityProperty: true })) return false;
    const style = getComputedStyle(field);
    if (style.textOverflow === "ellipsis") return false;  // on a phone, of a list that shows all of it
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return pen.measureText(field.value || field.placeholder).width > room + 1;
  }).map((field) => field.value || field.placeholder);
}"""
#: Keeps in `window.cutCells` what the cells of tables have no room for: they are drawn, each within a box that cuts.
CUT_IN_CELLS = """(() => {
  const pen = CanvasRenderingContext2D.prototype, { beginPath, clip, fillText, rect, restore, save } = pen;
  const of = (canvas) => (canvas.cutting ||= { box: null, path: null, kept: [] });
  window.cutCells = new Set();
  pen.save = function () { const own = of(this); own.kept.push(own.box); return save.call(this); };
  pen.restore = function () { const own = of(this); own.box = own.kept.pop() ?? null; return restore.call(this); };
  pen.beginPath = function () { of(this).path = null; return beginPath.call(this); };
  pen.rect = function (...edges) { of(this).path = edges; return rect.call(this, ...edges); };
  pen.clip = function (...rule) { of(this).box = of(this).path ?? of(this).box; return clip.call(this, ...rule); };
  pen.fillText = function (text, x, ...more) {
    const { box } = of(this), { width } = this.measureText(text);
    const right = x + width * ({ right: 0, end: 0, center: 0.5 }[this.textAlign] ?? 1);
    if (box && right > box[0] + box[2]) window.cutCells.add(text);
    return fillText.call(this, text, x, ...more);
  };
})();"""
#: Dialogs, panels and menus.
OPENED_IN_GERMAN = (
    ("/", "[data-testid=stBottomBlockContainer] [data-testid=stPopoverButton]"),
    ("/library", "[class*=st-key-library_open] button"),
    ("/people", "button:has-text('Schlüssel erstellen')"),
    ("/people", "button:has-text('Mehrere einladen')"),
    ("/people", "button:has-text('Person hinzufügen')"),
    ("/documents", ".st-key-documents_options button"),
    ("/documents", ".st-key-documents_filters button"),
    ("/collections", "button:has-text('Neue Sammlung')"),
    ("/collections", "button:has-text('Einstellungen')"),
    ("/prices", "button:has-text('Preis festlegen')"),
    ("/prices", "button:has-text('Budget festlegen')"),
    *listed("browser", "german_dialogs"),
    ("/analytics", "button:has-text('Bericht')"),
)
VIEWS = tuple(
    f"/analytics?analytics_view={view}"
    for view in ("Costs", "Times", "Search", "Questions", "Unanswered questions", "Quality")
)


def words_in(language: str) -> set[str]:
    """Return what the product itself says in a language. Names that people and documents bring may be cut."""
    with Path(f"rag/locales/{language}/LC_MESSAGES/hr_assistant.po").open("rb") as file:
        messages = read_po(file)
    said = {message.string for message in messages if isinstance(message.string, str)}
    return {*said, *Locale(language).languages.values()}


def cut_texts_of(page: Page, product: Product, path: str, language: str = "de") -> list[str]:
    """Return what a page cuts. What it drew before its font had come is drawn again."""
    turn_to(page, product, path)
    page.evaluate("document.fonts.ready")
    if cut_texts(page, language):
        open_page(page, product.address + path)
        page.evaluate("document.fonts.ready")
    return cut_texts(page, language)


def cut_texts(page: Page, language: str = "de") -> list[str]:
    cells = page.evaluate("[...window.cutCells ?? []]")
    return [*page.evaluate(CUT), *page.evaluate(CUT_IN_FIELDS), *sorted(words_in(language).intersection(cells))]


def test_texts_that_a_box_cuts_are_found(offline_page: Page) -> None:
    offline_page.set_content(
        '<button style="width:60px;overflow:hidden;white-space:nowrap">Zugriffsberechtigungen verwalten</button>'
        '<div style="width:60px;overflow:hidden"><p style="width:200px">Zugriffsberechtigungen</p></div>'
        '<div style="width:60px;overflow:auto"><p style="width:200px">Eine Liste</p></div><p>Ganz zu sehen</p>'
        '<div style="width:90px;height:20px;overflow:hidden"><p style="margin:0">Richten Sie alles ein</p></div>'
        '<div style="width:60px;overflow:hidden;white-space:nowrap"><p>Alles zu den Gehältern</p></div>'
        '<input style="width:60px" placeholder="Alle Sprachen der Welt"><input placeholder="Alle"><canvas></canvas>'
    )
    offline_page.evaluate(CUT_IN_CELLS)
    offline_page.evaluate(
        """() => {
          const pen = document.querySelector("canvas").getContext("2d");
          for (const [text, width] of [["Niederländisch", 20], ["Deutsch", 200]]) {
            pen.save(); pen.beginPath(); pen.rect(0, 0, width, 20); pen.clip();
            pen.fillText(text, 0, 10); pen.restore();
          }
        }"""
    )
    assert cut_texts(offline_page) == [
        "Zugriffsberechtigungen verwalten", "Zugriffsberechtigungen", "Richten Sie alles ein", "Alles zu den Gehältern",
        "Alle Sprachen der Welt", "Niederländisch",
    ]  # fmt: skip


@pytest.mark.parametrize(("width", "height"), [(1280, 860), (390, 844)], ids=["desktop", "phone"])
def test_no_text_is_cut_in_german(
    width: int, height: int, offline_product: Product, offline_admin: BrowserContext, browser: Browser
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height}, locale="de-DE", storage_state=offline_admin.storage_state()
    )
    context.add_init_script(CUT_IN_CELLS)
    page, cut = context.new_page(), {}
    open_page(page, offline_product.address)
    ask(page, "Darf ich einen Papagei auf den Mond mitnehmen?")
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    for path in (*PAGES, *VIEWS):
        cut[path] = cut_texts_of(page, offline_product, path)
    for path, button in OPENED_IN_GERMAN:
        turn_to(page, offline_product, path)
        page.locator(button).locator("visible=true").first.click()
        settle(page)
        cut[f"{path} {button}"] = cut_texts(page)
    assert page.locator("html").get_attribute("lang") == "de"
    context.close()
    assert {path: found for path, found in cut.items() if found} == {}


def test_no_text_is_cut_on_the_fullest_pages_in_any_language(
    offline_product: Product, offline_admin: BrowserContext, browser: Browser
) -> None:
    cut = {}
    page = offline_admin.new_page()
    open_page(page, offline_product.address)
    ask(page, QUESTION)  # so that there is a table of questions
    expect(page.get_by_test_id("stFeedback")).to_be_visible()
    page.close()
    for language in [code for code in LANGUAGES if code not in ("en", "de")]:
        context = browser.new_context(
            viewport={"width": 1280, "height": 860}, locale=language, storage_state=offline_admin.storage_state()
        )
        context.add_init_script(CUT_IN_CELLS)
        page = context.new_page()
        for path in ("/documents", "/analytics?analytics_view=Questions"):
            cut[f"{language} {path}"] = cut_texts_of(page, offline_product, path, language)
            expect(page.get_by_test_id("stDataFrame").locator("canvas").first).to_be_visible()
            cut[f"{language} {path}"] += cut_texts(page, language)
        assert page.locator("html").get_attribute("lang") == language
        context.close()
    assert {path: found for path, found in cut.items() if found} == {}


def test_a_menu_never_lies_over_a_dialog(offline_product: Product, offline_page: Page) -> None:
    open_page(offline_page, offline_product.address + "/analytics")
    offline_page.get_by_role("button", name="Report").click()
    menu = offline_page.get_by_test_id("stPopoverBody")
    expect(menu).to_be_visible()
    offline_page.keyboard.press("Control+k")
    expect(offline_page.get_by_test_id("stDialog").locator("input")).to_be_visible()
    expect(menu).not_to_be_visible()


def test_at_twice_the_size_all_of_a_dialog_can_be_reached(
    offline_product: Product, offline_admin: BrowserContext, browser: Browser
) -> None:
    """A window of 1280 by 800 pixels at 200 % has room for 640 by 400."""
    context = browser.new_context(
        viewport={"width": 640, "height": 400}, locale="en-US", storage_state=offline_admin.storage_state()
    )
    page = context.new_page()
    for path, opener in (
        ("/people", "button:has-text('Invite many')"),
        ("/people", "button:has-text('Make a key')"),
        ("/documents", ".st-key-documents_options button"),
    ):
        open_page(page, offline_product.address + path)
        page.locator(opener).first.click()
        settle(page)
        opened = page.locator("[role=dialog], [data-testid=stPopoverBody]").last
        last = opened.locator("button:visible, input:visible").last
        last.scroll_into_view_if_needed()
        expect(last).to_be_in_viewport(ratio=0.9)
    open_page(page, offline_product.address)
    expect(page.get_by_test_id("stChatInputTextArea")).to_be_in_viewport(ratio=0.9)
    context.close()
