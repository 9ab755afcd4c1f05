"""A key from its making to its end, and a conversation in which a question leans on the one before, in a browser."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import EMAIL, Product
from tests.browser.tables import BOX, click_row
from tests.standins.providers import ProviderStandin, default_reply

pytestmark = pytest.mark.browser

ALONE = "How many days of annual leave may be carried over?"
NEXT = ("Who approves it?", "When is it booked?", "What about part-time?")


@pytest.fixture
def helpful_standin(shared_standin: ProviderStandin) -> ProviderStandin:
    """Rewrites every question that leans on another, and suggests the next ones."""

    def reply(messages: list[dict[str, Any]]) -> str:
        rules = str(messages[0]["content"])
        if "stands alone" in rules:
            return ALONE
        return "\n".join(NEXT) if "Suggest 3" in rules else default_reply(messages)

    shared_standin.reply(reply)
    return shared_standin


def test_a_key_is_made_scoped_shown_once_used_and_revoked(product: Product, page: Page) -> None:
    page.goto(product.address + "/people")
    page.get_by_role("button", name="Make a key").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name", exact=True).fill("Intranet")
    chosen = form.get_by_test_id("stMultiSelect").locator("input")
    chosen.fill("documents:read")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    form.get_by_role("spinbutton", name="year, Last day").click()
    page.keyboard.type(f"{datetime.now(UTC):%Y%m%d}")
    # The calendar is closed by a click beside it.
    form.get_by_text("Make an API key").click(force=True)
    form.get_by_role("button", name="Make the key").click()
    expect(page.get_by_text("Your new API key")).to_be_visible()
    secret = page.get_by_role("dialog").locator("code").inner_text().strip()
    page.get_by_role("button", name="I have copied it").click()
    expect(page.get_by_text(secret)).to_have_count(0)
    with httpx.Client(base_url=product.address, headers={"Authorization": f"Bearer {secret}"}) as program:
        assert set(program.get("/api/me").json()["scopes"]) == {"chat", "search", "documents:read"}
        assert program.post("/api/rag/sync", json={}).json()["code"] == "scope_missing"
        revoke = page.get_by_role("button", name="Revoke")
        click_row(page, 0, BOX, revoke, of=page.get_by_test_id("stDataFrame").last)
        revoke.click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        refused = program.get("/api/me")
    assert (refused.status_code, refused.json()["code"]) == (401, "key_rejected")


def test_the_page_of_the_api_shows_every_call_and_loads_nothing_from_elsewhere(product: Product, page: Page) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.goto(product.address + "/api/docs")
    described = page.evaluate("fetch('/api/openapi.json').then((answer) => answer.json())")
    calls = sum(len(methods) for methods in described["paths"].values())
    expect(page.locator(".opblock")).to_have_count(calls)
    page.locator("#operations-Service-me").click()
    page.locator("#operations-Service-me").get_by_role("button", name="Execute").click()
    expect(page.locator("#operations-Service-me .live-responses-table")).to_contain_text(EMAIL)
    assert [url for url in asked if not url.startswith((product.address, "data:"))] == []
    assert complaints == []


def test_a_question_that_leans_on_another_says_on_demand_what_was_searched_for(
    product: Product, page: Page, helpful_standin: ProviderStandin
) -> None:
    page.goto(product.address)
    found = page.get_by_role("button", name=re.compile("How this answer was found"))
    page.fill("[data-testid=stChatInputTextArea]", "How many days of annual leave are there?")
    page.keyboard.press("Enter")
    expect(found).to_have_count(1)
    helpful_standin.write(3)
    page.fill("[data-testid=stChatInputTextArea]", "And carried over?")
    page.keyboard.press("Enter")
    # While the second answer is written, neither sources nor buttons of the first are below it.
    page.wait_for_selector("[data-answer] p")
    below = """() => {
      const now = document.querySelector(".st-key-chat_now:has([data-answer])");
      return now && [now.querySelectorAll("[data-answer] p").length, now.querySelectorAll("button").length];
    }"""
    assert page.evaluate(below) == [1, 0]
    helpful_standin.write(None)
    expect(found).to_have_count(2)
    expect(page.get_by_text(ALONE)).to_have_count(0)
    # At once, before the next questions are there.
    found.last.click()
    expect(page.get_by_text(ALONE)).to_be_visible()
    page.keyboard.press("Escape")
    for question in NEXT:
        expect(page.get_by_role("button", name=question)).to_be_visible()
    page.get_by_role("button", name=NEXT[0]).click()
    expect(page.get_by_role("button", name=re.compile("How this answer was found"))).to_have_count(3)
