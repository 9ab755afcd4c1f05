"""A thousand webhook events in random order with duplicates: the same state as the table, one bill per changed post.

`python -m benchmarks.board_events --events 1000`. Everything runs for real but the providers, which are the stand-in:
the embedded database, the queue's worker, the events as the route hands them on. Says how long taking an event took.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from rag.database import Database
from rag.embedded import EmbeddedServer, start_server
from rag.migrations import migrate
from rag.profiles import NOTICES
from rag.services import Services, assemble
from rag.settings import Settings
from tests.standin import ProviderStandin

TABLE = """
CREATE TABLE hof_posts (id text PRIMARY KEY, title text, content text, created_at timestamptz, updated_at timestamptz);
GRANT SELECT ON hof_posts TO rag_app;
INSERT INTO tenants (id, name) VALUES ('demo', 'Demo');
"""


@dataclass
class Outcome:
    posts: int
    differences: int
    bills: int
    embedded: int
    milliseconds: list[float]


def change(connection: psycopg.Connection[Any], dice: random.Random, changes: int, posts: int) -> list[dict[str, Any]]:
    """Insert, change and delete rows; the event of each change."""
    events, there = [], set[str]()
    for number in range(changes):
        key = f"post-{dice.randrange(posts)}"
        record = {"id": key, "title": f"제목 {key}", "content": f"<p>{key} 본문 {number}</p>"}
        moment = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=number)
        if key in there and dice.random() < 0.15:
            there.discard(key)
            gone = connection.execute("DELETE FROM hof_posts WHERE id = %s RETURNING to_jsonb(hof_posts)", [key])
            old = (gone.fetchone() or [None])[0]
            events.append({"type": "DELETE", "table": "hof_posts", "record": None, "old_record": old})
            continue
        connection.execute(
            "INSERT INTO hof_posts VALUES (%(id)s, %(title)s, %(content)s, %(moment)s, %(moment)s) ON CONFLICT (id) "
            "DO UPDATE SET title = excluded.title, content = excluded.content, updated_at = excluded.updated_at",
            {**record, "moment": moment},
        )
        sent = {**record, "created_at": moment.isoformat(), "updated_at": moment.isoformat()}
        kind = "UPDATE" if key in there else "INSERT"
        events.append({"type": kind, "table": "hof_posts", "record": sent, "old_record": None})
        there.add(key)
    return events


def deliver(parts: Services, server: EmbeddedServer, events: int, seed: int) -> Outcome:
    dice = random.Random(seed)
    with psycopg.connect(server.superuser, dbname="rag", autocommit=True) as connection:
        connection.execute(TABLE)
        board = parts.documents.ensure_collection(
            "demo", "Board", NOTICES.name, parts.providers.default_embedder_id(NOTICES), "ko"
        )
        sent = change(connection, dice, changes=events * 4 // 5, posts=events // 5)
        sent += dice.sample(sent, events - len(sent))
        dice.shuffle(sent)
        parts.queue.start_worker()
        milliseconds = []
        for event in sent:
            started = time.perf_counter()
            parts.syncs.receive("demo", event)
            milliseconds.append(1000 * (time.perf_counter() - started))
        parts.queue.wait_until_idle(600)
        rows = connection.execute("SELECT id, title, regexp_replace(content, '<[^>]+>', '', 'g') FROM hof_posts")
        wanted = {(key, title, text) for key, title, text in rows.fetchall()}
    found = set()
    for document in parts.documents.list("demo", collection_id=board.id):
        text = "".join(chunk.content for chunk in parts.documents.chunks("demo", document.id))
        found.add((document.metadata["postId"], document.title, text))
    with parts.database.transaction("demo") as tenant:
        counted = tenant.execute("SELECT count(*) FROM cost_ledger WHERE operation = 'embedding'").fetchone()
    return Outcome(len(wanted), len(wanted ^ found), counted[0] if counted else 0, len(found), milliseconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ProviderStandin() as standin:
        server = start_server(Path(folder))
        try:
            migrate(server.owner)
            database = Database(server.application)
            database.open()
            settings = Settings(
                data_dir=Path(folder), openai_api_key="key", openai_base_url=standin.openai_url, samples=False
            )
            parts = assemble(settings, database)
            outcome = deliver(parts, server, arguments.events, arguments.seed)
            parts.close()
        finally:
            server.stop()
    times = sorted(outcome.milliseconds)
    print(f"{arguments.events} events, {outcome.posts} posts at the end")
    print(f"  differences between table and collection   {outcome.differences}")
    print(f"  bills for {outcome.embedded} posts                       {outcome.bills}")
    print(f"  taking an event   {statistics.median(times):.1f} ms median, {times[int(len(times) * 0.99)]:.1f} ms p99")


if __name__ == "__main__":
    main()
