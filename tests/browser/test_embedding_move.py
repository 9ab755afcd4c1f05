"""A collection is moved to another embedding model on the page: begun, cancelled on the way, done, and undone."""

from __future__ import annotations

import re
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Page, expect

from tests.browser.conftest import Product, settle
from tests.patience import patient
from tests.standins.providers import ProviderStandin

pytestmark = pytest.mark.browser

SUBJECTS = ("Leave", "Travel", "Bicycles", "Pay", "Training", "Safety", "Visitors", "Keys")
SENTENCE = "{subject} is agreed with the manager, noted in the calendar of the team, and kept for {number} years. "


def send(page: Page, product: Product, path: str, **body: Any) -> Any:
    answer: APIResponse = page.request.post(product.address + path, headers={"Origin": product.address}, **body)
    assert answer.ok, answer.text()
    return answer.json()


def until(page: Page, product: Product, document_id: str, status: str) -> None:
    """Ask for a document until it has a status."""
    for _ in range(round(patient(600))):
        found = page.request.get(f"{product.address}/api/documents/{document_id}").json()["status"]
        if found == status:
            return
        page.wait_for_timeout(200)
    raise AssertionError(f"the document is {found}, and not {status}")


def fill_collection(page: Page, product: Product) -> str:
    """Make a collection on the built-in model with eight documents of several passages; the address of its page."""
    made = send(
        page,
        product,
        "/api/collections",
        data={"name": "Moving house", "profile": "hr", "embeddingModel": "builtin/lexical@1536"},
    )
    added = []
    for subject in SUBJECTS:
        text = "\n\n".join(SENTENCE.format(subject=subject, number=number) * 6 for number in range(1, 7))
        file = {"name": f"{subject}.txt", "mimeType": "text/plain", "buffer": text.encode()}
        form = {"file": file, "generateMetadata": "false"}
        added.append(send(page, product, f"/api/collections/{made['id']}/documents", multipart=form)["id"])
    for document_id in added:
        until(page, product, document_id, "estimated")
        send(page, product, f"/api/documents/{document_id}/confirm")
    for document_id in added:
        until(page, product, document_id, "completed")
    return f"{product.address}/collections?collection={made['id']}"


def test_a_move_is_begun_cancelled_done_and_undone(
    product: Product, page: Page, shared_standin: ProviderStandin
) -> None:
    where = fill_collection(page, product)
    page.goto(where)
    builtin = page.get_by_text("Moving house is searched with the built-in model.")
    begin = page.get_by_role("button", name=re.compile(r"^Move \d+ passages to the new model \(\$0\.\d+\)"))
    expect(builtin).to_be_visible()

    # The provider answers the first call, and keeps the others waiting until the move is cancelled.
    gate, calls = Event(), []

    def hold(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        calls.append(len(rows))
        if len(calls) > 1:
            gate.wait(patient(60))
        return rows

    shared_standin.alter_embeddings = hold
    try:
        settle(page)
        begin.click()
        expect(page.get_by_text(re.compile(r"[1-9]\d* of \d+ passages are moved to the new model"))).to_be_visible()
        cancel = page.get_by_role("button", name="Cancel the move")
        cancel.click()
        sure = page.get_by_role("dialog")
        expect(sure.get_by_text(re.compile(r"new search data of \d+ passages? is removed"))).to_be_visible()
        sure.get_by_role("button", name="Cancel the move").click()
        expect(sure).to_have_count(0)
        expect(begin).to_be_visible()
        expect(builtin).to_be_visible()
    finally:
        gate.set()
        shared_standin.alter_embeddings = None

    settle(page)
    begin.click()
    expect(page.get_by_text("The search data of the old model is kept until you remove it.")).to_be_visible(
        timeout=patient(60_000)
    )
    expect(page.get_by_text(re.compile("Moving house is searched with text-embedding-3-small"))).to_be_visible()
    settle(page)
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(builtin).to_be_visible(timeout=patient(60_000))
