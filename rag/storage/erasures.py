"""Record erasures outside the database: restoring an older backup must not bring an erased person back.

The register has receipts and former accounts by id, without names. It lies in the data folder and beside the automatic
backups. Each backup's manifest also has the erasures known at that time. After a restore, the first start repeats the
erasures for all people still in the restored database.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from rag.errors import RagError, SettingsError
from rag.storage.data_folder import write_private

log = logging.getLogger("rag.backups")

#: In the data folder, and beside backups.
REGISTER, SHARED_REGISTER = "erasures.json", "hr-assistant-erasures.json"


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """A person's erasure: the receipt, the former account, and how many rows were erased, by kind."""

    id: UUID
    tenant_id: str
    erased_id: UUID
    counts: dict[str, int]
    erased_at: datetime

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "id": str(self.id), "erased_id": str(self.erased_id), "erased_at": self.erased_at.isoformat(),
        }  # fmt: skip


def erasure_from_json(row: Mapping[str, Any]) -> Erasure:
    return Erasure(
        id=UUID(row["id"]),
        tenant_id=str(row["tenant_id"]),
        erased_id=UUID(row["erased_id"]),
        counts={str(kind): int(count) for kind, count in row["counts"].items()},
        erased_at=datetime.fromisoformat(row["erased_at"]),
    )


def read_register(path: Path) -> list[Erasure]:
    """Return the erasures in a register; empty if there is no file. Raises `SettingsError` for any other file."""
    try:
        return [erasure_from_json(row) for row in json.loads(path.read_text("utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError) as exc:
        raise SettingsError(f"{path} is not a register of erasures that can be read: {exc}.") from exc


def write_register(path: Path, erasures: Iterable[Erasure]) -> None:
    """Write a register, oldest erasure first, without duplicates."""
    by_id = {erasure.id: erasure for erasure in erasures}
    rows = [erasure.to_json() for erasure in sorted(by_id.values(), key=lambda one: (one.erased_at, one.id))]
    write_private(path, json.dumps(rows, indent=2))


class ErasureRegister:
    """The register in the data folder. A function copies the register to the backups' storage."""

    def __init__(self, folder: Path, copy: Callable[[], object] | None) -> None:
        self._path = folder / REGISTER
        self._copy = copy
        self._lock = Lock()

    def note(self, erasure: Erasure) -> None:
        """Add an erasure to the register, and copy the register to the backups' storage.

        Errors are only logged, because the next backup copies the register again.
        """
        try:
            with self._lock:
                write_register(self._path, [*read_register(self._path), erasure])
                if self._copy is not None:
                    self._copy()
        except (RagError, OSError) as exc:
            log.error("The erasure %s is noted beside the backups with the next one: %s", erasure.id, exc)


def erasures_in(connection: psycopg.Connection) -> list[Erasure]:
    """Return all tenants' erasures from the database; [] if the table is missing.

    The connection's role must be allowed to read them.
    """
    if connection.execute("SELECT to_regclass('erasures')").fetchone() == (None,):
        return []
    with connection.cursor(row_factory=class_row(Erasure)) as cursor:
        return cursor.execute("SELECT id, tenant_id, erased_id, counts, erased_at FROM erasures").fetchall()
