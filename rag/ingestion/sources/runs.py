"""Run syncs. People, commands, schedules and events request them, and the queue runs them."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken
from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.errors import InvalidInput, NotFound, ProviderUnavailable, RagError
from rag.ingestion.document_jobs import TEMPORARY, JobControl, JobQueue, require_active
from rag.ingestion.sources.permissions import readers_meanwhile
from rag.ingestion.sources.sync import Source, SourceWithReaders, SyncReport, SyncWriter, sync_collection
from rag.language import N_
from rag.storage.collections import find_collections
from rag.storage.database import queries
from rag.storage.files import Originals
from rag.types import Collection, Identity, Who

log = logging.getLogger("rag.ingestion")
#: The shortest time between progress updates, in seconds.
PROGRESS_SECONDS = 0.3
TRIED_AGAIN = N_("The sync is tried again automatically.")
#: The kind of source for the sample board.
SAMPLES = "samples"
#: The requester of scheduled runs.
SCHEDULE = "schedule"
#: The fewest and the most minutes between two scheduled syncs; the most is a month.
SCHEDULE_MINUTES = (5, 44_640)
#: The most sentences about unreadable items stored with a run.
MOST_PROBLEMS = 5
#: The number of documents named when a source is tried.
TRIED_ITEMS = 5

SourceMaker = Callable[[Collection, Mapping[str, Any]], Source]
"""Makes a collection's source from the settings kept for it."""


