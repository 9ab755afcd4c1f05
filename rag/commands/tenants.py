"""Make, suspend, export and delete tenants: `python -m rag tenant`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rag.commands import Commands, add_command
from rag.errors import InvalidInput
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.access.tenants import Tenants

DOMAINS_NEEDED = (
    "At Supabase an e-mail address belongs to one person of all companies, and the first company that invites it has "
    "it. So name the domains of this company's addresses: --domain example.com"
)


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = add_command(commands, "tenant", "make, suspend, export or delete a tenant")
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    for act, text in (
        ("list", "all tenants"),
        ("create", "add a tenant and print the link of its first administrator"),
        ("domains", "let it invite people with e-mail addresses of these domains only"),
        ("suspend", "sign its people out and let nothing be processed; nothing is lost"),
        ("resume", "end a suspension"),
        ("export", "write everything of a tenant into a ZIP"),
        ("delete", "delete everything of a suspended tenant and print the proof"),
    ):
        command = acts.add_parser(act, help=text)
        if act != "list":
            command.add_argument("tenant")
        if act == "create":
            command.add_argument("--name", default="", help="as people see it")
            command.add_argument(
                "--domain", action="append", default=[], dest="domains", metavar="DOMAIN",
                help="of its people's e-mail addresses, such as example.com; may be given again",
            )  # fmt: skip
        if act == "domains":
            command.add_argument("domains", nargs="*", metavar="DOMAIN", help="such as example.com; none: any")
        if act == "export":
            command.add_argument("path", type=Path, help="the ZIP to write")
        if act == "delete":
            command.add_argument("--confirm", default="", metavar="TENANT", help="the tenant's id once more")
    parser.set_defaults(run=tenant)


def tenant(arguments: argparse.Namespace, settings: Settings) -> int:
    """Carry out the command and print the result."""
    if arguments.act == "create" and settings.sign_in == "supabase" and not arguments.domains:
        raise InvalidInput(DOMAINS_NEEDED)
    from rag.access.tenants import all_tenants
    from rag.services import connect_services

    parts = connect_services(settings)
    try:
        tenants, tenant_id = parts.tenants, getattr(arguments, "tenant", "")
        if arguments.act == "list":
            known = all_tenants(parts.owner_conninfo)
            if not known:
                print("There is no tenant yet. Make one: python -m rag tenant create TENANT")
            for found in known:
                state = f"suspended since {found.suspended_at:%Y-%m-%d}" if found.suspended_at else "active"
                print(f"{found.id:24} {found.name:32} {state}")
        elif arguments.act == "create":
            tenants.create(tenant_id, arguments.name, arguments.domains)
            print(f"{tenant_id} is there. This link creates its first administrator, once:")
            print(f"\n  {settings.own_address}/welcome?token={parts.accounts.first_admin_link(tenant_id)}\n")
        elif arguments.act == "domains":
            domains = tenants.set_domains(tenant_id, arguments.domains)
            print(f"{tenant_id} invites people at {', '.join(domains) or 'any domain'}.")
        elif arguments.act == "suspend":
            tenants.suspend(tenant_id)
            print(f"{tenant_id} is suspended. Its people are signed out; nothing of it is processed.")
        elif arguments.act == "resume":
            tenants.resume(tenant_id)
            print(f"{tenant_id} is active again.")
        elif arguments.act == "export":
            rows = tenants.export(tenant_id, arguments.path)
            print(f"{arguments.path}: {sum(rows.values()):,} rows of {len(rows)} tables, and the originals.")
        else:
            return _delete(tenants, tenant_id, arguments.confirm)
    finally:
        parts.close()
    return 0


def _delete(tenants: Tenants, tenant_id: str, confirmed: str) -> int:
    if confirmed != tenant_id:
        raise InvalidInput(f"This cannot be undone. To delete everything of {tenant_id}, add: --confirm {tenant_id}")
    proof = tenants.delete(tenant_id)
    print(f"{tenant_id} is deleted. Rows before and after:")
    for table, before in proof.rows_before.items():
        print(f"  {table:24} {before:>10,} {proof.rows_after.get(table, 0):>10,}")
    print(f"  {'files':24} {proof.files_before:>10,} {proof.files_after:>10,}")
    if not proof.is_complete:
        print("Not everything is gone. Run the same command again.", file=sys.stderr)
        return 1
    print("Nothing is left. These counts are kept in tenant_deletions.")
    return 0
