"""Webhook events of a board: late, twice and out of order, they end in the state of the table."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from rag.errors import InvalidInput, NotFound
from rag.services import Services
from rag.storage.database import Database
from rag.types import Collection, DocumentStatus, Identity
from tests.profiles.notices.boards import event
from tests.standins.providers import ProviderStandin

if TYPE_CHECKING:
    from tests.profiles.notices.boards import Board, Follow


def contents(parts: Services, collection: Collection) -> dict[str, tuple[str, str]]:
    """Title and text of each post, by its id."""
    found = {}
    for document in parts.documents.list("demo", collection_id=collection.id):
        text = "".join(chunk.content for chunk in parts.documents.chunks("demo", document.id))
        found[document.metadata["postId"]] = (document.title, text)
    return found


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "TRUNCATE", "table": "hof_posts", "record": {"id": "1"}},
        {"type": "INSERT", "table": "hof_posts", "record": None},
        {"type": "DELETE", "table": "hof_posts", "record": {"id": "1"}, "old_record": None},
        {"type": "INSERT", "table": "hof_posts", "record": {"title": "no id"}},
    ],
)
def test_what_is_no_event_is_refused(parts: Services, notices: Collection, payload: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        parts.syncs.receive("demo", payload)


def test_an_event_of_another_table_is_nobodys(parts: Services, notices: Collection) -> None:
    with pytest.raises(NotFound):
        parts.syncs.receive("demo", event("INSERT", {"id": "1"}) | {"table": "accounts"})


def test_without_a_table_the_events_own_record_counts(parts: Services, notices: Collection, follow: Follow) -> None:
    record = {"id": "p1", "title": "제목", "content": "<p>본문</p>", "updated_at": "2026-11-01T00:00:00Z"}
    assert parts.syncs.receive("demo", event("INSERT", record))
    (document,) = follow(notices)
    assert document.status is DocumentStatus.COMPLETED
    assert contents(parts, notices) == {"p1": ("제목", "본문")}
    later = record | {"content": "<p>새 본문</p>", "updated_at": "2026-11-02T00:00:00Z"}
    assert parts.syncs.receive("demo", event("UPDATE", later))
    assert not parts.syncs.receive("demo", event("UPDATE", record))
    follow(notices)
    assert contents(parts, notices) == {"p1": ("제목", "새 본문")}
    assert parts.syncs.receive("demo", event("DELETE", later))
    follow(notices)
    assert contents(parts, notices) == {}
    assert not parts.syncs.receive("demo", event("UPDATE", later))
    assert not parts.syncs.receive("demo", event("DELETE", later))
    again = later | {"updated_at": "2026-11-03T00:00:00Z"}
    assert parts.syncs.receive("demo", event("INSERT", again))
    follow(notices)
    assert contents(parts, notices) == {"p1": ("제목", "새 본문")}


def test_where_there_is_a_table_it_has_the_last_word(
    parts: Services, notices: Collection, board: Board, follow: Follow
) -> None:
    early = board.put("p1", "제목", "<p>옛 본문</p>")
    board.put("p1", "제목", "<p>새 본문</p>")
    parts.syncs.receive("demo", event("INSERT", early))
    follow(notices)
    assert contents(parts, notices) == {"p1": ("제목", "새 본문")}
    board.remove("p1")
    parts.syncs.receive("demo", event("UPDATE", early | {"updated_at": board.now().isoformat()}))
    follow(notices)
    assert contents(parts, notices) == {}


def test_events_in_any_order_end_in_the_state_of_the_table_with_one_bill_per_post(
    parts: Services,
    notices: Collection,
    administrator: Identity,
    board: Board,
    follow: Follow,
    provider_standin: ProviderStandin,
    database: Database,
) -> None:
    dice = random.Random(5)
    events = changed_at_random(board, dice, posts=12, changes=60)
    events += dice.sample(events, 20)
    dice.shuffle(events)
    for number, sent in enumerate(events):
        parts.syncs.receive("demo", sent)
        if number % 17 == 0:
            follow(notices)
    follow(notices)
    found = board.connection.execute("SELECT id, title, regexp_replace(content, '<[^>]+>', '', 'g') FROM hof_posts")
    assert contents(parts, notices) == {key: (title, text) for key, title, text in found.fetchall()}
    with database.transaction("demo") as connection:
        bills = connection.execute(
            "SELECT count(*), count(DISTINCT document_id) FROM cost_ledger WHERE operation = 'embedding'"
        ).fetchone()
    assert bills == (len(contents(parts, notices)),) * 2
    assert provider_standin.calls["embeddings"] == len(contents(parts, notices))
    report = parts.syncs.sync_now(administrator, notices)
    assert report.unchanged == len(contents(parts, notices))
    assert (report.added, report.updated, report.removed) == (0, 0, 0)


def changed_at_random(board: Board, dice: random.Random, *, posts: int, changes: int) -> list[dict[str, Any]]:
    """Insert, change and delete posts; the event of each change in its order."""
    events, there = [], set[str]()
    for number in range(changes):
        key = f"p{dice.randrange(posts)}"
        if key in there and dice.random() < 0.2:
            there.discard(key)
            events.append(event("DELETE", board.remove(key)))
            continue
        record = board.put(key, f"제목 {key}", f"<p>본문 {key} {number}</p>")
        events.append(event("UPDATE" if key in there else "INSERT", record))
        there.add(key)
    return events
