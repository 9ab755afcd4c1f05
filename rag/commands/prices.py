"""List and set what models cost, as listed and as a tenant pays itself: `python -m rag prices`."""

from __future__ import annotations

import argparse
from datetime import date

from rag.commands import Commands, add_command
from rag.errors import InvalidInput
from rag.settings import Settings

LISTED = "list"


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = add_command(commands, "prices", "show what models cost, and set what a tenant pays itself")
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    listing = acts.add_parser("list", help="the prices of the models in use, and the tenant's own")
    setting = acts.add_parser("set", help="have a price of the tenant's own count from a day on")
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
    """List the prices, or set one."""
    from rag.services import connect_services

    day = _day(arguments.valid_from) if arguments.act == "set" else None
    parts = connect_services(settings)
    tenant_id = arguments.tenant or settings.tenant
    try:
        parts.tenants.get(tenant_id)
        if arguments.act == "set":
            price = None if arguments.price == LISTED else arguments.price
            parts.prices.set(tenant_id, arguments.model, arguments.unit, price, day)
        known = parts.prices.list(tenant_id)
        if not known:
            print("No model is in use yet. A price can be set before: python -m rag prices set MODEL UNIT PRICE")
        for found in known:
            if arguments.act == "set" and found.model != arguments.model.strip():
                continue
            listed = f"{found.listed.normalize():f} ({found.source})" if found.listed is not None else "not listed"
            own = f"own {found.own.normalize():f} since {found.own_since}" if found.own is not None else ""
            planned = ", ".join(
                f"{LISTED if change.price is None else f'{change.price.normalize():f}'} from {change.valid_from}"
                for change in found.planned
            )
            print(f"{found.model:32} {found.unit:18} {'; '.join(part for part in (listed, own, planned) if part)}")
    finally:
        parts.close()
    return 0


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as exc:
        raise InvalidInput(f"{text!r} is no day. Write it as YYYY-MM-DD.") from exc
