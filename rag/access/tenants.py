"""Create, suspend, export and delete tenants; keep each company's name and logo.

Most functions are for operators' commands, and a few for a tenant's administrators. All except `all_tenants` run in the
tenant's transaction, where row-level security limits exports and deletions to the tenant's rows.
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import Connection, sql
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rag.access.account_rows import normal_domain
from rag.access.sessions import require_admin
from rag.errors import InvalidInput, NotFound, SettingsError
from rag.language import N_
from rag.storage.data_folder import whole_file
from rag.storage.database import Database, queries
from rag.storage.files import TENANT, Originals
from rag.types import Identity, Who

if TYPE_CHECKING:
    from PIL import Image

LONGEST_NAME = 120

MARK_FORMATS = ("PNG", "JPEG", "WEBP")
MAXIMUM_MARK_BYTES = 2 * 1024 * 1024
MAXIMUM_MARK_PIXELS = 16_000_000
#: The sidebar shows a mark at most 32 points high; screens have up to three pixels a point.
MARK_SIZE = (480, 96)
#: A picture which compresses badly as PNG gets fewer colours.
MAXIMUM_STORED_BYTES = 100_000
#: These are for people: other errors in this module are for operators, in English.
NO_PICTURE = N_("This is not a picture that can be used. Choose a PNG, JPEG or WebP file.")
TOO_LARGE = N_("The logo has more than 2 MB. Choose a smaller picture.")
TOO_MANY_PIXELS = N_("The logo has more than 16 million pixels. Choose a smaller picture.")

#: Columns left out in an export: secrets, and values computed from the rest.
NOT_EXPORTED = frozenset(
    {"password_hash", "token_hash", "secret_hash", "subject_hash", "session_hash", "secret", "code_hash"}
    | {"embedding", "weights", "terms", "bits"}
)
#: Tables which only make search fast; they are rebuilt from the passages.
INDEX_TABLES = re.compile(r"chunk_(keywords|terms|bits)|keyword_.*|spare_vectors|meaning_(vectors|parts)|.*postings.*")


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """A row in `tenants`: a company with id, name and allowed e-mail domains."""

    id: str
    name: str
    created_at: datetime
    suspended_at: datetime | None
    #: Domains for the people's e-mail addresses; empty for any.
    domains: list[str]


@dataclass(frozen=True, kw_only=True)
class SetupProgress:
    """The items done in the administrators' checklist for a new company."""

    name: str
    is_named: bool
    #: The checklist was ended.
    is_finished: bool
    people: int
    has_documents: bool
    has_questions: bool


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """The receipt for a deleted tenant: rows by table, and stored files, counted before and after the deletion."""

    tenant_id: str
    rows_before: dict[str, int]
    rows_after: dict[str, int]
    files_before: int
    files_after: int

    @property
    def is_complete(self) -> bool:
        return not any(self.rows_after.values()) and not self.files_after


