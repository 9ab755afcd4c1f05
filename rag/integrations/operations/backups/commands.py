"""List, make and test automatic backups: `backups`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command
from rag.errors import SettingsError
from rag.language import counted
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.integrations.operations.backups.scheduled import BackupRun


def add_parsers(commands: Commands) -> None:
    text = "list, make and try the automatic backups (RAG_BACKUP_TO)"
    command = add_command(commands, "backups", text)
    acts = command.add_subparsers(metavar="ACT", required=True)
    acts.add_parser("list", help="when each was made, and how the last one and the last trial went").set_defaults(
        run=list_backups
    )
    acts.add_parser("now", help="make one now").set_defaults(run=make_backup)
    acts.add_parser("try", help="restore the newest into a folder that is removed at once").set_defaults(run=try_backup)
    key_parser = acts.add_parser("new-key", help="write a private key of age to a file and print its public key")
    key_parser.add_argument(
        "path", type=Path, metavar="FILE", help="the file to write; keep a copy away from this machine"
    )
    key_parser.set_defaults(run=make_key)


def _contents(backup: BackupRun) -> str:
    return f"{counted(backup.documents, 'document')}, {counted(backup.files, 'original')}"


def list_backups(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the stored backups. The exit status is 1 if there is a problem."""
    from rag.integrations.operations.backups.scheduled import ScheduledBackups

    backups = ScheduledBackups(settings)
    if not settings.variable("RAG_BACKUP_TO"):
        raise SettingsError("RAG_BACKUP_TO is not set. Name a folder, or s3://bucket/prefix.")
    for stored in backups.list():
        print(f"{stored.created_at:%Y-%m-%d %H:%M} UTC  {stored.size / 1e6:10,.1f} MB  {stored.name}")
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
    from rag.integrations.operations.backups.scheduled import ScheduledBackups

    run = ScheduledBackups(settings).make()
    print(f"{run.name}: {_contents(run)}, {run.seconds:.0f} s.")
    return 0


def try_backup(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.integrations.operations.backups.scheduled import ScheduledBackups

    tried = ScheduledBackups(settings).try_newest()
    brought = f"{_contents(tried)}, {tried.seconds:.0f} s"
    print(f"{tried.name} was restored completely: {brought}.")
    return 0


def make_key(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write a new key to a file in age-keygen's format, and print the public key."""
    from rag.integrations.operations.backups.age import new_key

    private_key, public_key = new_key()
    try:
        descriptor = os.open(arguments.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as exc:
        raise SettingsError(f"{arguments.path} cannot be written: {exc.strerror}.") from exc
    with os.fdopen(descriptor, "w") as file:
        file.write(f"# public key: {public_key}\n{private_key}\n")
    print(public_key)
    return 0
