"""Apply migrations: each file in `supabase/migrations` once, in order, all in a single transaction.

An applied file must not change: its hash is stored and compared. The files up to `LAST_OF_BASELINE` are the baseline,
which replaced earlier migrations. In a database with all earlier migrations, the baseline counts as applied.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import psycopg

from rag.errors import DatabaseUnavailable
from rag.settings import first_line

MIGRATIONS = Path(__file__).resolve().parents[2] / "supabase" / "migrations"
#: An arbitrary number, the same in every process, so two processes starting together do not migrate concurrently.
LOCK = 7_201_121
#: The first version able to set a single column in a reference to null.
OLDEST_POSTGRES = 15
#: The migrations replaced by the baseline: their number, the first and the last; and the baseline's last part.
REPLACED, FIRST_REPLACED, LAST_REPLACED = 75, "20261122119000", "20261129020000"
LAST_OF_BASELINE = "20261129101500"
#: The commit which upgrades a database to the last replaced migration.
BEFORE_BASELINE = "5fce737"


def migrate(conninfo: str, folder: Path = MIGRATIONS) -> list[str]:
    """Apply the missing migrations, and return their names.

    Raises `DatabaseUnavailable` with a sentence if the server does not answer, is too old or lacks pgvector 0.7, or if
    the role may not create the objects. The same error is raised if an applied file has changed, if the database is
    older than the migrations which the baseline replaced, or if existing rows contradict a new migration.
    """
    try:
        with psycopg.connect(conninfo, connect_timeout=10, prepare_threshold=None) as connection:
            require_version(connection.info.server_version)
            _require_pgvector(connection)
            connection.execute("SELECT set_config('search_path', 'public, extensions', true)")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            applied = _apply_missing(connection, folder)
            if connection.execute("SELECT to_regproc('public.rag_close_database')").fetchone() != (None,):
                connection.execute("SELECT rag_close_database()")
            return applied
    except psycopg.errors.InsufficientPrivilege as exc:
        raise DatabaseUnavailable(
            f"The database role may not set up the tables ({first_line(exc)}). "
            "Set MIGRATION_DATABASE_URL to a role that may create tables, roles and extensions."
        ) from exc
    except psycopg.OperationalError as exc:
        raise DatabaseUnavailable(
            f"The database does not answer ({first_line(exc)}). Check that it runs and that "
            "DATABASE_URL is right, or unset DATABASE_URL to use the built-in database."
        ) from exc
    except psycopg.IntegrityError as exc:
        raise DatabaseUnavailable(
            f"Rows in the database stand in the way of its update ({first_line(exc)}). Nothing was changed. "
            "Mend or delete these rows, or go back to the version before."
        ) from exc
    except psycopg.ProgrammingError as exc:
        raise DatabaseUnavailable(
            f"DATABASE_URL cannot be used ({first_line(exc)}). "
            "It has to look like postgresql://user:password@host:5432/database."
        ) from exc


def require_version(server_version: int) -> None:
    """Raise `DatabaseUnavailable` for an old Postgres; `server_version` comes from libpq, for example 150004."""
    if server_version < OLDEST_POSTGRES * 10_000:
        raise DatabaseUnavailable(
            f"This is Postgres {server_version // 10_000}, but {OLDEST_POSTGRES} or newer is needed. Update the "
            "server, or unset DATABASE_URL to use the built-in database."
        )


def _require_pgvector(connection: psycopg.Connection) -> None:
    row = connection.execute(
        "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
        " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'))"
    ).fetchone()
    version = row[0] if row else None
    if version is None:
        raise DatabaseUnavailable(
            "This Postgres has no pgvector. Install the extension (Debian: postgresql-17-pgvector; Supabase has it), "
            "or unset DATABASE_URL to use the built-in database."
        )
    if tuple(int(part) for part in version.split(".")[:2]) < (0, 7):
        raise DatabaseUnavailable(
            f"This Postgres has pgvector {version}, but 0.7 or newer is needed. Update the extension."
        )


def _apply_missing(connection: psycopg.Connection, folder: Path) -> list[str]:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS rag_migrations "
        "(name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    recorded: dict[str, str] = dict(connection.execute("SELECT name, sha256 FROM rag_migrations").fetchall())
    has_cli_record, by_cli = _record_of_the_supabase_cli(connection)
    replaced = {name[:14] for name in (*recorded, *by_cli) if name[:14] <= LAST_REPLACED}
    applied = []
    for path in sorted(folder.glob("*.sql")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if path.stem in recorded:
            if recorded[path.stem] != digest:
                raise DatabaseUnavailable(
                    f"Migration {path.stem} was changed after it was applied. Restore the file; "
                    "changes to the tables go into a new one."
                )
            continue
        version = path.stem.partition("_")[0]
        is_there = version in by_cli
        if replaced and LAST_REPLACED < version <= LAST_OF_BASELINE:
            _require_all_replaced(replaced)
            is_there = True
        if not is_there:
            connection.execute(path.read_bytes())
        connection.execute("INSERT INTO rag_migrations (name, sha256) VALUES (%s, %s)", (path.stem, digest))
        if has_cli_record and version not in by_cli:
            connection.execute(
                "INSERT INTO supabase_migrations.schema_migrations (version) VALUES (%s) ON CONFLICT DO NOTHING",
                (version,),
            )
        applied.append(path.stem)
    if applied and connection.execute("SELECT to_regproc('public.rag_close_rest_api')").fetchone() != (None,):
        connection.execute("SELECT rag_close_rest_api()")
    return applied


def _require_all_replaced(replaced: set[str]) -> None:
    if sum(version >= FIRST_REPLACED for version in replaced) < REPLACED:
        raise DatabaseUnavailable(
            f"This database was made by a version from before {LAST_REPLACED[:4]}-{LAST_REPLACED[4:6]}-"
            f"{LAST_REPLACED[6:8]} and lacks its last changes. Nothing was changed. Start commit {BEFORE_BASELINE} of "
            "the application once on it, then this version (docs/operations.md, Upgrade)."
        )


def _record_of_the_supabase_cli(connection: psycopg.Connection) -> tuple[bool, set[str]]:
    """Return whether the Supabase CLI's table of migrations exists, and the versions recorded there.

    We also write to this table, to let people use both tools.
    """
    there = connection.execute(
        "SELECT coalesce(has_table_privilege(to_regclass('supabase_migrations.schema_migrations'), 'SELECT, INSERT'), "
        "false)"
    ).fetchone()
    if there != (True,):
        return False, set()
    rows = connection.execute("SELECT version FROM supabase_migrations.schema_migrations").fetchall()
    return True, {row[0] for row in rows}
