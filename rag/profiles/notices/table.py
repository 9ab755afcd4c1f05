"""Read a notice board's table over a Postgres connection, page by page, as JSON. Nothing is written.

Statements contain only table and column names, quoted by the driver. Everything else is mapped in Python, in the same
way for rows and for webhook events.

Change events come from Supabase's database webhooks, and may be late, repeated or out of order. Only the newest event
for each post is kept, by its time of change; an older or equal event is ignored. The post is then read from the table,
else from the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, cast

import psycopg
from psycopg import Connection, sql
from psycopg.types.json import Jsonb

from rag.errors import InvalidInput, ProviderUnavailable, SettingsError
from rag.ingestion.document_jobs import JobControl, JobQueue
from rag.ingestion.loaders.attachments import MAXIMUM_BYTES
from rag.ingestion.sources.sync import Source, SourceContent, SourceItem, SyncReport, SyncWriter
from rag.profiles.notices.attachments import AttachmentFiles
from rag.profiles.notices.posts import (
    POST_TYPE,
    Post,
    PostsMapping,
    is_hidden,
    mapping_from,
    post_from_record,
    post_to_bytes,
)
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.types import Collection, storable_json

ROWS_PER_PAGE = 200
Rows = list[Mapping[str, Any]]


class Reader(Protocol):
    """Read tables over an open connection."""

    def exists(self, table: str) -> bool: ...

    def count(self, table: str) -> int: ...

    def after(self, table: str, column: str, last: str | None, limit: int) -> Rows: ...

    def having(self, table: str, column: str, values: list[str]) -> Rows: ...


class PostRows(Protocol):
    """Access to the tables with posts, over Postgres or the REST API."""

    def reading(self) -> AbstractContextManager[Reader]: ...


class PostsTable:
    """The source for posts in a table."""

    kind = "posts"

    def __init__(
        self,
        rows: PostRows,
        mapping: PostsMapping,
        *,
        files: AttachmentFiles,
        maximum_attachment_bytes: int = MAXIMUM_BYTES,
    ) -> None:
        self._tables = rows
        self._mapping = mapping
        self._files = files
        self._maximum_bytes = maximum_attachment_bytes

    def is_readable(self) -> bool:
        """Whether the table exists. Raises `ProviderUnavailable` if the table's database does not respond."""
        with self._tables.reading() as reader:
            return reader.exists(self._mapping.table)

    def items(self) -> Iterator[SourceItem]:
        last: str | None = None
        while True:
            with self._tables.reading() as reader:
                if last is None and not reader.exists(self._mapping.table):
                    raise SettingsError(
                        f"There is no table {self._mapping.table} to read posts from. Set its name and columns for "
                        "this collection, and RAG_POSTS_DATABASE_URL or RAG_POSTS_SUPABASE_URL where it is elsewhere."
                    )
                rows = reader.after(self._mapping.table, self._mapping.id, last, ROWS_PER_PAGE)
                posts = self._complete(reader, rows)
            for post in posts:
                yield self.item_of(post)
            # Go on after a short page: unlisted posts are removed, so only an empty page may end the list.
            if not rows:
                return
            last = str(rows[-1][self._mapping.id])

    def expected(self) -> int:
        """Count the table's rows, including hidden posts. Returns 0 if the table does not exist."""
        with self._tables.reading() as reader:
            return reader.count(self._mapping.table) if reader.exists(self._mapping.table) else 0

    def find(self, keys: Sequence[str]) -> dict[str, SourceItem]:
        """Return posts by id. Missing and hidden posts are left out."""
        with self._tables.reading() as reader:
            rows = reader.having(self._mapping.table, self._mapping.id, list(keys))
            return {post.id: self.item_of(post) for post in self._complete(reader, rows)}

    def item_of(self, post: Post) -> SourceItem:
        return item_from_post(post, files=self._files, maximum_bytes=self._maximum_bytes)

    def _complete(self, reader: Reader, rows: Rows) -> list[Post]:
        mapping = self._mapping
        visible = [row for row in rows if not is_hidden(row, mapping)]
        ids = [str(row[mapping.id]) for row in visible]
        named = {str(row[mapping.category_id]) for row in visible if row.get(mapping.category_id) is not None}
        categories = reader.having(mapping.categories.table, mapping.categories.id, sorted(named))
        by_id = {str(row[mapping.categories.id]): row for row in categories}
        attached: dict[str, list[Mapping[str, Any]]] = {}
        attachments = reader.having(mapping.attachments.table, mapping.attachments.post_id, ids)
        for row in sorted(attachments, key=partial(_sort_key, order=mapping.attachments.order)):
            attached.setdefault(str(row[mapping.attachments.post_id]), []).append(row)
        return [
            post_from_record(row, mapping, categories=by_id, attachments=attached.get(str(row[mapping.id]), ()))
            for row in visible
        ]


