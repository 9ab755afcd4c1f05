"""`doctor`, `backup` and `restore`: whether everything works, and everything in one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag.commands import Commands, add_command
from rag.errors import RagError
from rag.settings import Settings


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    doctor_parser = add_command(commands, "doctor", "say what is configured, what is missing and what it would add")
    doctor_parser.set_defaults(run=doctor)
    for name, text, path in (
        ("backup", "write the built-in database and the originals into one file, also while people work", "to write"),
        ("restore", "bring a backup into an empty data folder", "that backup wrote"),
    ):
        command = add_command(commands, name, text)
        command.add_argument("path", type=Path, metavar="FILE", help=f"the file {path}")
        command.set_defaults(run=back_up if name == "backup" else restore)


def doctor(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.api.health import check_rag_health
    from rag.services import connect_services

    parts = connect_services(settings)
    unread = ""
    try:
        try:
            parts.documents.start_reader()  # which says how it is confined
        except RagError as exc:
            unread = f"FAILED   Reading files: no process for it can be started and confined ({exc.message})"
        report = check_rag_health(parts)
    finally:
        parts.close()
    marks = {"ok": "ok     ", "missing": "missing", "warning": "note   ", "failed": "FAILED "}
    for check in report.checks:
        print(f"{marks[check.state]}  {check.name}: {check.sentence}")
    if unread:
        print(unread)
    works = report.ok and not unread
    print("\nThe product works." if works else "\nThe product does not work until what FAILED is mended.")
    return 0 if works else 1


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
