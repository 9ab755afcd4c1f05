"""Write the digest of a week: `report`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rag.commands import Commands, add_command
from rag.settings import Settings


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    command = add_command(
        commands, "report", "write what happened in the last days", more="The days end with yesterday, in UTC."
    )
    command.add_argument("--days", type=int, default=7, help="how many, 7 by default")
    command.add_argument("--html", type=Path, default=None, metavar="FILE", help="write HTML there, to be mailed")
    command.add_argument("--pdf", type=Path, default=None, metavar="FILE", help="write a PDF there")
    command.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    command.set_defaults(run=report)


def report(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.errors import InvalidInput
    from rag.records.analytics import Period
    from rag.records.digest import make_digest
    from rag.services import services

    if not 1 <= arguments.days <= 366:
        raise InvalidInput("Choose between 1 and 366 days.")
    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        period = Period.of_days(arguments.days, until=datetime.now(UTC).date() - timedelta(days=1))
        name = parts.tenants.get(tenant).name
        digest = make_digest(parts.analytics, parts.gaps, tenant, tenant, name, period)
    finally:
        parts.close()
    if arguments.pdf is not None:
        from rag.records.report_pdf import digest_pdf

        arguments.pdf.write_bytes(digest_pdf(digest))
        print(f"Written to {arguments.pdf}")
    if arguments.html is not None:
        arguments.html.write_text(digest.as_html(), "utf-8")
        print(f"Written to {arguments.html}")
    if arguments.html is None and arguments.pdf is None:
        print(digest.as_text(), end="")
    return 0