def _sort_key(row: Mapping[str, Any], *, order: str) -> tuple[tuple[bool, float, str], ...]:
    values = (row.get(order), row.get("id"))
    numbers = (float(v) if isinstance(v, (int, float)) else None for v in values)
    return tuple((n is None, n or 0.0, str(v or "")) for n, v in zip(numbers, values, strict=True))


class DatabaseRows:
    """Access to tables over Postgres.

    In the application's database, tables are read with the role `rag_app` and without a tenant. Row-level security then
    hides the product's tables, and the posts table must be granted to this role. The queue's tables and the system
    tables have no row-level security; they count as missing.
    """

    def __init__(self, conninfo: str, *, is_own_database: bool) -> None:
        self._conninfo = conninfo
        self._is_own_database = is_own_database

    @contextmanager
    def reading(self) -> Iterator[DatabaseReader]:
        """Yield a reader with an open connection, which is closed after the `with` block.

        Database errors are converted to errors from `rag.errors`.
        """
        table = "of posts"
        try:
            with psycopg.connect(self._conninfo, connect_timeout=10, prepare_threshold=None) as connection:
                connection.read_only = True
                connection.execute("SET LOCAL statement_timeout = '30s'")
                if self._is_own_database:
                    connection.execute("SELECT set_config('role', 'rag_app', true)")
                reader = DatabaseReader(connection, is_own_database=self._is_own_database)
                try:
                    yield reader
                finally:
                    table = reader.table
        except psycopg.errors.InsufficientPrivilege as exc:
            raise SettingsError(
                f"The table {table} may not be read: {_first_line(exc)}. As its owner, run: "
                f"GRANT SELECT ON {table} TO rag_app."
            ) from exc
        except psycopg.errors.UndefinedColumn as exc:
            raise SettingsError(f"The columns of {table} differ: {_first_line(exc)}.") from exc
        except psycopg.Error as exc:
            raise ProviderUnavailable(f"The table of posts cannot be read at the moment: {_first_line(exc)}") from exc


class DatabaseReader:
    """Reads tables in a transaction. `table` is the name of the last table read, for error messages."""

    def __init__(self, connection: Connection, *, is_own_database: bool) -> None:
        self._connection = connection
        self._is_own_database = is_own_database
        self.table = ""

    def exists(self, table: str) -> bool:
        """Whether a table exists. Postgres's and the queue's tables count as missing."""
        row = self._connection.execute(
            "SELECT EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass(%(table)s) AND NOT (%(is_own)s AND "
            "(c.relnamespace::regnamespace::text IN ('pg_catalog', 'information_schema') "
            "OR c.relname LIKE 'procrastinate%%')))",
            {"table": _table(table).as_string(self._connection), "is_own": self._is_own_database},
        ).fetchone()
        return bool(row and row[0])

    def count(self, table: str) -> int:
        self.table = table
        row = self._connection.execute(sql.SQL("SELECT count(*) FROM {}").format(_table(table))).fetchone()
        return int(row[0]) if row else 0

    def after(self, table: str, column: str, last: str | None, limit: int) -> Rows:
        """Return the next `limit` rows with values after `last` in a column, ordered by this column."""
        self.table, name = table, sql.Identifier(column)
        statement = sql.SQL(
            'SELECT to_jsonb(p) FROM {} AS p WHERE %(last)s::text IS NULL OR p.{}::text > %(last)s COLLATE "C" '
            'ORDER BY p.{}::text COLLATE "C" LIMIT %(limit)s'
        ).format(_table(table), name, name)
        return [row[0] for row in self._connection.execute(statement, {"last": last, "limit": limit}).fetchall()]

    def having(self, table: str, column: str, values: list[str]) -> Rows:
        """Return the rows with any of these values in a column, or [] if the table does not exist."""
        if not values or not self.exists(table):
            return []
        self.table = table
        statement = sql.SQL("SELECT to_jsonb(p) FROM {} AS p WHERE p.{}::text = ANY (%(values)s) ORDER BY 1").format(
            _table(table), sql.Identifier(column)
        )
        return [row[0] for row in self._connection.execute(statement, {"values": values}).fetchall()]


