"""Write everything into one file and read it back: `backup` and `restore`."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag.commands import Commands, add_command
from rag.settings import Settings


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    for name, text, path in (
        ("backup", "write the built-in database and the originals into one file, also while people work", "to write"),
        ("restore", "bring a backup into an empty data folder", "that backup wrote"),
    ):
        command = add_command(commands, name, text)
        command.add_argument("path", type=Path, metavar="FILE", help=f"the file {path}")
        command.set_defaults(run=back_up if name == "backup" else restore)


def back_up(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage import backup

    made = backup.back_up(settings, arguments.path)
    print(f"{arguments.path}: {made.documents} documents, {made.files} originals, {made.size / 1e6:,.1f} MB.")
    return 0


def restore(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.storage import backup

    brought = backup.restore(settings, arguments.path)
    print(f"{settings.data_dir}: {brought.documents} documents, {brought.files} originals. Start with: make run")
    return 0
