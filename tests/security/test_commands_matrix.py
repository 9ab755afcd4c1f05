"""Every command by whom it acts for: the company that it names, all of them, or none.

Whoever runs commands has the machine's account and everything with it. What is tried here is that a command for one
company neither shows nor changes another's. A new command fails until it has a row.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from rag.__main__ import command_line
from rag.storage.database import Database
from tests.forked import forked_python
from tests.integration_rows import OF_INTEGRATIONS, listed
from tests.patience import patient

PROJECT = Path(__file__).resolve().parents[2]
#: Acts for nobody: the server with its guard, the machine, and the whole database.
FOR_ALL = {
    "serve", "worker", "doctor", "tenant list", "backup", "restore", *listed("commands", "for_all"),
}  # fmt: skip
#: Acts for the company in `--tenant`, or in its first argument, as the product does. Each is asked for something of
#: another company: `{id}`, `{collection}` and `{email}` are its.
FOR_ONE = {
    "mcp": "", "psql": "", "ingest": "{file} --collection {collection}", "documents list": "--collection {collection}",
    "documents delete": "{id}", "documents restore": "{id}", "documents correct": "{id} 1 --text x",
    "collection list": "", "collection create": "Another", "collection set": "{collection} language=de",
    "collection delete": "{collection}", "collection restore": "{collection}", "collection index": "{collection}",
    "sync": "--collection {collection}", "reembed": "--collection {collection} --yes",
    "calibrate": "--collection {collection}",
    "search": "xylocanary --collection {collection}", "ask": "xylocanary --collection {collection}",
    "eval": "--collection {collection}", "report": "", "privacy export": "{email} {out}",
    "privacy erase": "{email} --yes",
    "privacy retention": "", "privacy forget": "", "audit": "", "prices list": "",
    "prices set": "gpt-4o input_tokens 1",
    "tenant create": "new", "tenant domains": "example.org", "tenant password-link": "{email}", "tenant suspend": "",
    "tenant resume": "", "tenant export": "{out}", "tenant delete": "--confirm other",
}  # fmt: skip
for rows in OF_INTEGRATIONS:
    FOR_ONE |= rows.get("commands", {}).get("for_one", {})
#: A shell of the built-in database, tried in `tests/storage/test_reading_shell.py`; and the server of another protocol.
NOT_RUN = {"psql", "mcp"}


def leaves(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield path, parser
    for action in inner:
        for name, command in action.choices.items():
            yield from leaves(command, f"{path} {name}".strip())


def test_every_command_has_a_row_and_names_its_company() -> None:
    commands = dict(leaves(command_line()))
    assert set(commands) == FOR_ALL | set(FOR_ONE)
    takes_a_company = {name for name, parser in commands.items() if any(a.dest == "tenant" for a in parser._actions)}
    assert takes_a_company == set(FOR_ONE)


ROWS = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1
"""


def held(conninfo: str) -> dict[str, object]:
    """What the company `demo` has, by table."""
    with psycopg.connect(conninfo) as connection:
        return {
            table: connection.execute(
                sql.SQL(
                    "SELECT md5(string_agg(t::text, '' ORDER BY t::text)) FROM {} t WHERE tenant_id = 'demo'"
                ).format(sql.Identifier(table))
            ).fetchone()
            for (table,) in connection.execute(ROWS).fetchall()
        }


@pytest.mark.parametrize("name", sorted(set(FOR_ONE) - NOT_RUN))
def test_a_command_for_one_company_neither_shows_nor_changes_another(
    name: str, database: Database, owner_conninfo: str, superuser_conninfo: str, tmp_path: Path
) -> None:
    with database.transaction("demo") as connection:
        (collection,) = connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) "
            "VALUES ('demo', 'xylocanary', 'builtin/lexical@1536') RETURNING id"
        ).fetchone() or (None,)
        (document,) = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, file_path, sha256, status) "
            "VALUES ('demo', %s, 'xylocanary', 'xylocanary.pdf', 'demo/x', 'x', 'completed') RETURNING id",
            (collection,),
        ).fetchone() or (None,)
        connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES ('demo', 'xylocanary@demo.example', 'xylocanary', 'admin', '-')"
        )
        connection.execute(
            "INSERT INTO audit_log (tenant_id, actor, action, target) "
            "VALUES ('demo', 'xylocanary', 'a b', 'xylocanary')"
        )
        connection.execute(
            "INSERT INTO webhooks (tenant_id, name, address, events, secret) "
            "VALUES ('demo', 'xylocanary', 'https://xylocanary.example', '{question.asked}', 'x')"
        )
    file = tmp_path / "leave.txt"
    file.write_text("Twenty-eight days of paid leave a year.", "utf-8")
    known = {
        "id": document, "collection": collection, "email": "xylocanary@demo.example", "file": file,
        "out": tmp_path / "out",
    }  # fmt: skip
    given = FOR_ONE[name].format(**known).split()
    # Commands of `tenant` name the company first.
    company = ["other" if name != "tenant create" else ""] if name.startswith("tenant ") else []
    arguments = [*name.split(), *filter(None, company), *given, *([] if company else ["--tenant", "other"])]
    before = held(superuser_conninfo)
    ended = subprocess.run(
        [*forked_python(), "-m", "rag", *arguments],
        cwd=PROJECT,
        env={
            **{known: os.environ[known] for known in ("PATH", "HOME", "LANG") if known in os.environ},
            "DATABASE_URL": database.conninfo, "MIGRATION_DATABASE_URL": owner_conninfo,
            "RAG_DATA_DIR": str(tmp_path / "data"), "RAG_WORKER": "false",
        },
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patient(120), check=False,
    )  # fmt: skip
    assert ended.returncode != 2, ended.stderr  # what it was given is no command
    told = (ended.stdout + ended.stderr).replace("xylocanary@demo.example", "")
    # What was asked for is repeated where it is not found.
    assert "xylocanary" in given or "xylocanary" not in told, told
    assert "xylocanary.pdf" not in told
    assert "xylocanary.example" not in told
    assert not any(b"xylocanary" in path.read_bytes() for path in tmp_path.glob("out*") if path.is_file())
    assert held(superuser_conninfo) == before
