"""Standbys of a server, which replay its log in their own folders, made with the built-in server's programs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.sandbox.service_account import hand_over, let_pass, service_account
from rag.storage.embedded_postgres import BINARIES

ACCOUNT = service_account() if os.geteuid() == 0 else None


@dataclass
class StandbyServer:
    """A server which replays the log of another."""

    folder: Path
    #: Connection strings for its superuser and for the application.
    superuser: str
    application: str

    def start(self) -> None:
        run("pg_ctl", "-D", self.folder, "-l", self.folder / "log", "-w", "-o", f"-k {self.folder}", "start")

    def stop(self, mode: str = "immediate") -> None:
        run("pg_ctl", "-D", self.folder, "-w", "-m", mode, "stop")

    def promote(self) -> None:
        run("pg_ctl", "-D", self.folder, "-w", "promote")

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            connection.execute(statement)


def run(program: str, *arguments: object) -> None:
    subprocess.run(
        [str(BINARIES / program), *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        user=ACCOUNT.pw_uid if ACCOUNT else None,
        group=ACCOUNT.pw_gid if ACCOUNT else None,
        extra_groups=[] if ACCOUNT else None,
    )


def make_standby(folder: Path, superuser: str, application: str) -> StandbyServer:
    """Copy a running server into a folder and start the copy, which follows the server."""
    folder.mkdir(mode=0o700)
    hand_over(folder, ACCOUNT)
    if ACCOUNT:
        let_pass(ACCOUNT, folder)
    run("pg_basebackup", "-d", superuser, "-D", folder, "-R", "-c", "fast")
    made = StandbyServer(
        folder,
        make_conninfo(superuser, host=str(folder), dbname="postgres"),
        make_conninfo(application, host=str(folder)),
    )
    made.start()
    return made


def as_url(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    return f"postgresql:///{parts['dbname']}?host={parts['host']}&user={parts['user']}&password={parts['password']}"
