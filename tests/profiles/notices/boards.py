"""A notice board's tables as their owner changes them, the events they send, and whoever follows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from rag.services import Services
from rag.types import Collection, Document, DocumentStatus

TABLES = """
CREATE TABLE hof_categories (id text PRIMARY KEY, name text NOT NULL, slug text NOT NULL);
INSERT INTO hof_categories VALUES ('c1', 'MD 공지', 'notice-md'), ('c2', 'BM/MD 공지', 'notice-bmmd'),
    ('c3', '인사시험', 'hr-exam'), ('c4', '영업 DB', 'sales-db-notice');
CREATE TABLE hof_posts (
    id text PRIMARY KEY, title text, content text, category_id text, created_at timestamptz DEFAULT now(),
    updated_at timestamptz DEFAULT now(), published_at timestamptz, is_pinned boolean DEFAULT false,
    is_important boolean DEFAULT false, status text DEFAULT 'published', view_count integer DEFAULT 0);
CREATE TABLE hof_attachments (
    id serial PRIMARY KEY, post_id text, file_name text, file_url text, file_size bigint, mime_type text,
    content bytea);
GRANT SELECT ON hof_categories, hof_posts, hof_attachments TO rag_app;
"""
QUESTION = "12월 정착지원금 신청 방법이 어떻게 되나요?"
TODAY = datetime.now(UTC)
START = datetime(2026, 11, 1, 0, 0, tzinfo=UTC)


class Board:
    """The source's tables, changed as their owner changes them. Every change is a later one."""

    def __init__(self, conninfo: str) -> None:
        self.connection = psycopg.connect(conninfo, autocommit=True)
        self.connection.execute(TABLES)
        self.changes = 0

    def now(self) -> datetime:
        self.changes += 1
        return START + timedelta(seconds=self.changes)

    def put(self, key: str, title: str = "", content: str = "", **columns: Any) -> dict[str, Any]:
        """Write a post, or change it; the record as a webhook sends it."""
        changed = {"title": title, "content": content, **columns} if title else columns
        row = {**changed, "updated_at": self.now()}
        self.connection.execute("INSERT INTO hof_posts (id) VALUES (%s) ON CONFLICT DO NOTHING", [key])
        for name, value in row.items():
            self.connection.execute(f"UPDATE hof_posts SET {name} = %s WHERE id = %s", [value, key])
        return self.record(key)

    def record(self, key: str) -> dict[str, Any]:
        found = self.connection.execute("SELECT to_jsonb(p) FROM hof_posts p WHERE id = %s", [key]).fetchone()
        assert found is not None
        record: dict[str, Any] = found[0]
        return record

    def attach(self, key: str, name: str, content: bytes | None = None, *, size: int = 0, url: str = "") -> None:
        self.connection.execute(
            "INSERT INTO hof_attachments (post_id, file_name, file_url, file_size, content) "
            "VALUES (%s, %s, %s, %s, %s)",
            [key, name, url, size or len(content or b""), content],
        )

    def remove(self, key: str) -> dict[str, Any]:
        record = self.record(key)
        self.connection.execute("DELETE FROM hof_posts WHERE id = %s", [key])
        return record


class Follow:
    """Syncs a collection and does all the work it leaves, in the test's thread."""

    def __init__(self, parts: Services) -> None:
        self.parts = parts

    def __call__(self, collection: Collection) -> list[Document]:
        """Do what waits for the collection; its documents then."""
        self.parts.syncs.run(collection.tenant_id, collection.id)
        return self.process(collection)

    def process(self, collection: Collection) -> list[Document]:
        for document in self.parts.documents.list(collection.tenant_id, collection_id=collection.id):
            if document.status in (DocumentStatus.READING, DocumentStatus.PROCESSING):
                self.parts.pipeline.run(collection.tenant_id, document.id)
        return self.parts.documents.list(collection.tenant_id, collection_id=collection.id)


def event(kind: str, record: dict[str, Any]) -> dict[str, Any]:
    """An event as Supabase's database webhook sends it."""
    is_gone = kind == "DELETE"
    return {
        "type": kind,
        "table": "hof_posts",
        "schema": "public",
        "record": None if is_gone else record,
        "old_record": record if is_gone else None,
    }


def days_ago(days: int) -> str:
    return (TODAY - timedelta(days=days)).isoformat()