class SourceEvents(Protocol):
    """Stores change events sent by a source, and syncs the items which the events name."""

    kind: str

    def is_of(self, payload: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
        """Whether an event belongs to the source with these settings."""
        ...

    def note(
        self, connection: Connection, collection: Collection, payload: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> bool:
        """Store an event in the caller's transaction. Return `False` for an outdated event. Raises `InvalidInput`."""
        ...

    def follow(
        self,
        collection: Collection,
        source: Source,
        settings: Mapping[str, Any],
        files: Originals,
        queue: JobQueue,
        control: JobControl,
    ) -> SyncReport:
        """Sync the items which stored events name, and return the report."""
        ...


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """A row in `collection_sources`."""

    collection_id: UUID
    kind: str
    settings: dict[str, Any]
    #: The source's keys, encrypted; empty without keys.
    secrets: str = field(default="", repr=False)
    #: Minutes between scheduled comparisons, and the next time; `None` means only on request.
    every_minutes: int | None = None
    next_sync_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class SyncRun:
    """A row in `sync_runs`, with the changed documents' costs up to now."""

    id: UUID
    collection_id: UUID
    kind: str
    status: str
    items_done: int
    items_total: int
    added: int
    updated: int
    unchanged: int
    removed: int
    failed: int
    message: str
    asked_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    #: US dollars, or `None` if no call was paid or a price is unknown (`is_priced` is then false).
    cost: Decimal | None
    is_priced: bool

    @property
    def is_open(self) -> bool:
        return self.status in ("waiting", "running")


class Syncs:
    """Requests and runs syncs, and reports on them. Thread-safe. Only one worker at a time syncs a collection.

    `makers` has a function which creates a source for each kind. `usual` returns the default kind for a profile.
    """

    def __init__(
        self,
        files: Originals,
        control: JobControl,
        queue: JobQueue,
        events: SourceEvents,
        *,
        makers: Mapping[str, SourceMaker],
        usual: Mapping[str, str],
    ) -> None:
        self._database = control.database
        self._files = files
        self._control = control
        self._queue = queue
        self._events = events
        self._makers = makers
        self._usual = usual

    # Sources of documents

    def sources(self, collection: Collection) -> list[SourceSettings]:
        """List the collection's sources. Without any, returns the profile's default source."""
        sources = self._database.fetch_all(
            collection.tenant_id, "find_sources", SourceSettings, collection_id=collection.id
        )
        return self._or_usual(collection, sources)

    def _or_usual(self, collection: Collection, sources: list[SourceSettings]) -> list[SourceSettings]:
        kind = self._usual.get(collection.profile)
        if sources or kind is None:
            return sources
        return [SourceSettings(collection_id=collection.id, kind=kind, settings={})]

    def default_collection(self, who: Who) -> Collection | None:
        """Return the collection synced by default: the oldest notice board; sample boards come last.

        Without a notice board, returns the oldest collection with a source, if any.
        """
        collections = find_collections(self._database, who)
        kinds: dict[UUID, set[str]] = {c.id: set() for c in collections}
        for source in self._database.fetch_all(who, "find_sources", SourceSettings, collection_id=None):
            kinds.setdefault(source.collection_id, set()).add(source.kind)
        boards = [c for c in collections if c.profile in self._usual]
        boards.sort(key=lambda board: kinds[board.id] == {SAMPLES})
        return next(iter(boards or [c for c in collections if kinds[c.id]]), None)

    def _required_sources(self, collection: Collection) -> list[SourceSettings]:
        sources = self.sources(collection)
        if not sources:
            raise InvalidInput(f"“{collection.name}” has no source to sync with: its documents are uploaded.")
        return sources

    def set_source(
        self,
        identity: Identity,
        collection: Collection,
        kind: str,
        settings: Mapping[str, Any],
        *,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        """Set a source for a collection's documents. `secrets` are settings which are encrypted and never shown.

        Raises `InvalidInput` for unsuitable settings.
        """
        _require_administrator_of(identity, collection)
        self.source(collection, kind, {**settings, **(secrets or {})})
        row = {"collection_id": collection.id, "kind": kind, "settings": Jsonb(dict(settings))}
        encrypted = self._locker.encrypt(json.dumps(dict(secrets)).encode()).decode() if secrets else ""
        self._database.execute(identity, "set_source", **row, secrets=encrypted)

    def _with_secrets(self, source: SourceSettings) -> Mapping[str, Any]:
        """Return a source's settings including the decrypted secrets.

        Raises `InvalidInput` if they cannot be decrypted.
        """
        if not source.secrets:
            return source.settings
        try:
            return {**source.settings, **json.loads(self._locker.decrypt(source.secrets.encode()))}
        except InvalidToken as exc:
            raise InvalidInput(
                "The keys of this source cannot be read any more. Stop following the source, then follow it again "
                "and enter its keys."
            ) from exc

    @property
    def _locker(self) -> Fernet:
        key = hashlib.sha256(b"sources\x00" + self._database.key).digest()
        return Fernet(base64.urlsafe_b64encode(key))

    def try_source(
        self,
        identity: Identity,
        collection: Collection,
        kind: str,
        settings: Mapping[str, Any],
        *,
        secrets: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Open a source without storing anything, and return the first documents' titles.

        Raises `InvalidInput` for a source without readable documents, and the errors from reading the source.
        """
        _require_administrator_of(identity, collection)
        with self._open_source(collection, kind, {**settings, **(secrets or {})}) as source:
            titles = [item.title or item.key for item in islice(source.items(), TRIED_ITEMS)]
        if not titles:
            raise InvalidInput("The source can be reached, but it has no document that can be read.")
        return titles

    def drop_source(self, identity: Identity, collection: Collection, kind: str) -> None:
        """Stop following a source; its documents stay."""
        _require_administrator_of(identity, collection)
        self._database.execute(identity, "drop_source", collection_id=collection.id, kind=kind)

    def follow_again(self, identity: Identity, collection: Collection, source: SourceSettings) -> None:
        """Follow a dropped source again, with the earlier settings, encrypted secrets and schedule."""
        _require_administrator_of(identity, collection)
        row = {"collection_id": collection.id, "kind": source.kind}
        settings = {**row, "settings": Jsonb(source.settings), "secrets": source.secrets}
        self._database.execute(identity, "set_source", **settings)
        if source.every_minutes:
            self.set_schedule(identity, collection, source.every_minutes, kind=source.kind)

    def set_schedule(
        self, identity: Identity, collection: Collection, every_minutes: int | None, *, kind: str | None = None
    ) -> list[SourceSettings]:
        """Sync a source every `every_minutes` minutes, for the first time after this interval. `None` means only on
        request.

        Without `kind`, the schedule is set for all sources of the collection. Returns the collection's sources. Raises
        `InvalidInput`.
        """
        _require_administrator_of(identity, collection)
        least, most = SCHEDULE_MINUTES
        if every_minutes is not None and not least <= every_minutes <= most:
            raise InvalidInput(
                f"The time between two syncs has to be at least {least} minutes and at most {most // 1440} days."
            )
        chosen = [s for s in self._required_sources(collection) if kind in (None, s.kind)]
        if not chosen:
            raise InvalidInput(f"“{collection.name}” has no source of kind {kind!r}.")
        with self._database.transaction(identity) as connection:
            for source in chosen:
                row = {"collection_id": collection.id, "kind": source.kind, "every_minutes": every_minutes}
                connection.execute(queries["set_schedule"], row)
            connection.execute(queries["enqueue_schedule"], {"collection_id": collection.id})
        return self.sources(collection)

    def source(self, collection: Collection, kind: str, settings: Mapping[str, Any]) -> Source:
        """Create the object which reads a source of this kind. Raises `InvalidInput` for an unknown `kind`."""
        if kind not in self._makers:
            raise InvalidInput(f"There is no source of the kind {kind!r}. Choose one of: {', '.join(self._makers)}.")
        return self._makers[kind](collection, settings)

    @contextmanager
    def _open_source(self, collection: Collection, kind: str, settings: Mapping[str, Any]) -> Iterator[Source]:
        source = self.source(collection, kind, settings)
        try:
            yield source
        finally:
            if (close := getattr(source, "close", None)) is not None:
                close()

    # Asking

    def request(self, identity: Identity, collection: Collection) -> list[SyncRun]:
        """Queue a sync for each source which has no queued sync. Returns the queued syncs. Raises `InvalidInput`."""
        _require_administrator_of(identity, collection)
        sources = self._required_sources(collection)
        ids = []
        with self._database.transaction(identity) as connection:
            for source in sources:
                parameters = {"collection_id": collection.id, "kind": source.kind, "asked_by": identity.name}
                row = connection.execute(queries["ask_for_run"], parameters).fetchone()
                ids += [row[0]] if row else []
            connection.execute(queries["enqueue_sync"], {"collection_id": collection.id})
        return [run for run in self.runs(identity, collection.id) if run.id in ids]

    def runs(self, who: Who, collection_id: UUID, *, limit: int = 20) -> list[SyncRun]:
        """List the collection's runs, the latest first."""
        parameters = {"collection_id": collection_id, "run_id": None, "limit": limit}
        return self._database.fetch_all(who, "find_runs", SyncRun, **parameters)

    def run_due(self, tenant_id: str, collection_id: UUID) -> None:
        """Queue the syncs which are due, and the next call of this function. Called by a worker. Raises
        `TenantSuspended`.
        """
        where = {"collection_id": collection_id}
        # All in one transaction: after a kill no request was made, and the work is repeated.
        with self._database.transaction(tenant_id) as connection:
            require_active(connection)
            if connection.execute(queries["ask_for_due_runs"], {**where, "asked_by": SCHEDULE}).fetchall():
                connection.execute(queries["enqueue_sync"], where)
            connection.execute(queries["enqueue_schedule"], where)

    # Doing

    def run(self, tenant_id: str, collection_id: UUID) -> None:
        """Run a collection's queued syncs, and sync the items named in events. Called by a worker.

        Raises `JobTaken`, `JobInterrupted`, and the errors in `TEMPORARY`, after which the job is run again.
        """
        with self._control.claimed(tenant_id, f"sync {collection_id}"):
            collections = find_collections(self._database, tenant_id, collection_id=collection_id)
            if not collections:
                return
            with self._database.transaction(tenant_id) as connection:
                waiting = connection.execute(queries["runs_to_do"], {"collection_id": collection_id}).fetchall()
            for run_id, kind in waiting:
                self._run_one(collections[0], run_id, kind)
            self._follow_events(collections[0])

    def sync_now(self, identity: Identity, collection: Collection, *, allow_empty: bool = False) -> SyncReport:
        """Sync with every source in the caller's thread, for the command line. The queue processes the changed
        documents.

        Raises `InvalidInput` without a source, `JobTaken`, and the errors from reading the sources.
        """
        _require_administrator_of(identity, collection)
        self._control.stop_if_suspended(collection.tenant_id)
        sources = self._required_sources(collection)
        report = SyncReport()
        with self._control.claimed(collection.tenant_id, f"sync {collection.id}"):
            for source in sources:
                parameters = {"collection_id": collection.id, "kind": source.kind, "asked_by": identity.name}
                run_id = self._database.fetch_value(collection.tenant_id, "ask_for_run", **parameters)
                try:
                    report = _sum(report, self._compare(collection, run_id, source, allow_empty=allow_empty))
                except RagError as error:
                    self._end(collection, run_id, SyncReport(), error.message)
                    raise
        return report

    def _run_one(self, collection: Collection, run_id: UUID, kind: str) -> None:
        """Run a queued sync. An error is stored in the sync's row in `sync_runs`."""
        source = next((s for s in self.sources(collection) if s.kind == kind), None)
        if source is None:
            self._end(collection, run_id, SyncReport(), N_("The collection no longer follows this source."))
            return
        try:
            self._compare(collection, run_id, source)
        except TEMPORARY as error:
            sentence = f"{error} {TRIED_AGAIN}"
            self._database.execute(collection.tenant_id, "note_run_trouble", run_id=run_id, message=sentence)
            raise
        except RagError as error:
            log.warning("Syncing %s failed: %s", collection.name, error)
            self._end(collection, run_id, SyncReport(), error.message)

    def _compare(
        self, collection: Collection, run_id: UUID, stored: SourceSettings, *, allow_empty: bool = False
    ) -> SyncReport:
        """Sync with a source and store the outcome. The caller must store a raised error."""
        tenant_id, reported_at = collection.tenant_id, 0.0
        self._database.execute(tenant_id, "begin_run", run_id=run_id)

        def report_progress(done: int, total: int) -> None:
            nonlocal reported_at
            self._control.stop_if_asked()
            if time.monotonic() - reported_at >= PROGRESS_SECONDS:
                reported_at = time.monotonic()
                self._control.stop_if_suspended(tenant_id)
                self._database.execute(tenant_id, "note_run", run_id=run_id, items_done=done, items_total=total)

        where = {"collection_id": collection.id, "kind": stored.kind}
        before = self._database.fetch_value(tenant_id, "source_state", **where) or {}
        settings = {**self._with_secrets(stored), **({"state": before} if before else {})}
        with self._open_source(collection, stored.kind, settings) as source:
            groups = self._required_readers(collection, source)
            if groups is not None:
                # During the comparison, only groups with both earlier and future access may read it.
                self._open_to(collection, readers_meanwhile(collection.groups, groups))
            writer = SyncWriter(self._database, self._files, collection, source.kind, queue=self._queue)
            report = sync_collection(writer, source, allow_empty=allow_empty, on_progress=report_progress)
            if groups is not None:
                self._open_to(collection, groups)
        report = replace(report, problems=(*report.problems, *getattr(source, "notes", ())))
        if (state := getattr(source, "state", None)) is not None and state != before:
            self._database.execute(tenant_id, "keep_source_state", **where, state=Jsonb(state))
        self._end(collection, run_id, report)
        # The first documents may have waited for the last.
        self._database.execute(tenant_id, "enqueue_one_that_shares", collection_id=collection.id)
        return report

    def _required_readers(self, collection: Collection, source: Source) -> tuple[str, ...] | None:
        """Return the groups with access to the source, or `None` if access is not copied.

        Raises `InvalidInput` if a second source would also set the collection's groups.
        """
        groups = source.readers() if isinstance(source, SourceWithReaders) else None
        if groups is None:
            return None
        if sum(stored.settings.get("readers") in (True, "true") for stored in self.sources(collection)) > 1:
            raise InvalidInput(
                "Two sources decide who may read this collection. Make a separate collection for each source."
            )
        return groups

    def _open_to(self, collection: Collection, groups: Sequence[str]) -> None:
        changes = {"collection_name": None, "language": None, "groups": list(groups)}
        self._database.execute(collection.tenant_id, "change_collection", collection_id=collection.id, **changes)

    def _end(self, collection: Collection, run_id: UUID, report: SyncReport, problem: str = "") -> None:
        self._database.execute(
            collection.tenant_id,
            "end_run",
            run_id=run_id,
            status="failed" if problem else "done",
            message=problem or "\n".join(report.problems[:MOST_PROBLEMS]),
            added=report.added,
            updated=report.updated,
            unchanged=report.unchanged,
            removed=report.removed,
            failed=report.failed,
            items_done=report.items,
        )

    # Events

    def receive(self, tenant_id: str, payload: Mapping[str, Any], *, collection: Collection | None = None) -> bool:
        """Accept an event from a table of posts, and queue the work. Returns whether the event is new.

        Raises `InvalidInput` for a malformed event, `NotFound` if no collection follows the table, and
        `TenantSuspended`.
        """
        # All in one transaction: the sender of an event waits for the answer.
        with self._database.transaction(tenant_id) as connection:
            require_active(connection)
            followed = self._following(connection, payload, collection)
            heard = [self._events.note(connection, c, payload, settings) for c, settings in followed]
        return any(heard)

    def _following(
        self, connection: Connection, payload: Mapping[str, Any], collection: Collection | None
    ) -> list[tuple[Collection, Mapping[str, Any]]]:
        """Find the collections which follow the database table named in an event. Raises `NotFound` without any."""
        with connection.cursor(row_factory=class_row(Collection)) as cursor:
            all_of_them = {"collection_id": collection.id if collection else None, "collection_name": None}
            chosen = cursor.execute(queries["find_collections"], all_of_them).fetchall()
        with connection.cursor(row_factory=class_row(SourceSettings)) as cursor:
            sources = cursor.execute(queries["find_sources"], {"collection_id": None}).fetchall()
        boards = [(c, *self._event_settings(c, [s for s in sources if s.collection_id == c.id])) for c in chosen]
        followed = [
            (c, settings, is_set)
            for c, settings, is_set in boards
            if settings is not None and self._events.is_of(payload, settings)
        ]
        if not followed:
            raise NotFound("No collection takes its posts from this table.")
        # A board with another source gets events only if no other board does.
        targets = [f for f in followed if f[2]] or followed
        return [(c, settings) for c, settings, _ in targets]

    def _event_settings(
        self, collection: Collection, sources: list[SourceSettings]
    ) -> tuple[Mapping[str, Any] | None, bool]:
        for source in self._or_usual(collection, sources):
            if source.kind == self._events.kind:
                return source.settings, True
        return ({}, False) if self._usual.get(collection.profile) == self._events.kind else (None, False)

    def _follow_events(self, collection: Collection) -> None:
        settings, _ = self._event_settings(collection, self.sources(collection))
        if settings is not None:
            source = self.source(collection, self._events.kind, settings)
            report = self._events.follow(collection, source, settings, self._files, self._queue, self._control)
            if report.is_temporary:
                raise ProviderUnavailable(report.problems[-1])


def _sum(first: SyncReport, second: SyncReport) -> SyncReport:
    return replace(
        first,
        added=first.added + second.added,
        updated=first.updated + second.updated,
        unchanged=first.unchanged + second.unchanged,
        removed=first.removed + second.removed,
        failed=first.failed + second.failed,
        documents=(*first.documents, *second.documents),
        problems=(*first.problems, *second.problems),
    )


def _require_administrator_of(identity: Identity, collection: Collection) -> None:
    require_admin(identity)
    if collection.tenant_id != identity.tenant_id:
        raise NotFound
