"""Scanned PDFs on a post: recognised once and paid once, or why not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rag.services import Services, assemble
from rag.storage.database import Database
from rag.types import Collection, Document, DocumentStatus, Identity
from tests import hostile
from tests.profiles.notices.boards import Follow
from tests.standins.providers import ProviderStandin

if TYPE_CHECKING:
    from tests.profiles.notices.boards import Board

Make = Callable[..., Services]


@pytest.fixture
def make(parts: Services, database: Database) -> Iterator[Make]:
    """The product with other settings on the same database."""
    made: list[Services] = []

    def assembled(**changed: object) -> Services:
        made.append(assemble(replace(parts.settings, **changed), database))  # type: ignore[arg-type]
        return made[-1]

    yield assembled
    for other in made:
        other.pipeline.close()
        other.providers.close()


def attached(document: Document) -> dict[str, Any]:
    (found,) = json.loads(document.metadata["attachmentsJson"])
    return dict(found)


def asked_of_model(standin: ProviderStandin) -> str:
    return "\n".join(str(body["messages"]) for path, body in standin.requests if "chat" in path)


def synced(made: Services, identity: Identity, board: Collection) -> Document:
    made.syncs.sync_now(identity, board)
    (document,) = Follow(made).process(board)
    assert document.status is DocumentStatus.COMPLETED, document.message
    return document


def test_a_scan_is_recognised_summarised_and_paid_once_also_where_its_post_changes(
    make: Make, board: Board, notices: Collection, administrator: Identity, provider_standin: ProviderStandin
) -> None:
    made = make(upstage_api_key="key", upstage_base_url=f"http://127.0.0.1:{provider_standin.port}")
    provider_standin.reply("휴가 신청 안내의 요약입니다.")
    board.put("p1", "휴가 안내", "<p>첨부를 보세요.</p>")
    board.attach("p1", "안내.pdf", hostile.scanned_page())
    document = synced(made, administrator, notices)
    assert "Recognised text 1 of 1." in asked_of_model(provider_standin)
    assert (attached(document)["description"], attached(document)["note"]) == ("휴가 신청 안내의 요약입니다.", "")
    assert provider_standin.calls["ocr"] == 1
    with made.database.transaction("demo") as connection:
        bills = connection.execute("SELECT model, cost FROM cost_ledger WHERE operation = 'ocr'").fetchall()
    assert "document-parse" in {model for model, _ in bills}
    assert all(cost for _, cost in bills)
    # The summary was lost, such as by a kill after the text was recognised and paid.
    with made.database.transaction("demo") as connection:
        connection.execute("UPDATE attachment_texts SET sha256 = 'gone' WHERE text NOT LIKE '[%%'")
    board.put("p1", "휴가 안내 (수정)", "<p>첨부를 보세요!</p>")
    document = synced(made, administrator, notices)
    assert attached(document)["description"]
    assert provider_standin.calls["ocr"] == 1


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")
def test_tesseract_recognises_where_no_provider_does(
    make: Make, board: Board, notices: Collection, administrator: Identity, provider_standin: ProviderStandin
) -> None:
    board.put("p1", "휴가 안내", "<p>첨부를 보세요.</p>")
    board.attach("p1", "leave.pdf", hostile.scanned_page())
    assert attached(synced(make(tesseract="tesseract"), administrator, notices))["description"]
    assert "Call your manager before nine" in asked_of_model(provider_standin)


def test_without_recognition_it_says_what_is_missing_and_a_refused_scan_keeps_its_post(
    make: Make, board: Board, notices: Collection, administrator: Identity, provider_standin: ProviderStandin
) -> None:
    board.put("p1", "휴가 안내", "<p>첨부를 보세요.</p>")
    board.attach("p1", "leave.pdf", hostile.scanned_page())
    assert (
        "paste a key of Upstage on the page Set-up"
        in attached(synced(make(tesseract="none"), administrator, notices))["note"]
    )
    assert provider_standin.calls["chat"] == 0
    board.put("p1", "휴가 안내 2")
    provider_standin.fail_next(400, endpoint="ocr")
    address = f"http://127.0.0.1:{provider_standin.port}"
    refused = attached(synced(make(upstage_api_key="key", upstage_base_url=address), administrator, notices))
    assert (refused["description"], bool(refused["note"])) == ("", True)
