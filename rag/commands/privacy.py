"""Keep and forget texts of people: `privacy export`, `erase`, `retention` and `forget`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rag.commands import Commands, add_command
from rag.errors import InvalidInput, NotFound
from rag.settings import Settings


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    command = add_command(commands, "privacy", "export or erase one person's data, and forget old texts")
    acts = command.add_subparsers(dest="act", required=True, metavar="ACT")
    export = acts.add_parser("export", help="write everything kept of a person as JSON")
    erase = acts.add_parser("erase", help="erase a person with all their texts, and print the receipt")
    for act in (export, erase):
        act.add_argument("email")
    export.add_argument("file", type=Path)
    erase.add_argument("--yes", action="store_true", help="do not ask; it cannot be taken back")
    retention = acts.add_parser("retention", help="show or set after how many days texts are forgotten")
    retention.add_argument("--days", default="", help="a number, or never")
    forget = acts.add_parser("forget", help="forget now what is older; run it every night")
    for act in (export, erase, retention, forget):
        act.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.services import services

    parts = services()
    tenant = arguments.tenant or settings.tenant
    privacy = parts.privacy
    try:
        if arguments.act == "export":
            arguments.file.write_bytes(privacy.export(tenant, arguments.email))
            print(f"Written to {arguments.file}")
        elif arguments.act == "erase":
            if not arguments.yes and not _agreed(arguments.email):
                return 1
            receipt = privacy.erase(tenant, arguments.email)
            print(f"Receipt {receipt.id} of {receipt.erased_at:%Y-%m-%d %H:%M} UTC")
            for kind, rows in receipt.counts.items():
                print(f"  {kind.replace('_', ' '):16} {rows}")
            print("Backups made before still hold this person's data.", file=sys.stderr)
        elif arguments.act == "retention":
            if arguments.days:
                privacy.set_retention_days(tenant, _days(arguments.days))
            days = privacy.retention_days(tenant)
            print("Texts are kept." if days is None else f"Texts are forgotten after {days} days.")
        else:
            for kind, rows in privacy.forget_old(tenant).items():
                print(f"{kind.replace('_', ' '):16} {rows}")
    except NotFound:
        raise InvalidInput(f"Nobody of {tenant} has the address {arguments.email}.") from None
    finally:
        parts.close()
    return 0


def _days(text: str) -> int | None:
    if text == "never":
        return None
    if not text.isdigit():
        raise InvalidInput(f"{text!r} is no number of days. Write a number, or never.")
    return int(text)


def _agreed(email: str) -> bool:
    try:
        return input(f"Erase {email} with all questions and answers? It cannot be taken back. [y/N] ") == "y"
    except EOFError:
        print("\nNobody is there to say yes. Add --yes to go on without asking.")
        return False
