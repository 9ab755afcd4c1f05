"""Manage tenants and their prices: `tenant` and `prices`."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command
from rag.errors import InvalidInput
from rag.language import counted
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.access.tenants import Tenants

DOMAINS_NEEDED = (
    "At Supabase an e-mail address belongs to one person of all companies, and the first company that invites it has "
    "it. So name the domains of this company's addresses: --domain example.com"
)


def add_parsers(commands: Commands) -> None:
    _add_tenant(commands)
    _add_prices(commands)


def _add_tenant(commands: Commands) -> None:
    parser = add_command(commands, "tenant", "make, suspend, export or delete a tenant")
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    for act, text in (
        ("list", "all tenants"),
        ("create", "add a tenant and print the link of its first administrator"),
        ("domains", "let it invite people with e-mail addresses of these domains only"),
        ("password-link", "print a link that sets a person's password once, where no administrator can sign in"),
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
        if act == "password-link":
            command.add_argument("email", help="the person's e-mail address, such as an administrator's")
        if act == "export":
            command.add_argument("path", type=Path, help="the ZIP to write")
        if act == "delete":
            command.add_argument("--confirm", default="", metavar="TENANT", help="the tenant's id once more")
    parser.set_defaults(run=tenant)


def tenant(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run the `tenant` command and print the result."""
    if arguments.act == "create" and settings.sign_in == "supabase" and not arguments.domains:
        raise InvalidInput(DOMAINS_NEEDED)
    from rag.access.tenants import all_tenants
    from rag.services import connect_services, program_of

    parts = connect_services(settings)
    try:
        tenants, tenant_id = parts.tenants, getattr(arguments, "tenant", "")
        if arguments.act == "list":
            all_rows = all_tenants(parts.owner_conninfo)
            if not all_rows:
                print("There is no tenant yet. Make one: python -m rag tenant create TENANT")
            for row in all_rows:
                state = f"suspended since {row.suspended_at:%Y-%m-%d}" if row.suspended_at else "active"
                print(f"{row.id:24} {row.name:32} {state}")
        elif arguments.act == "create":
            tenants.create(tenant_id, arguments.name, arguments.domains)
            print(f"{tenant_id} is created. This link creates its first administrator, once:")
            print(f"\n  {settings.own_address}/welcome?token={parts.accounts.first_admin_link(tenant_id)}\n")
        elif arguments.act == "domains":
            domains = tenants.set_domains(tenant_id, arguments.domains)
            print(f"{tenant_id} invites people at {', '.join(domains) or 'any domain'}.")
        elif arguments.act == "password-link":
            parts.require_tenant(tenant_id)
            path = parts.accounts.operators_password_link(program_of(tenant_id), arguments.email)
            print(f"This link sets the password of {arguments.email}, once, for three days. Earlier links are void.")
            print(f"\n  {settings.own_address}{path}\n")
        elif arguments.act == "suspend":
            tenants.suspend(tenant_id)
            print(f"{tenant_id} is suspended. Its people are signed out; nothing of it is processed.")
        elif arguments.act == "resume":
            tenants.resume(tenant_id)
            print(f"{tenant_id} is active again.")
        elif arguments.act == "export":
            rows = tenants.export(tenant_id, arguments.path)
            counts = f"{counted(sum(rows.values()), 'row')} of {counted(len(rows), 'table')}"
            print(f"{arguments.path}: {counts}, and the originals.")
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
        print("Not everything is deleted. Run the same command again.", file=sys.stderr)
        return 1
    print("Nothing is left. These counts are kept in tenant_deletions.")
    return 0


LISTED = "list"


def _add_prices(commands: Commands) -> None:
    parser = add_command(commands, "prices", "show what models cost, and set what a tenant pays itself")
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    listing = acts.add_parser("list", help="the prices of the models in use, and the tenant's own")
    setting = acts.add_parser("set", help="set a price of the tenant's own from a day on")
    setting.add_argument("model", help="as its provider names it, such as gpt-4o")
    setting.add_argument(
        "unit", help="input_mtok, cached_input_mtok, output_mtok (a million tokens), search_unit or page"
    )
    setting.add_argument("price", help=f"US dollars, such as 2.50; {LISTED}: the listed price again")
    setting.add_argument(
        "--from", dest="valid_from", default="", metavar="DAY", help="YYYY-MM-DD; today when not given"
    )
    for act in (listing, setting):
        act.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    parser.set_defaults(run=prices)


def prices(arguments: argparse.Namespace, settings: Settings) -> int:
    """List prices, or set a price."""
    from rag.money.price_list import is_listed
    from rag.services import connect_services

    day = _day(arguments.valid_from) if arguments.act == "set" else None
    parts = connect_services(settings)
    tenant_id = arguments.tenant or settings.tenant
    try:
        parts.require_tenant(tenant_id)
        if arguments.act == "set":
            price = None if arguments.price == LISTED else arguments.price
            parts.prices.set(tenant_id, arguments.model, arguments.unit, price, day)
            if not is_listed(arguments.model.strip()):
                note = f"No price list has {arguments.model.strip()!r}: check that its provider names it so."
                print(note, file=sys.stderr)
        price_list = parts.prices.list(tenant_id)
        if not price_list:
            print("No model is in use yet. You can still set a price: python -m rag prices set MODEL UNIT PRICE")
        for row in price_list:
            if arguments.act == "set" and row.model != arguments.model.strip():
                continue
            listed = f"{row.listed.normalize():f} ({row.source})" if row.listed is not None else "not listed"
            own_price = f"own {row.own.normalize():f} since {row.own_since}" if row.own is not None else ""
            planned = ", ".join(
                f"{LISTED if change.price is None else f'{change.price.normalize():f}'} from {change.valid_from}"
                for change in row.planned
            )
            print(f"{row.model:32} {row.unit:18} {'; '.join(part for part in (listed, own_price, planned) if part)}")
    finally:
        parts.close()
    return 0


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as exc:
        raise InvalidInput(f"{text!r} is not a day. Write it as YYYY-MM-DD.") from exc
