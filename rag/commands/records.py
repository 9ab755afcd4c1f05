"""Read records, and delete personal data: `report`, `privacy` and `audit`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command
from rag.errors import DatabaseUnavailable, InvalidInput, NotFound, PackagesMissing
from rag.language import LANGUAGES, counted, speaking
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.records.audit import AuditLog


def add_parsers(commands: Commands) -> None:
    _add_report(commands)
    _add_privacy(commands)
    _add_audit(commands)


def _add_report(commands: Commands) -> None:
    command = add_command(
        commands,
        "report",
        "write a report of the last days",
        more="The days end with yesterday, in the company's time zone.",
    )
    command.add_argument("--days", type=int, default=7, help="how many, 7 by default")
    command.add_argument("--html", type=Path, default=None, metavar="FILE", help="write HTML there, to be mailed")
    command.add_argument("--language", default="en", choices=list(LANGUAGES), help="the language it is written in")
    command.add_argument("--pdf", type=Path, default=None, metavar="FILE", help="write a PDF there")
    command.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    command.set_defaults(run=report)


def report(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.records.analytics import Filters, Period
    from rag.records.digest import digest_title, make_digest
    from rag.services import services

    if not 1 <= arguments.days <= 366:
        raise InvalidInput("Choose between 1 and 366 days.")
    parts = services()
    pdfs = parts.pdf_exports
    tenant = arguments.tenant or settings.tenant
    try:
        period = Period.of_days(arguments.days, until=parts.analytics.zones.today(tenant) - timedelta(days=1))
        name = parts.tenants.get(tenant).name
        with speaking(arguments.language):
            title = digest_title(name, period, everything := Filters())
            digest = make_digest(parts.analytics, parts.gaps, tenant, period, everything, title=title)
    finally:
        parts.close()
    with speaking(arguments.language):
        if arguments.pdf is not None:
            if pdfs is None:
                raise PackagesMissing
            arguments.pdf.write_bytes(pdfs.write_report(digest))
            print(f"Written to {arguments.pdf}")
        if arguments.html is not None:
            arguments.html.write_text(digest.as_html(), "utf-8")
            print(f"Written to {arguments.html}")
        if arguments.html is None and arguments.pdf is None:
            print(digest.as_text(), end="")
    return 0


def _add_privacy(commands: Commands) -> None:
    command = add_command(commands, "privacy", "export or erase one person's data, and forget old texts")
    acts = command.add_subparsers(dest="act", required=True, metavar="ACT")
    export = acts.add_parser("export", help="write everything kept of a person as JSON")
    erase = acts.add_parser("erase", help="erase a person with all their texts, and print the receipt")
    for act in (export, erase):
        act.add_argument("email")
    export.add_argument("file", type=Path)
    erase.add_argument("--yes", action="store_true", help="do not ask; it cannot be undone")
    retention = acts.add_parser("retention", help="show or set after how many days texts are forgotten")
    retention.add_argument("--days", default="", help="a number, or never")
    forget = acts.add_parser("forget", help="forget older texts now; run it every night")
    for act in (export, erase, retention, forget):
        act.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    command.set_defaults(run=privacy)


def privacy(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.services import services
    from rag.storage.data_folder import whole_file

    parts = services()
    tenant = arguments.tenant or settings.tenant
    personal_data = parts.privacy
    try:
        if arguments.act == "export":
            with whole_file(arguments.file) as file:
                file.write(personal_data.export(tenant, arguments.email))
            print(f"Written to {arguments.file}")
        elif arguments.act == "erase":
            if not arguments.yes and not _agreed(arguments.email):
                return 1
            receipt = personal_data.erase(tenant, arguments.email)
            print(f"Receipt {receipt.id} of {receipt.erased_at:%Y-%m-%d %H:%M} UTC")
            for kind, rows in receipt.counts.items():
                print(f"  {kind.replace('_', ' '):16} {rows}")
            print("Backups made before still hold this person's data.", file=sys.stderr)
        elif arguments.act == "retention":
            if arguments.days:
                personal_data.set_retention_days(tenant, _days(arguments.days))
            days = personal_data.retention_days(tenant)
            print("Texts are kept." if days is None else f"Texts are forgotten after {counted(days, 'day')}.")
        else:
            for kind, rows in personal_data.forget_old(tenant).items():
                print(f"{kind.replace('_', ' '):16} {rows}")
    except NotFound:
        raise InvalidInput(f"No account of {tenant} has the address {arguments.email}.") from None
    finally:
        parts.close()
    return 0


def _days(text: str) -> int | None:
    if text == "never":
        return None
    if not text.isdigit():
        raise InvalidInput(f"{text!r} is not a number of days. Write a number, or never.")
    return int(text)


def _agreed(email: str) -> bool:
    try:
        return input(f"Erase {email} with all questions and answers? It cannot be undone. [y/N] ") == "y"
    except EOFError:
        print("\nThere is no terminal to ask in. Add --yes to continue without asking.")
        return False


POLL_SECONDS = 1.0
#: Entries are numbered when they are written and visible when their transaction ends, so some appear late. This many
#: numbers before the latest are read again.
LATE_NUMBERS = 500


def _add_audit(commands: Commands) -> None:
    parser = add_command(commands, "audit", "print the audit log as JSON lines")
    parser.add_argument("--tenant", default="", help="of this tenant only")
    parser.add_argument("--follow", action="store_true", help="print new entries from now on, until stopped")
    parser.set_defaults(run=audit)


def audit(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print all audit log entries, or follow new entries."""
    from rag.access.tenants import all_tenants
    from rag.services import connect_services

    parts = connect_services(settings)
    try:
        tenants = [tenant.id for tenant in all_tenants(parts.owner_conninfo)]
        if arguments.tenant and arguments.tenant not in tenants:
            raise NotFound(f"There is no tenant {arguments.tenant}.")
        tails = {t: Tail(parts.audit, t, from_now=arguments.follow) for t in tenants if arguments.tenant in ("", t)}
        while True:
            try:
                for tail in list(tails.values()):
                    for line in tail.lines():
                        print(line)
                sys.stdout.flush()
                if not arguments.follow:
                    return 0
                time.sleep(POLL_SECONDS)
                if not arguments.tenant:
                    for tenant in all_tenants(parts.owner_conninfo):
                        tails.setdefault(tenant.id, Tail(parts.audit, tenant.id))
            except DatabaseUnavailable as exc:
                if not arguments.follow:
                    raise
                print(exc.message, file=sys.stderr)
                time.sleep(POLL_SECONDS)
    finally:
        parts.close()


class Tail:
    """Follow a tenant's audit log; `from_now` skips existing entries."""

    def __init__(self, log: AuditLog, tenant_id: str, *, from_now: bool = False) -> None:
        self._log, self._tenant_id = log, tenant_id
        self._last = log.last(tenant_id) if from_now else 0
        self._seen: deque[int] = deque(maxlen=2 * LATE_NUMBERS)
        if from_now:
            self._seen.extend(entry.id for entry in log.after(tenant_id, self._last - LATE_NUMBERS))

    def lines(self) -> Iterator[str]:
        """Yield the entries added since the last call in JSON lines, oldest first."""
        while True:
            entries = self._log.after(self._tenant_id, max(self._last - LATE_NUMBERS, 0))
            fresh = [entry for entry in entries if entry.id not in self._seen]
            for entry in fresh:
                self._seen.append(entry.id)
                self._last = max(self._last, entry.id)
                yield entry.to_json(self._tenant_id)
            if not fresh:
                return
