"""Process change events for posts, sent by Supabase's database webhooks.

Events arrive late, twice and out of order. Only the newest event per post is kept, by time of change; an older or equal
event is ignored. The post is then read from the table, or from the event if the table cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.errors import InvalidInput
from rag.ingestion.document_jobs import JobControl, JobQueue
from rag.ingestion.sources.sync import Source, SourceItem, SyncReport, SyncWriter
from rag.profiles.notices.posts import PostsMapping, is_hidden, mapping_from, post_from_record
from rag.profiles.notices.table import PostsTable
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.types import Collection, storable_json


@dataclass(frozen=True, kw_only=True)
class WaitingEvent:
    """A stored event waiting to be processed."""

    key: str
    event: dict[str, Any]
    event_at: datetime


class PostEvents:
    """Store and process events. Thread-safe."""

    kind = PostsTable.kind

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_of(self, payload: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
        """Whether an event belongs to the table in these settings."""
        return mapping_from(settings).is_table(str(payload.get("table") or ""))

    def note(
        self, connection: Connection, collection: Collection, payload: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> bool:
        """Store an event and queue a sync, in the caller's transaction. False if an equal or newer event is stored
        already.

        Raises `InvalidInput` if the payload is not an event.
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
            # Without a time of change, the time of arrival decides.
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
        """Process all waiting events. Events that fail temporarily stay waiting."""
        mapping = mapping_from(settings)
        writer = SyncWriter(self._database, files, collection, self.kind, queue=queue)
        table = cast(PostsTable, source)
        report, tried = SyncReport(), set[tuple[str, datetime]]()
        while True:
            where = {"collection_id": collection.id, "kind": self.kind}
            found = self._database.fetch_all(collection.tenant_id, "waiting_events", WaitingEvent, **where)
            waiting = [event for event in found if (event.key, event.event_at) not in tried]
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
        before = writer.known(event.key).get(event.key)
        if item is not None:
            return writer.follow(item, before, report)
        if before is not None and (before.has_document or not before.is_deleted):
            writer.remove(event.key, before, updated_at=event.event_at)
            return report.with_one("removed")
        return report

    def _item_of(self, table: PostsTable, event: WaitingEvent, mapping: PostsMapping) -> SourceItem | None:
        """Return the post in an event; `None` if it was deleted or is hidden."""
        record = event.event["record"]
        if event.event["type"] == "DELETE" or is_hidden(record, mapping):
            return None
        return table.item_of(post_from_record(record, mapping))
