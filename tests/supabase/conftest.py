"""Fixtures for Supabase: a Postgres like that of a Supabase project, and PgBouncer in transaction mode if installed."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.providers.supabase import SupabaseProject
from rag.settings import Settings
from rag.storage.embedded_postgres import EmbeddedServer, start_server
from tests.patience import patient
from tests.standins.plain_server import PlainServer
from tests.standins.supabase import ANON, SERVICE, SupabaseStandin

#: What every new Supabase project contains.
PROJECT = """
CREATE ROLE anon NOLOGIN NOINHERIT;
CREATE ROLE authenticated NOLOGIN NOINHERIT;
CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS;
CREATE ROLE authenticator LOGIN NOINHERIT PASSWORD 'authenticator';
GRANT anon, authenticated, service_role TO authenticator;
CREATE ROLE project LOGIN NOSUPERUSER CREATEROLE CREATEDB BYPASSRLS PASSWORD 'project';
GRANT anon, authenticated, service_role TO project;
"""
OPEN_TO_EVERYBODY = """
ALTER SCHEMA public OWNER TO project;
CREATE SCHEMA extensions AUTHORIZATION project;
CREATE EXTENSION vector WITH SCHEMA extensions;
GRANT USAGE ON SCHEMA public, extensions TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE project IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE project IN SCHEMA public GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE project IN SCHEMA public GRANT ALL ON SEQUENCES TO anon, authenticated, service_role;
"""


@pytest.fixture(scope="module")
def project_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server without the role `rag_app`, as on Supabase, so that the migrations must create it."""
    running = start_server(tmp_path_factory.mktemp("project"))
    with psycopg.connect(running.superuser, autocommit=True) as connection:
        connection.execute("DROP DATABASE rag")
        connection.execute("DROP ROLE rag_app")
        connection.execute("DROP ROLE rag_owner")
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(PROJECT)
    yield running
    running.stop()


@pytest.fixture
def project(project_server: EmbeddedServer) -> Iterator[str]:
    """The connection string of an empty project for the role in its DATABASE_URL: no superuser, but with CREATEROLE."""
    with psycopg.connect(project_server.superuser, autocommit=True) as connection:
        connection.execute("CREATE DATABASE project OWNER project")
    with psycopg.connect(project_server.superuser, dbname="project", autocommit=True) as connection:
        connection.execute(OPEN_TO_EVERYBODY)
    yield make_conninfo(project_server.superuser, dbname="project", user="project", password="project")
    with psycopg.connect(project_server.superuser, autocommit=True) as connection:
        connection.execute("DROP DATABASE project WITH (FORCE)")
        connection.execute(sql.SQL("DROP ROLE IF EXISTS rag_app"))


@pytest.fixture
def pooler(server: PlainServer, database_name: str) -> Iterator[str]:
    """The connection string of the test's database through PgBouncer in transaction mode."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed (Debian: apt install pgbouncer)")
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-"))
    behind = conninfo_to_dict(make_conninfo(server.application, dbname=database_name))
    port = _free_port()
    (folder / "users").write_text(f'"rag_app" "{behind["password"]}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\npooled = host={behind['host']} port={behind['port']} dbname={database_name}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = md5\n"
        f"auth_file = {folder / 'users'}\npool_mode = transaction\ndefault_pool_size = 6\nserver_round_robin = 1\n"
        f"logfile = {folder / 'log'}\npidfile = {folder / 'pid'}\n"
    )
    command = [program, str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:  # it refuses to run as root: as whoever may use the server's socket
        account = pwd.getpwuid(Path(str(behind["host"])).stat().st_uid)
        for path in (folder, *folder.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid)
        command[1:1] = ["-u", account.pw_name]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"postgresql://rag_app:{behind['password']}@127.0.0.1:{port}/pooled"
    try:
        _wait_for(address, folder / "log")
        yield address
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(address: str, log: Path) -> None:
    deadline = time.monotonic() + patient(5)
    while True:
        try:
            with psycopg.connect(address, connect_timeout=int(patient(2)), prepare_threshold=None):
                return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise AssertionError(log.read_text() if log.exists() else "no log") from None
            time.sleep(0.05)


@pytest.fixture
def standin() -> Iterator[SupabaseStandin]:
    """A stand-in for a Supabase project over HTTP on this machine."""
    with SupabaseStandin() as running:
        yield running


@pytest.fixture
def at_supabase(standin: SupabaseStandin, settings: Settings) -> Settings:
    """Settings which name the stand-in, with a timeout short enough for a test."""
    return replace(
        settings,
        supabase_url=standin.url,
        supabase_anon_key=ANON,
        supabase_service_role_key=SERVICE,
        supabase_timeout_seconds=patient(0.15),
        sign_in="supabase",
    )


@pytest.fixture
def supabase_project(at_supabase: Settings) -> Iterator[SupabaseProject]:
    made = SupabaseProject(at_supabase)
    yield made
    made.close()
