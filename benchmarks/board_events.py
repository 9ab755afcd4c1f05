"""A thousand webhook events in random order with duplicates: the same state as the table, one bill per changed post.

`python -m benchmarks.board_events --events 1000`. The served product takes them by HTTP while its worker follows them;
only the provider is the stand-in. Says how long the sender of an event waited, from this process's clock.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg

from benchmarks.product import TENANT, Product
from rag.profiles import NOTICES
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import DATABASE, EmbeddedServer, start_server
from tests.standins.providers import ProviderStandin

TABLE = """
CREATE TABLE hof_posts (id text PRIMARY KEY, title text, content text, created_at timestamptz, updated_at timestamptz);
GRANT SELECT ON hof_posts TO rag_app;
"""
SECRET = "of the benchmark's webhook"
#: The bar for each answer.
BAR_MS = 100.0


@dataclass
class Outcome:
    """What the collection holds in the end, and how long each event took."""

    posts: int
    differences: int
    bills: int
    embedded: int
    milliseconds: list[float]
    refused: int


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


def deliver(parts: Services, server: EmbeddedServer, url: str, events: int, seed: int) -> Outcome:
    """Send the events one after another, wait until all is done, compare."""
    dice = random.Random(seed)
    milliseconds, refused = [], 0
    with psycopg.connect(server.superuser, dbname=DATABASE, autocommit=True) as connection:
        connection.execute(TABLE)
        board = parts.documents.ensure_collection(
            TENANT, "Board", NOTICES.name, parts.providers.default_embedder_id(NOTICES), "ko"
        )
        sent = change(connection, dice, changes=events * 4 // 5, posts=events // 5)
        sent += dice.sample(sent, events - len(sent))
        dice.shuffle(sent)
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {SECRET}"}, timeout=60) as sender:
            for event in sent:
                started = time.perf_counter()
                answer = sender.post("/api/rag/webhook", json=event)
                milliseconds.append(1000 * (time.perf_counter() - started))
                refused += answer.status_code != 200
        parts.queue.wait_until_idle(600)
        rows = connection.execute("SELECT id, title, regexp_replace(content, '<[^>]+>', '', 'g') FROM hof_posts")
        wanted = {(key, title, text) for key, title, text in rows.fetchall()}
    found = set()
    for document in parts.documents.list(TENANT, collection_id=board.id):
        text = "".join(chunk.content for chunk in parts.documents.chunks(TENANT, document.id))
        found.add((document.metadata["postId"], document.title, text))
    with parts.database.transaction(TENANT) as tenant:
        counted = tenant.execute(
            "SELECT count(*) FROM cost_ledger l JOIN documents d ON d.id = l.document_id "
            "WHERE d.collection_id = %s AND l.operation = 'embedding'",
            (board.id,),
        ).fetchone()
    bills = counted[0] if counted else 0
    return Outcome(len(wanted), len(wanted ^ found), bills, len(found), milliseconds, refused)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ProviderStandin() as standin:
        product = Product(
            Path(folder), OPENAI_API_KEY="key", OPENAI_BASE_URL=standin.openai_url, RAG_WEBHOOK_SECRET=SECRET
        )
        product.start()
        server = start_server(Path(folder))
        database = Database(server.application, sealing_key(server.owner))
        database.open()
        settings = Settings(
            data_dir=Path(folder), tenant=TENANT, openai_api_key="key", openai_base_url=standin.openai_url
        )
        parts = assemble(settings, database)  # to look at what the product does; its own worker is not started
        try:
            outcome = deliver(parts, server, product.url, arguments.events, arguments.seed)
        finally:
            parts.close()
            product.stop()
    return told(arguments.events, outcome)


def told(events: int, outcome: Outcome) -> int:
    """Print the figures; 1 when a bar is missed."""
    times = sorted(outcome.milliseconds)
    late = sum(time > BAR_MS for time in times)
    print(
        f"{events} events, {outcome.posts} posts at the end, load {os.getloadavg()[0]:.1f}, {outcome.refused} refused"
    )
    print(f"  differences between table and collection   {outcome.differences}")
    print(f"  bills for {outcome.embedded} posts                       {outcome.bills}")
    print(
        f"  an event by HTTP   {statistics.median(times):.1f} ms median, {times[int(len(times) * 0.99)]:.1f} ms p99, "
        f"{times[-1]:.1f} ms at most; {late} later than {BAR_MS:.0f} ms"
    )
    is_right = not outcome.differences and outcome.bills == outcome.embedded == outcome.posts and not outcome.refused
    return 0 if is_right and not late else 1


if __name__ == "__main__":
    raise SystemExit(main())
