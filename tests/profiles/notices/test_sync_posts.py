"""A board's table and its collection: what a sync adds, renews, removes, and what it costs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rag.samples
from rag.errors import InvalidInput, NotAllowed, ProviderUnavailable, SettingsError
from rag.ingestion.sources.sync import SyncWriter, sync_collection
from rag.services import Services
from rag.storage.database import Database
from rag.types import Collection, DocumentStatus, Identity, Role
from tests import hostile
from tests.patience import patient
from tests.standins.providers import ProviderStandin

if TYPE_CHECKING:
    from tests.profiles.notices.boards import Board, Follow


def titles(parts: Services, collection: Collection) -> set[str]:
    return {d.title for d in parts.documents.list("demo", collection_id=collection.id)}


def test_without_the_table_the_run_says_so_and_nothing_is_removed(
    parts: Services, notices: Collection, administrator: Identity
) -> None:
    parts.syncs.request(administrator, notices)
    parts.syncs.run("demo", notices.id)
    run = parts.syncs.runs("demo", notices.id)[0]
    assert run.status == "failed"
    assert "There is no table hof_posts" in run.message


def test_a_table_that_was_not_granted_is_named_with_the_grant(
    parts: Services, notices: Collection, administrator: Identity, board: Board
) -> None:
    board.connection.execute("REVOKE ALL ON hof_posts FROM rag_app")
    with pytest.raises(SettingsError, match="GRANT SELECT ON hof_posts TO rag_app"):
        parts.syncs.sync_now(administrator, notices)


def test_only_an_administrator_asks_for_a_sync(parts: Services, notices: Collection, administrator: Identity) -> None:
    with pytest.raises(NotAllowed):
        parts.syncs.request(replace(administrator, role=Role.MANAGER), notices)


def test_a_table_that_suddenly_lists_nothing_removes_nothing(
    parts: Services, notices: Collection, administrator: Identity, board: Board
) -> None:
    board.put("p1", "제목", "<p>본문</p>")
    parts.syncs.sync_now(administrator, notices)
    board.connection.execute("DELETE FROM hof_posts")
    with pytest.raises(InvalidInput, match="lists nothing"):
        parts.syncs.sync_now(administrator, notices)
    assert titles(parts, notices) == {"제목"}
    assert parts.syncs.sync_now(administrator, notices, allow_empty=True).removed == 1
    assert titles(parts, notices) == set()


def test_posts_become_documents_with_every_field_of_the_vector_record(
    parts: Services, notices: Collection, administrator: Identity, board: Board, follow: Follow
) -> None:
    board.put(
        "p1",
        "12월 정착지원금 신청 안내",
        "<p>작성일: 2024-12-15</p><p>신청서를 <b>지점</b>에 냅니다.</p><script>x()</script>",
        category_id="c1",
        is_pinned=True,
        is_important=True,
        view_count=7,
        published_at="2026-11-01T00:00:00Z",
    )
    board.attach("p1", "양식.hwp", size=900)
    report = parts.syncs.sync_now(administrator, notices)
    assert (report.added, report.unchanged) == (1, 0)
    (document,) = follow.process(notices)
    assert document.status is DocumentStatus.COMPLETED
    assert document.metadata["createdAt"] > 0
    known = {
        "postId": "p1",
        "categoryId": "c1",
        "categoryName": "MD 공지",
        "categorySlug": "notice-md",
        "title": "12월 정착지원금 신청 안내",
        "excerpt": "작성일: 2024-12-15\n\n신청서를 지점에 냅니다.",
        "publishedAt": 1793491200000,
        "backdatedAt": 1734188400000,  # midnight of that day in Seoul
        "isPinned": True,
        "isImportant": True,
        "status": "published",
        "viewCount": 7,
        "attachmentCount": 1,
        "totalChunks": 1,
        "hasImages": False,
        "hasDocuments": True,
    }
    assert {name: document.metadata[name] for name in known} == known
    assert json.loads(document.metadata["attachmentsJson"])[0]["fileName"] == "양식.hwp"
    (chunk,) = parts.documents.chunks("demo", document.id)
    assert chunk.content.endswith("- 문서: 양식.hwp")
    assert "x()" not in chunk.content


def test_a_second_sync_does_nothing_and_costs_nothing(
    parts: Services,
    notices: Collection,
    administrator: Identity,
    board: Board,
    follow: Follow,
    provider_standin: ProviderStandin,
) -> None:
    for number in range(3):
        board.put(f"p{number}", f"제목 {number}", f"<p>본문 {number}</p>")
    parts.syncs.sync_now(administrator, notices)
    before = follow.process(notices)
    calls = sum(provider_standin.calls.values())
    report = parts.syncs.sync_now(administrator, notices)
    assert (report.unchanged, report.added, report.updated, report.documents) == (3, 0, 0, ())
    assert follow.process(notices) == before
    assert sum(provider_standin.calls.values()) == calls
    assert parts.syncs.runs("demo", notices.id)[0].cost is None


def test_a_sync_tells_how_far_it_is(
    parts: Services, notices: Collection, administrator: Identity, board: Board
) -> None:
    for number in range(3):
        board.put(f"p{number}", f"제목 {number}", f"<p>본문 {number}</p>")
    (source,) = parts.syncs.sources(notices)
    told: list[tuple[int, int]] = []
    sync_collection(
        SyncWriter(parts.database, parts.files, notices, source.kind, queue=None),
        parts.syncs.source(notices, source.kind, source.settings),
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(1, 3), (2, 3), (3, 3)]
    parts.syncs.sync_now(administrator, notices)
    (run,) = parts.syncs.runs("demo", notices.id)
    assert (run.status, run.items_done, run.items_total) == ("done", 3, 3)


def test_a_sync_that_is_done_has_seen_all_of_what_people_may_read(
    parts: Services, notices: Collection, administrator: Identity, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.ingestion.sources.runs.PROGRESS_SECONDS", 0.0)
    for number in range(8):
        board.put(f"p{number}", f"제목 {number}", f"<p>본문 {number}</p>")
    board.put("draft", "초안", "<p>아직</p>", status="draft")
    parts.syncs.sync_now(administrator, notices)
    (run,) = parts.syncs.runs("demo", notices.id)
    assert (run.status, run.items_done, run.items_total) == ("done", 8, 8)
    board.remove("p7")
    parts.syncs.sync_now(administrator, notices)
    parts.syncs.sync_now(administrator, notices)
    latest = parts.syncs.runs("demo", notices.id)[0]
    assert (latest.items_done, latest.items_total) == (7, 7)


def test_pins_and_views_are_renewed_free_of_charge(
    parts: Services,
    notices: Collection,
    administrator: Identity,
    board: Board,
    follow: Follow,
    provider_standin: ProviderStandin,
) -> None:
    board.put("p1", "제목", "<p>본문</p>")
    parts.syncs.sync_now(administrator, notices)
    follow.process(notices)
    calls = sum(provider_standin.calls.values())
    board.put("p1", is_pinned=True, view_count=90)
    assert parts.syncs.sync_now(administrator, notices).updated == 1
    (document,) = follow.process(notices)
    assert (document.metadata["isPinned"], document.metadata["viewCount"], document.version) == (True, 90, 1)
    assert sum(provider_standin.calls.values()) == calls


def test_a_changed_post_answers_in_its_old_words_until_its_new_ones_are_ready(
    parts: Services, notices: Collection, administrator: Identity, board: Board, follow: Follow
) -> None:
    board.put("p1", "제목", "<p>옛 본문</p>")
    parts.syncs.sync_now(administrator, notices)
    (old,) = follow.process(notices)
    board.put("p1", "제목", "<p>새 본문</p>")
    assert parts.syncs.sync_now(administrator, notices).updated == 1
    assert parts.documents.get("demo", old.id).status is DocumentStatus.COMPLETED
    (new,) = follow.process(notices)
    assert [chunk.content for chunk in parts.documents.chunks("demo", new.id)] == ["새 본문"]
    assert new.version == 2
    again = parts.syncs.sync_now(administrator, notices)
    assert (again.updated, again.unchanged) == (0, 1)


def test_what_is_gone_or_hidden_in_the_table_is_gone_here(
    parts: Services, notices: Collection, administrator: Identity, board: Board, follow: Follow, database: Database
) -> None:
    for key in ("p1", "p2", "p3"):
        board.put(key, key, f"<p>{key} 본문</p>")
    parts.syncs.sync_now(administrator, notices)
    follow.process(notices)
    board.remove("p1")
    board.put("p2", status="draft")
    assert parts.syncs.sync_now(administrator, notices).removed == 2
    assert titles(parts, notices) == {"p3"}
    with database.transaction("demo") as connection:
        left = connection.execute("SELECT count(*) FROM document_chunks").fetchone()
    assert left == (1,)


def test_attachments_are_described_once_by_their_content(
    parts: Services,
    notices: Collection,
    administrator: Identity,
    board: Board,
    follow: Follow,
    provider_standin: ProviderStandin,
) -> None:
    provider_standin.reply("신청 절차를 적은 문서입니다.")
    board.put("p1", "제목", "<p>본문</p>")
    board.attach("p1", "guide.pdf", hostile.leave_policy())
    parts.syncs.sync_now(administrator, notices)
    (document,) = follow.process(notices)
    assert provider_standin.calls["chat"] == 1
    assert provider_standin.requests[0][1]["model"] == "gemini-flash-latest"
    assert "설명: 신청 절차를 적은 문서입니다." in parts.documents.chunks("demo", document.id)[0].content
    costs = parts.ledger.document_costs("demo", document.id)
    assert costs.parsing
    board.put("p1", "제목", "<p>다른 본문</p>")
    parts.syncs.sync_now(administrator, notices)
    (document,) = follow.process(notices)
    assert provider_standin.calls["chat"] == 1
    assert "신청 절차를 적은" in parts.documents.chunks("demo", document.id)[0].content


def test_a_provider_that_is_down_leaves_the_post_for_another_try(
    parts: Services,
    notices: Collection,
    administrator: Identity,
    board: Board,
    follow: Follow,
    provider_standin: ProviderStandin,
) -> None:
    board.put("p1", "제목", "<p>본문</p>")
    board.attach("p1", "a.txt", "일정 안내".encode())
    parts.syncs.sync_now(administrator, notices)
    provider_standin.fail_next(503, times=50, endpoint="chat")
    with pytest.raises(ProviderUnavailable):
        follow.process(notices)
    provider_standin.reset()
    (document,) = follow.process(notices)
    assert document.status is DocumentStatus.COMPLETED


def test_another_tenants_board_is_not_seen(
    parts: Services, notices: Collection, administrator: Identity, board: Board
) -> None:
    board.put("p1", "제목", "<p>본문</p>")
    parts.syncs.sync_now(administrator, notices)
    assert parts.syncs.runs("other", notices.id) == []
    assert parts.documents.list("other") == []


def test_the_sample_board_is_loaded_and_is_searched(
    parts: Services, administrator: Identity, provider_standin: ProviderStandin
) -> None:
    from rag.samples.load import BOARD, load_board

    load_board(parts)
    collection = next(c for c in parts.documents.collections("demo") if c.name == BOARD)
    documents = parts.documents.list("demo", collection_id=collection.id)
    assert {d.status for d in documents} == {DocumentStatus.COMPLETED}
    assert len(documents) == 10
    assert provider_standin.calls["chat"] == 0
    texts = {d.metadata["postId"]: parts.documents.chunks("demo", d.id)[0].content for d in documents}
    assert "internal review memo" not in texts["sample-04"]
    assert all(cell in texts["sample-04"] for cell in ("A, pulp hall", "6 a month", "5 a month"))
    assert "trackView" not in texts["sample-03"]
    assert "2차" in texts["sample-02"]
    assert "1. 대상: 부산 종이 스튜디오" in texts["sample-01"]


def test_the_sample_board_is_of_the_samples_company_in_english_and_korean() -> None:
    from rag.profiles.notices.sources import sample_posts

    posts = sample_posts()
    korean = [post for post in posts if re.search("[가-힣]", post.html)]
    assert (len(korean), len(posts) - len(korean)) == (5, 5)
    assert {post.category_name for post in posts} > {"People · 인사", "Safety · 안전"}
    handbook = (Path(rag.samples.FOLDER) / "texts" / "ottermere_handbook.md").read_text("utf-8")
    for fact in ("extension 555", "Old Rag House", "first Wednesday of the month", "up to five further days"):
        assert fact in handbook
        assert any(fact in post.html for post in posts), fact


def test_a_board_of_172_posts_costs_what_the_source_says_and_nothing_the_second_time(
    parts: Services,
    notices: Collection,
    administrator: Identity,
    board: Board,
    provider_standin: ProviderStandin,
    database: Database,
) -> None:
    """Source 000, 6: about 200 embeddings for $0.026 and 170 attachment analyses for $0.01, $0.04 in all."""
    posts, attachments = 172, 170
    # Of the day this was written: lists change.
    for model, unit, price in (
        ("text-embedding-3-large", "input_mtok", "0.13"),
        ("gemini-flash-latest", "input_mtok", "0.75"),
        ("gemini-flash-latest", "output_mtok", "3.75"),
    ):
        parts.prices.set(administrator, model, unit, price)
    provider_standin.reply("신청 절차와 일정을 적은 문서입니다.")
    for number in range(posts):
        length = 150 if number % 6 == 0 else 60  # every sixth post is cut in two
        board.put(f"p{number:03}", f"공지 {number}", f"<p>{'신청 절차를 안내합니다. ' * length}{number}</p>")
        if number < attachments:
            board.attach(f"p{number:03}", "안내.txt", f"{number}번 안내문".encode())

    def sync() -> dict[str, Any]:
        report = parts.syncs.sync_now(administrator, notices)
        parts.queue.start_worker()
        assert parts.queue.wait_until_idle(patient(240))
        parts.queue.stop_worker()
        parts.pipeline.resume()
        return {
            name: getattr(report, name)
            for name in ("added", "updated", "unchanged", "removed", "failed")
            if getattr(report, name)
        }

    def paid() -> dict[str, Decimal]:
        with database.transaction("demo") as connection:
            return dict(connection.execute("SELECT operation, sum(cost) FROM cost_ledger GROUP BY 1").fetchall())

    assert sync() == {"added": posts}
    documents = parts.documents.list("demo")
    assert {d.status for d in documents} == {DocumentStatus.COMPLETED}
    chunks = sum(d.chunk_count for d in documents)
    assert 190 <= chunks <= 210
    assert provider_standin.calls["chat"] == attachments
    used = provider_standin.usages
    embedded = sum(usage["input_tokens"] for usage in used if usage["endpoint"] == "embeddings")
    read = sum(usage["input_tokens"] for usage in used if usage["endpoint"] == "chat")
    written = sum(usage["output_tokens"] for usage in used if usage["endpoint"] == "chat")
    costs = paid()
    assert costs.keys() == {"embedding", "ocr"}
    assert costs["embedding"] == pytest.approx(embedded * Decimal("0.13") / 1_000_000)
    assert costs["ocr"] == pytest.approx((read * Decimal("0.75") + written * Decimal("3.75")) / 1_000_000)
    assert costs["embedding"] < Decimal("0.026")
    assert costs["embedding"] + costs["ocr"] < Decimal("0.04")
    (run,) = parts.syncs.runs("demo", notices.id)
    assert run.cost == sum(costs.values())

    calls = provider_standin.calls.total()
    assert sync() == {"unchanged": posts}
    for number in range(3):
        board.remove(f"p{number:03}")
    assert sync() == {"unchanged": posts - 3, "removed": 3}
    assert len(parts.documents.list("demo")) == posts - 3
    assert (provider_standin.calls.total(), paid()) == (calls, costs)