class Tenants:
    """Create, suspend, export and delete tenants."""

    def __init__(self, database: Database, files: Originals, owner_conninfo: str = "") -> None:
        """`owner_conninfo` connects as the owner of the tables, the only role allowed to delete a tenant's row."""
        self._database = database
        self._files = files
        self._owner_conninfo = owner_conninfo

    # For administrators of a tenant

    def progress(self, identity: Identity) -> SetupProgress:
        """Return the company's progress in the administrators' checklist. Raises `NotAllowed`."""
        require_admin(identity)
        progress = self._database.fetch_one(identity, "setup_progress", SetupProgress)
        if progress is None:
            raise NotFound
        return progress

    def rename(self, identity: Identity, name: str) -> None:
        """Rename the administrator's company. Raises `InvalidInput`."""
        require_admin(identity)
        name = " ".join(name.split())
        if not 1 <= len(name) <= LONGEST_NAME:
            raise InvalidInput(f"Give the company a name of at most {LONGEST_NAME} characters.")
        self._database.execute(identity, "rename_tenant", name=name)

    def mark(self, who: Who) -> bytes:
        """Return the company's logo as PNG; empty without a logo."""
        return bytes(self._database.fetch_value(who, "company_mark") or b"")

    def set_mark(self, identity: Identity, picture: bytes) -> None:
        """Set the company's logo from a PNG, JPEG or WebP file. An empty file removes the logo.

        Raises `InvalidInput` if the file is not an image or is too large.
        """
        require_admin(identity)
        mark = mark_from(picture) if picture else None
        with self._database.transaction(identity) as connection:
            connection.execute(queries["set_company_mark"], {"mark": mark})
            act = {
                "action": "company mark changed" if mark else "company mark removed",
                "target": "",
                "changes": Jsonb({}),
            }
            connection.execute(queries["add_audit_entry"], act)

    def finish_setup(self, identity: Identity) -> None:
        """Mark the company's checklist as finished: the checklist is no longer shown."""
        require_admin(identity)
        self._database.execute(identity, "change_tenant_settings", settings=Jsonb({"is_set_up": True}))

    # For operators

    def create(self, tenant_id: str, name: str = "", domains: Sequence[str] = ()) -> None:
        """Add a tenant, optionally restricted to e-mail domains.

        Raises `InvalidInput` for an invalid or taken id, or for an invalid domain.
        """
        if not TENANT.fullmatch(tenant_id):
            raise InvalidInput(
                "A tenant's id has 1 to 63 small letters, digits, - and _, and begins with none of them."
            )
        for domain in domains:
            normal_domain(domain)
        display_name = " ".join(name.split()) or tenant_id.replace("-", " ").title()
        if not self._database.execute(tenant_id, "create_tenant", id=tenant_id, name=display_name):
            raise InvalidInput(f"There is a tenant {tenant_id} already.")
        if domains:
            self.set_domains(tenant_id, domains)

    def get(self, tenant_id: str) -> Tenant:
        """Return one tenant. Raises `NotFound`."""
        tenant = self._database.fetch_one(tenant_id, "tenant", Tenant)
        if tenant is None:
            raise NotFound(f"There is no tenant {tenant_id}.")
        return tenant

    def set_domains(self, tenant_id: str, domains: Sequence[str]) -> list[str]:
        """Allow invitations only to addresses in these e-mail domains; an empty list allows any address.

        Existing accounts stay. Returns the normalised domains. Raises `InvalidInput`, `NotFound`.
        """
        self.get(tenant_id)
        normal = sorted({normal_domain(domain) for domain in domains})
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["set_tenant_domains"], {"domains": normal})
            _note(connection, f"company's domains: {', '.join(normal) or 'any'}")
        return normal

    def suspend(self, tenant_id: str) -> None:
        """Stop sign-ins and jobs until `resume`, and end open sessions. No data is deleted."""
        self.get(tenant_id)
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["suspend_tenant"])
            _note(connection, "company suspended")

    def resume(self, tenant_id: str) -> None:
        """Allow sign-ins again and continue the waiting jobs."""
        self.get(tenant_id)
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["resume_tenant"])
            connection.execute(queries["wake_jobs"])
            _note(connection, "company resumed")

    def export(self, tenant_id: str, path: Path) -> dict[str, int]:
        """Write a tenant's data into a ZIP and return the rows by table.

        `tables/NAME.jsonl` holds a row per line, `files/` the originals, `manifest.json` the list of contents. Password
        and token hashes, and data used only for searching, are left out. Raises `SettingsError` if `path` exists.
        """
        self.get(tenant_id)
        try:
            rows = self._export(tenant_id, path)
        except OSError as exc:
            raise SettingsError(f"The export cannot be written to {path}: {exc.strerror or exc}.") from exc
        with self._database.transaction(tenant_id) as connection:
            _note(connection, "export made: everything")
        return rows

    def _export(self, tenant_id: str, path: Path) -> dict[str, int]:
        with (
            whole_file(path) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            self._database.snapshot(tenant_id) as connection,
        ):
            tables = [t for t in tenant_tables(connection) if not INDEX_TABLES.fullmatch(t)]
            rows = {table: _write_table(archive, connection, table) for table in tables}
            files = self._files.keys(tenant_id)
            for key in files:
                archive.writestr(f"files/{key}", self._files.get(tenant_id, key))
            manifest = {
                "tenant": tenant_id,
                "exportedAt": datetime.now(UTC).isoformat(),
                "rows": rows,
                "files": len(files),
            }
            archive.writestr("manifest.json", json.dumps(manifest, indent=2))
        return rows

    def delete(self, tenant_id: str) -> Deletion:
        """Delete a suspended tenant with all rows and files. Store a receipt with the counts, and return the receipt.

        Raises `NotFound`, and `InvalidInput` if the tenant is not suspended, because nothing may be written during the
        deletion.
        """
        if self.get(tenant_id).suspended_at is None:
            raise InvalidInput(f"Suspend the tenant first: python -m rag tenant suspend {tenant_id}")
        files_before = len(self._files.keys(tenant_id))
        with self._database.transaction(tenant_id) as connection:
            before = count_rows(connection)
        with psycopg.connect(self._owner_conninfo, prepare_threshold=None) as owner:
            owner.execute("SELECT set_config('search_path', 'public, extensions, pg_temp', true)")
            owner.execute(queries["enter_tenant"], {"tenant_id": tenant_id})
            owner.execute(queries["delete_tenant_jobs"], {"tenant_id": tenant_id})
            owner.execute(queries["delete_tenant"], {"tenant_id": tenant_id})
            owner.commit()
            owner.execute(queries["drop_unused_indexes"])
        for key in self._files.keys(tenant_id):
            self._files.delete(tenant_id, key)
        with self._database.transaction(tenant_id) as connection:
            after = count_rows(connection)
            proof = Deletion(
                tenant_id=tenant_id,
                rows_before=before,
                rows_after=after,
                files_before=files_before,
                files_after=len(self._files.keys(tenant_id)),
            )
            connection.execute(
                queries["note_deletion"],
                {**vars(proof), "rows_before": Jsonb(before), "rows_after": Jsonb(after)},
            )
        return proof


