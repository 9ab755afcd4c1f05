"""Write all data to a file and read it back: `backup` and `restore`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command
from rag.errors import SettingsError
from rag.integrations.registry import automatic_backups
from rag.language import counted
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.storage.backup import BackedUp


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


def back_up(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage import backup

    made = backup.back_up(settings, arguments.path, recipients=" ".join(arguments.recipient))
    print(f"{arguments.path}: {_contents(made)}, {made.size / 1e6:,.1f} MB.")
    return 0


def restore(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage import backup
    from rag.storage.erasures import read_register

    erasures = read_register(arguments.erasures) if arguments.erasures else []
    try:
        automatic = automatic_backups(settings)
        erasures += automatic.shared_erasures() if automatic is not None else []
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


def _contents(backup: BackedUp) -> str:
    return f"{counted(backup.documents, 'document')}, {counted(backup.files, 'original')}"
