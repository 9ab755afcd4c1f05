"""Write everything into one file and read it back: `backup`, `restore`, and `backups` for the automatic ones."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command
from rag.errors import SettingsError
from rag.language import counted
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.storage.backup import BackedUp
    from rag.storage.scheduled_backups import BackupRun


def add_parsers(commands: Commands) -> None:
    text = "write the built-in database and the originals into one file, also while people work"
    command = add_command(commands, "backup", text)
    command.add_argument("path", type=Path, metavar="FILE", help="the file to write")
    command.add_argument(
        "--recipient", action="append", default=[], metavar="AGE1…", help="encrypt it for this public key of age"
    )
    command.set_defaults(run=back_up)
    command = add_command(commands, "restore", "restore a backup into an empty data folder")
    command.add_argument("path", type=Path, metavar="FILE", help="the file that backup wrote")
    command.add_argument(
        "--identity", type=Path, metavar="KEY", help="the file with the private key of an encrypted one"
    )
    command.add_argument(
        "--erasures", type=Path, metavar="FILE",
        help="erasures.json of the folder that was in use: who was erased since is erased again",
    )  # fmt: skip
    command.set_defaults(run=restore)
    text = "list, make and try the automatic backups (RAG_BACKUP_TO)"
    command = add_command(commands, "backups", text)
    acts = command.add_subparsers(metavar="ACT", required=True)
    acts.add_parser("list", help="when each was made, and how the last one and the last trial went").set_defaults(
        run=list_backups
    )
    acts.add_parser("now", help="make one now").set_defaults(run=make_backup)
    acts.add_parser("try", help="restore the newest into a folder that is removed at once").set_defaults(run=try_backup)
    made = acts.add_parser("new-key", help="write a private key of age to a file and print its public key")
    made.add_argument("path", type=Path, metavar="FILE", help="the file to write; keep a copy away from this machine")
    made.set_defaults(run=make_key)


def back_up(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage import backup

    made = backup.back_up(settings, arguments.path, recipients=" ".join(arguments.recipient))
    print(f"{arguments.path}: {_contents(made)}, {made.size / 1e6:,.1f} MB.")
    return 0


def restore(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage import backup
    from rag.storage.erasures import read_register
    from rag.storage.scheduled_backups import ScheduledBackups

    erasures = read_register(arguments.erasures) if arguments.erasures else []
    try:
        erasures += ScheduledBackups(settings).shared_erasures()
    except SettingsError as exc:
        print(
            f"{exc.message} So nobody knows here who was erased since this backup was made: erase them again.",
            file=sys.stderr,
        )
    brought = backup.restore(settings, arguments.path, identity=arguments.identity, erasures=erasures)
    print(f"{settings.data_dir}: {_contents(brought)}. Start with: make run")
    if brought.erasures_since:
        print(f"People erased since this backup was made: {brought.erasures_since}. The first start erases them again.")
    return 0


def _contents(backup: BackedUp | BackupRun) -> str:
    return f"{counted(backup.documents, 'document')}, {counted(backup.files, 'original')}"


def list_backups(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the stored backups; the exit status is 1 when something is wrong."""
    from rag.storage.scheduled_backups import ScheduledBackups

    backups = ScheduledBackups(settings)
    if not settings.backup_to:
        raise SettingsError("RAG_BACKUP_TO is not set. Name a folder, or s3://bucket/prefix.")
    for stored in backups.list():
        print(f"{stored.made_at:%Y-%m-%d %H:%M} UTC  {stored.size / 1e6:10,.1f} MB  {stored.name}")
    _, trial = backups.last()
    if trial is not None and not trial.error:
        print(
            f"Tried on {trial.at:%Y-%m-%d}: {trial.name} was restored completely in {trial.seconds:.0f} s, "
            f"{_contents(trial)}."
        )
    if trouble := backups.trouble():
        print(trouble)
    return 1 if trouble else 0


def make_backup(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage.scheduled_backups import ScheduledBackups

    made = ScheduledBackups(settings).make()
    print(f"{made.name}: {_contents(made)}, {made.seconds:.0f} s.")
    return 0


def try_backup(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage.scheduled_backups import ScheduledBackups

    tried = ScheduledBackups(settings).try_newest()
    brought = f"{_contents(tried)}, {tried.seconds:.0f} s"
    print(f"{tried.name} was restored completely: {brought}.")
    return 0


def make_key(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write a key as age-keygen does."""
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    try:
        descriptor = os.open(arguments.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as exc:
        raise SettingsError(f"{arguments.path} cannot be written: {exc.strerror}.") from exc
    with os.fdopen(descriptor, "w") as file:
        file.write(f"# public key: {identity.to_public()}\n{identity}\n")
    print(identity.to_public())
    return 0