def all_tenants(owner_conninfo: str) -> list[Tenant]:
    """List all tenants by id.

    Needs a connection as the owner of the tables: the application's role sees a single tenant.
    """
    with (
        psycopg.connect(owner_conninfo, prepare_threshold=None) as connection,
        connection.cursor(row_factory=class_row(Tenant)) as cursor,
    ):
        cursor.execute("SELECT set_config('search_path', 'public, extensions', true)")
        return cursor.execute(queries["tenants"]).fetchall()


def tenant_tables(connection: Connection) -> list[str]:
    """List the names of tables with rows per tenant, except the table with deletion receipts."""
    return [row[0] for row in connection.execute(queries["tenant_tables"])]


def count_rows(connection: Connection) -> dict[str, int]:
    """Count the rows of the transaction's tenant by table. Tables without rows are left out."""
    counted: dict[str, int] = {}
    for table in tenant_tables(connection):
        row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
        if row and row[0]:
            counted[table] = row[0]
    return counted


def mark_from(picture: bytes) -> bytes:
    """Convert an uploaded logo to a PNG with at most 480 x 96 pixels. Raises `InvalidInput`.

    Only the pixels are kept, without location and other metadata. SVG is refused, because it may contain scripts.
    """
    if len(picture) > MAXIMUM_MARK_BYTES:
        raise InvalidInput(TOO_LARGE)
    from PIL import Image, ImageOps, UnidentifiedImageError  # Only needed for uploading a logo.

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(picture), formats=MARK_FORMATS) as opened:
                if opened.width * opened.height > MAXIMUM_MARK_PIXELS:
                    raise InvalidInput(TOO_MANY_PIXELS)
                upright = ImageOps.exif_transpose(opened).convert("RGBA")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as exc:
        raise InvalidInput(NO_PICTURE) from exc
    if box := upright.getchannel("A").getbbox():
        upright = upright.crop(box)
    upright.thumbnail(MARK_SIZE, Image.Resampling.LANCZOS)
    png = _png(upright)
    return png if len(png) <= MAXIMUM_STORED_BYTES else _png(upright.quantize(64))


def _png(image: Image.Image) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    clean = Image.new(image.mode, image.size)
    clean.paste(image)
    if image.mode == "P" and (palette := image.getpalette("RGBA")):
        clean.putpalette(palette, "RGBA")
    clean.save(file, "PNG", optimize=True)
    return file.getvalue()


def _note(connection: Connection, action: str) -> None:
    connection.execute(queries["note_operator_act"], {"action": action})


def _write_table(archive: zipfile.ZipFile, connection: Connection, table: str) -> int:
    columns = [row[0] for row in connection.execute(queries["columns_of_table"], {"table": table})]
    exported = sql.SQL(", ").join(sql.Identifier(c) for c in columns if c not in NOT_EXPORTED)
    statement = sql.SQL("SELECT {} FROM {}").format(exported, sql.Identifier(table))
    count = 0
    with archive.open(f"tables/{table}.jsonl", "w") as file, connection.cursor(name="export") as cursor:
        cursor.itersize = 1000
        for row in cursor.execute(statement):
            names = [column.name for column in cursor.description or ()]
            file.write((json.dumps(dict(zip(names, row, strict=True)), default=_as_text) + "\n").encode())
            count += 1
    return count


def _as_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
