"""The audit log: who changed what, and when. Entries are never changed or deleted.

Database triggers write most entries, in the transaction with the change. `note` adds entries for actions which change
no row, for example an export.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict, Unpack
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin, require_recent
from rag.records.spreadsheet import to_csv
from rag.storage.database import Database, queries
from rag.types import Identity

MAXIMUM_ENTRIES = 10_000
#: The most rows to search, and to export together.
MAXIMUM_ROWS = 50_000
#: The most names per act on a page; an export has them all.
MAXIMUM_NAMES = 1_000


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """A row in `audit_log`. `changes` maps a field to [before, after], or to "changed" if the field is a secret."""

    id: int
    #: `None` for an operator, from the command line.
    account_id: UUID | None
    actor: str
    action: str
    target_id: str
    target: str
    changes: dict[str, Any]
    created_at: datetime
    #: How many things the act changed in this way, and their names.
    things: int = 1
    targets: list[str] = field(default_factory=list)
    #: The facts shared by an act's rows; empty if not requested.
    act: str = ""

    def to_json(self, tenant_id: str) -> str:
        """Return the entry as a JSON line."""
        return json.dumps(
            {
                "id": self.id,
                "at": self.created_at.isoformat(),
                "tenant": tenant_id,
                "actor": self.actor,
                "account_id": str(self.account_id) if self.account_id else None,
                "action": self.action,
                "target": self.target,
                "target_id": self.target_id,
                "changes": self.changes,
                **({"act": self.act} if self.act else {}),
            },
            ensure_ascii=False,
        )


class AuditFilters(TypedDict, total=False):
    """Search filters. An action with several rows matches if any of its rows matches."""

    since: datetime | None
    actor: str | None
    #: An action's first word.
    kind: str | None
    text: str


class AuditLog:
    """Reads `audit_log`, and adds entries for actions which change no row."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, identity: Identity, action: str, target: str = "", details: Mapping[str, Any] | None = None) -> None:
        """Add an entry for an action that changes no row."""
        self._database.execute(identity, "add_audit_entry", action=action, target=target, changes=Jsonb(details or {}))

    def export_csv(self, identity: Identity, header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
        """Export rows as CSV in the words shown on the page, with a byte order mark, and record the export.

        Raises `NotAllowed`, `SignInAgain`.
        """
        self._note_export(identity)
        return to_csv(header, rows).encode("utf-8-sig")

    def export_json(self, identity: Identity, rows: Iterable[AuditEntry]) -> bytes:
        """Export entries as JSON lines, and record the export. Raises `NotAllowed`, `SignInAgain`."""
        self._note_export(identity)
        return "".join(f"{row.to_json(identity.tenant_id)}\n" for row in rows).encode()

    def _note_export(self, identity: Identity) -> None:
        require_admin(identity)
        require_recent(self._database, identity)
        self.note(identity, "export made", "audit log")

    def last(self, tenant_id: str) -> int:
        """Return the number of the tenant's newest entry. For operators' commands."""
        return int(self._database.fetch_value(tenant_id, "last_audit_entry"))

    def after(self, tenant_id: str, number: int) -> list[AuditEntry]:
        """Return a tenant's entries after this number, oldest first, at most `MAXIMUM_ENTRIES`.

        For operators' commands.
        """
        return self._database.fetch_all(tenant_id, "audit_after", AuditEntry, after=number, limit=MAXIMUM_ENTRIES)

    def entries(self, identity: Identity, *, limit: int = 200, **filters: Unpack[AuditFilters]) -> list[AuditEntry]:
        """Return an entry per matching action, latest first. Raises `NotAllowed`."""
        require_admin(identity)
        parameters = _parameters(filters) | {"limit": min(limit, MAXIMUM_ENTRIES), "names": MAXIMUM_NAMES}
        return self._database.fetch_all(identity, "audit_entries", AuditEntry, **parameters)

    def rows(self, identity: Identity, **filters: Unpack[AuditFilters]) -> list[AuditEntry]:
        """Return every row for the matching actions, latest first, at most `MAXIMUM_ROWS`. Raises `NotAllowed`."""
        require_admin(identity)
        parameters = _parameters(filters) | {"limit": MAXIMUM_ROWS}
        return self._database.fetch_all(identity, "audit_rows", AuditEntry, **parameters)

    def actors(self, identity: Identity) -> list[str]:
        """List the names of everyone with an entry in the log, sorted. Raises `NotAllowed`."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            return [row[0] for row in connection.execute(queries["audit_actors"])]


def _parameters(filters: AuditFilters) -> dict[str, Any]:
    text = filters.get("text", "").strip() or None
    return {"since": None, "actor": None, "kind": None, **filters, "text": text, "most": MAXIMUM_ROWS}