def item_from_post(post: Post, *, files: AttachmentFiles, maximum_bytes: int = MAXIMUM_BYTES) -> SourceItem:
    """Convert a post to a sync item. Attachments are downloaded when the item is loaded."""
    return SourceItem(
        key=post.id,
        updated_at=post.updated_at,
        hash=post.hash,
        title=post.title,
        load=partial(_content, post, files, maximum_bytes),
        metadata=post.metadata(),
    )


def _content(post: Post, files: AttachmentFiles, maximum_bytes: int) -> SourceContent:
    attachments = [files.with_content(item, maximum_bytes=maximum_bytes) for item in post.attachments]
    return SourceContent(
        file_name=f"{post.id}.post",
        content=post_to_bytes(post, attachments),
        mime_type=POST_TYPE,
        title=post.title or post.id,
    )


def _table(name: str) -> sql.Identifier:
    return sql.Identifier(*name.split("."))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")


@dataclass(frozen=True, kw_only=True)
class WaitingEvent:
    """A stored event waiting to be processed."""

    key: str
    event: dict[str, Any]
    event_at: datetime


class PostEvents:
    """Stores and processes events. Thread-safe."""

    kind = PostsTable.kind

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_of(self, payload: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
        """Whether an event belongs to the table in these settings."""
        return mapping_from(settings).is_table(str(payload.get("table") or ""))

    def note(
        self, connection: Connection, collection: Collection, payload: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> bool:
        """Store an event and queue a sync, in the caller's transaction.

        Returns `False` if an equal or newer event is already stored. Raises `InvalidInput` if the payload is not an
        event.
        """
        mapping = mapping_from(settings)
        kind = payload.get("type")
        record = payload.get("old_record") if kind == "DELETE" else payload.get("record")
        if kind not in ("INSERT", "UPDATE", "DELETE") or not isinstance(record, Mapping):
            raise InvalidInput("An event has a type (INSERT, UPDATE or DELETE) and the record that changed.")
        post = post_from_record(record, mapping)
        event = {"type": kind, "record": storable_json(dict(record))}
        row = {
            "collection_id": collection.id,
            "kind": self.kind,
            "key": post.id,
            "title": post.title,
            "event": Jsonb(event),
            # Without a time of change, the arrival decides.
            "event_at": post.updated_at or datetime.now(UTC),
            "is_deletion": kind == "DELETE",
        }
        is_new = connection.execute(queries["note_event"], row).fetchone() is not None
        if is_new:
            connection.execute(queries["enqueue_sync"], row)
        return is_new

    def follow(
        self,
        collection: Collection,
        source: Source,
        settings: Mapping[str, Any],
        files: Originals,
        queue: JobQueue,
        control: JobControl,
    ) -> SyncReport:
        """Process all waiting events, and return the report. Events which fail temporarily stay waiting."""
        mapping = mapping_from(settings)
        writer = SyncWriter(self._database, files, collection, self.kind, queue=queue)
        table = cast(PostsTable, source)
        report, tried = SyncReport(), set[tuple[str, datetime]]()
        while True:
            where = {"collection_id": collection.id, "kind": self.kind}
            events = self._database.fetch_all(collection.tenant_id, "waiting_events", WaitingEvent, **where)
            waiting = [event for event in events if (event.key, event.event_at) not in tried]
            if not waiting:
                return report
            current = table.find([event.key for event in waiting]) if table.is_readable() else None
            for event in waiting:
                control.stop_if_asked()
                tried.add((event.key, event.event_at))
                item = current.get(event.key) if current is not None else self._item_of(table, event, mapping)
                before = report
                report = self._follow_one(writer, event, item, report)
                if report.failed == before.failed or not report.is_temporary:
                    self._database.execute(
                        collection.tenant_id,
                        "finish_event",
                        **where,
                        key=event.key,
                        event_at=event.event_at,
                        event=Jsonb(event.event),
                    )

    def _follow_one(
        self, writer: SyncWriter, event: WaitingEvent, item: SourceItem | None, report: SyncReport
    ) -> SyncReport:
        before = writer.known_items(event.key).get(event.key)
        if item is not None:
            return writer.follow(item, before, report)
        if before is not None and (before.has_document or not before.is_deleted):
            writer.remove(event.key, before, updated_at=event.event_at)
            return report.with_one("removed")
        return report

    def _item_of(self, table: PostsTable, event: WaitingEvent, mapping: PostsMapping) -> SourceItem | None:
        """Return the post's sync item, or `None` if the post was deleted or is hidden."""
        record = event.event["record"]
        if event.event["type"] == "DELETE" or is_hidden(record, mapping):
            return None
        return table.item_of(post_from_record(record, mapping))
