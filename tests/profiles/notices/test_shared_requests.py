"""A board as its source embeds passages of several posts with one request: 000, "100 texts per request"."""

from __future__ import annotations

from decimal import Decimal

import pytest

from rag.services import Services
from rag.storage.database import Database
from rag.types import Collection, DocumentStatus, Identity
from rag.ui.document_details import has_shared_requests
from tests.patience import patient
from tests.profiles.notices.boards import Board
from tests.standins.providers import ProviderStandin


@pytest.fixture
def shared(parts: Services, notices: Collection, administrator: Identity) -> Collection:
    parts.documents.override_collection(administrator, notices.id, {"share_requests": True})
    return parts.documents.collection("demo", notices.id)


def fill(board: Board, posts: int, *, words: int = 60) -> None:
    for number in range(posts):
        board.put(f"p{number:03}", f"공지 {number}", f"<p>{'신청 절차를 안내합니다. ' * words}{number}</p>")


def work(parts: Services) -> None:
    parts.queue.start_worker()
    assert parts.queue.wait_until_idle(patient(120))
    parts.queue.stop_worker()
    parts.pipeline.resume()


def sizes(provider_standin: ProviderStandin) -> list[int]:
    return [len(body["input"]) for kind, body in provider_standin.requests if kind == "embeddings"]


def test_a_board_as_its_source_shares_requests(parts: Services, administrator: Identity) -> None:
    library = parts.documents
    made = library.create_collection(administrator, "As the source", "notices", is_as_source=True)
    assert made.overrides["share_requests"] is True
    assert "share_requests" not in library.create_collection(administrator, "Ours", "notices").overrides


def test_posts_fill_requests_of_100_and_each_request_is_a_row_of_the_collection(
    parts: Services,
    shared: Collection,
    administrator: Identity,
    board: Board,
    provider_standin: ProviderStandin,
    database: Database,
) -> None:
    fill(board, 230)
    report = parts.syncs.sync_now(administrator, shared)
    work(parts)
    assert report.added == 230
    documents = parts.documents.list("demo")
    assert {document.status for document in documents} == {DocumentStatus.COMPLETED}
    chunks = sum(document.chunk_count for document in documents)
    sent = sorted(sizes(provider_standin), reverse=True)
    assert (sum(sent), sent[:-1], sent[-1]) == (chunks, [100] * (chunks // 100), chunks % 100)
    with database.transaction("demo") as connection:
        rows = connection.execute("SELECT document_id, collection_id, cost FROM cost_ledger").fetchall()
        bare = connection.execute("SELECT count(*) FROM document_chunks WHERE embedding IS NULL").fetchone()
        open_calls = connection.execute("SELECT count(*) FROM paid_calls").fetchone()
    assert [(document_id, collection_id) for document_id, collection_id, _ in rows] == [(None, shared.id)] * len(sent)
    assert (bare, open_calls) == ((0,), (0,))
    (run,) = parts.syncs.runs("demo", shared.id)
    assert run.cost == sum((cost for _, _, cost in rows), Decimal(0)) > 0
    figures = parts.documents.figures("demo")
    assert (sum(f.cost for f in figures), sum(f.documents for f in figures)) == (run.cost, 230)
    assert all(has_shared_requests(document) for document in documents)
    assert parts.syncs.sync_now(administrator, shared).unchanged == 230
    work(parts)
    assert len(sizes(provider_standin)) == len(sent)


def test_the_last_posts_do_not_wait_for_a_full_request(
    parts: Services, shared: Collection, administrator: Identity, board: Board, provider_standin: ProviderStandin
) -> None:
    fill(board, 3)
    parts.queue.start_worker()
    parts.syncs.request(administrator, shared)
    assert parts.queue.wait_until_idle(patient(60))
    assert sizes(provider_standin) == [3]
    assert {document.status for document in parts.documents.list("demo")} == {DocumentStatus.COMPLETED}


def test_a_text_that_the_provider_refuses_fails_its_own_post_alone(
    parts: Services, shared: Collection, administrator: Identity, board: Board, provider_standin: ProviderStandin
) -> None:
    fill(board, 4)
    provider_standin.fail_next(400, 1, endpoint="embeddings")  # the request that they share
    provider_standin.fail_next(400, 1, endpoint="embeddings")  # the first post by itself
    parts.syncs.sync_now(administrator, shared)
    work(parts)
    states = sorted(document.status for document in parts.documents.list("demo"))
    assert states == [DocumentStatus.COMPLETED] * 3 + [DocumentStatus.FAILED]
    assert sizes(provider_standin) == [4, 1, 1, 1, 1]


def test_posts_wait_for_a_provider_that_is_down_and_for_nothing_else(
    parts: Services, shared: Collection, administrator: Identity, board: Board, provider_standin: ProviderStandin,
    database: Database,
) -> None:  # fmt: skip
    fill(board, 5)
    provider_standin.fail_next(503, 4, endpoint="embeddings")
    parts.syncs.sync_now(administrator, shared)
    work(parts)
    assert {document.status for document in parts.documents.list("demo")} == {DocumentStatus.COMPLETED}
    with database.transaction("demo") as connection:
        (paid,) = connection.execute("SELECT count(*) FROM cost_ledger WHERE NOT is_estimated").fetchone() or (0,)
    assert paid == 1


def test_a_passage_without_a_vector_is_named_on_its_post(
    parts: Services, shared: Collection, administrator: Identity, board: Board, provider_standin: ProviderStandin
) -> None:
    fill(board, 4, words=150)  # two passages each
    provider_standin.without_vector = lambda text: text.endswith("2") and len(text) < 1000
    provider_standin.vector_instead = (None,)
    parts.syncs.sync_now(administrator, shared)
    work(parts)
    told = {document.title: "by meaning" in document.message for document in parts.documents.list("demo")}
    assert told == {"공지 0": False, "공지 1": False, "공지 2": True, "공지 3": False}


def test_work_that_was_stopped_goes_on_and_pays_once(
    parts: Services, shared: Collection, administrator: Identity, board: Board, provider_standin: ProviderStandin,
    database: Database,
) -> None:  # fmt: skip
    fill(board, 130)
    parts.syncs.sync_now(administrator, shared)
    provider_standin.hang = True  # the first request is under way when the application stops
    parts.queue.start_worker()
    waits = patient(60)
    while not sizes(provider_standin) and waits > 0:
        provider_standin.released.wait(0.1)
        waits -= 0.1
    parts.queue.stop_worker()
    provider_standin.release()
    parts.pipeline.resume()
    work(parts)
    assert {document.status for document in parts.documents.list("demo")} == {DocumentStatus.COMPLETED}
    with database.transaction("demo") as connection:
        (open_calls,) = connection.execute("SELECT count(*) FROM paid_calls").fetchone() or (None,)
    assert open_calls == 0
