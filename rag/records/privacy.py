"""Delete texts after the retention period, and export and erase a person's data.

Costs, times and outcomes are kept: the company's books need these values, which name nobody. Erasing connects as the
owner of the tables, because the application may only append to the audit log.
"""

from __future__ import annotations

import builtins
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin, require_recent
from rag.errors import InvalidInput, NotFound
from rag.storage.database import Database
from rag.storage.erasures import Erasure
from rag.storage.sql import queries
from rag.types import Identity

log = logging.getLogger("rag.privacy")

#: Tables erased for a person, in an order their references allow.
ERASED = (
    "ratings", "help_requests", "gap_questions", "trials", "golden_questions", "run_questions",
    "prompts", "empty_gaps", "counted_people", "questions", "conversations", "acts", "owned_answers", "account",
)  # fmt: skip
FORGOTTEN = ("ratings", "help_requests", "gap_questions", "prompts", "questions", "conversations")
LEAST_DAYS = 7


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """A receipt for erased data: the number of rows by kind, without content."""

    id: UUID
    #: The account's former id.
    erased_id: UUID
    counts: dict[str, int]
    erased_at: datetime


@dataclass(frozen=True)
class _Person:
    id: UUID
    email: str
    name: str


class Privacy:
    """Apply the retention period, and fulfil people's requests for export and erasure."""

    def __init__(
        self, database: Database, owner_conninfo: str = "", *, register: Callable[[Erasure], object] = lambda _: None
    ) -> None:
        """`register` stores an erasure outside the database.

        When an older backup is restored, the erasure is repeated from this register.
        """
        self._database = database
        self._owner_conninfo = owner_conninfo
        self._register = register

    def retention_days(self, tenant_id: str) -> int | None:
        """Return the retention period in days, after which texts are deleted; `None` means never."""
        days = self._database.fetch_value(tenant_id, "retention_days")
        return None if days is None else int(days)

    def set_retention_days(self, tenant_id: str, days: int | None) -> None:
        """Set the retention period in days, after which texts are deleted; `None` means never.

        Raises `InvalidInput` for less than a week.
        """
        if days is not None and days < LEAST_DAYS:
            raise InvalidInput(
                f"Texts are kept for at least {LEAST_DAYS} days, so that people can come back to their answers."
            )
        self._database.execute(tenant_id, "set_retention_days", days=days)

    def forget_old(self, tenant_id: str) -> dict[str, int]:
        """Delete texts past the tenant's retention period, and return the number of rows by kind."""
        days = self.retention_days(tenant_id)
        if days is None:
            return {}
        before = {"before": datetime.now(UTC) - timedelta(days=days)}
        with self._database.transaction(tenant_id) as connection:
            return {kind: connection.execute(queries[f"forget_{kind}"], before).rowcount for kind in FORGOTTEN}

    def export(self, tenant_id: str, email: str) -> bytes:
        """Return all data about a person as JSON. Raises `NotFound`."""
        person = self._person(tenant_id, email)
        content: dict[str, Any] = self._database.fetch_value(tenant_id, "export_person", account_id=person.id)
        return json.dumps(content, ensure_ascii=False, indent=2).encode()

    def export_for(self, identity: Identity, email: str) -> bytes:
        """Export like `export`, for a recently signed-in administrator, and record the export in the audit log."""
        require_admin(identity)
        require_recent(self._database, identity)
        content = self.export(identity.tenant_id, email)
        self._database.execute(
            identity, "add_audit_entry", action="export made", target="data of one person", changes=Jsonb({})
        )
        return content

    def erase_for(self, identity: Identity, email: str) -> Receipt:
        """Erase like `erase`, for a recently signed-in administrator, who cannot erase their own account."""
        require_admin(identity)
        require_recent(self._database, identity)
        if self._person(identity.tenant_id, email).id == identity.account_id:
            raise InvalidInput("Another administrator has to erase your data, because your account is erased too.")
        return self.erase(identity.tenant_id, email)

    def set_retention_for(self, identity: Identity, days: int | None) -> None:
        """Set the retention period like `set_retention_days`, for a recently signed-in administrator."""
        require_admin(identity)
        require_recent(self._database, identity)
        self.set_retention_days(identity.tenant_id, days)

    def erase(self, tenant_id: str, email: str) -> Receipt:
        """Erase a person's account and texts, and return a receipt. Raises `NotFound`.

        Older backups still hold the data. After such a backup is restored, the erasure is repeated.
        """
        person = self._person(tenant_id, email)
        with psycopg.connect(self._owner_conninfo, prepare_threshold=None) as owner:
            _enter(owner, tenant_id)
            counts = _erase_rows(owner, person)
            noted = {"account_id": person.id, "counts": Jsonb(counts)}
            row = owner.execute(queries["note_erasure"], noted).fetchone()
        assert row is not None  # noqa: S101  an INSERT … RETURNING that did not raise has a row
        receipt = Receipt(id=row[0], erased_id=person.id, counts=counts, erased_at=row[1])
        self._register(Erasure(tenant_id=tenant_id, **vars(receipt)))
        return receipt

    def receipts(self, tenant_id: str) -> builtins.list[Receipt]:
        """Return all erasure receipts, latest first."""
        return self._database.fetch_all(tenant_id, "erasures", Receipt)

    def _person(self, tenant_id: str, email: str) -> _Person:
        person = self._database.fetch_one(tenant_id, "person_by_email", _Person, email=email.strip().lower())
        if person is None:
            raise NotFound
        return person


def erase_again(owner_conninfo: str, erasures: Iterable[Erasure]) -> int:
    """Repeat the erasures which a restored older backup lacks, and return their number.

    The receipts are restored with their ids and times. Erasures in unknown tenants are skipped.
    """
    again, by_tenant = 0, defaultdict[str, list[Erasure]](list)
    for erasure in erasures:
        by_tenant[erasure.tenant_id].append(erasure)
    if not by_tenant:
        return 0
    with psycopg.connect(owner_conninfo, prepare_threshold=None) as owner:
        for tenant_id, noted in by_tenant.items():
            with owner.transaction():
                _enter(owner, tenant_id)
                if owner.execute(queries["tenant_name"]).fetchone() is None:
                    continue
                stored_ids = {row[0] for row in owner.execute(queries["erasures"])}
                missing = [erasure for erasure in noted if erasure.id not in stored_ids]
                for erasure in missing:
                    row = owner.execute(queries["person_by_id"], {"account_id": erasure.erased_id}).fetchone()
                    # Without an account, rows naming its id are erased; no address or name is known to look for.
                    unnamed = _Person(erasure.erased_id, str(erasure.erased_id), str(erasure.erased_id))
                    _erase_rows(owner, _Person(*row) if row else unnamed)
                    values = {"id": erasure.id, "erased_id": erasure.erased_id, "counts": Jsonb(erasure.counts)}
                    owner.execute(queries["keep_erasure"], {**values, "erased_at": erasure.erased_at})
                again += len(missing)
    if again:
        log.info("An older state of the database was restored: %d erasures made since are done again", again)
    return again


def _enter(owner: psycopg.Connection, tenant_id: str) -> None:
    owner.execute("SELECT set_config('search_path', 'public, extensions, pg_temp', true)")
    owner.execute(queries["enter_tenant"], {"tenant_id": tenant_id})


def _erase_rows(owner: psycopg.Connection, person: _Person) -> dict[str, int]:
    values = {"account_id": person.id, "email": person.email, "name": person.name}
    return {kind: owner.execute(queries[f"erase_{kind}"], values).rowcount for kind in ERASED}
