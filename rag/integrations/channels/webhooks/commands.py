"""Manage webhooks on the command line: `webhook`."""

from __future__ import annotations

import argparse
from uuid import UUID

from rag.command_line import Commands, add_command
from rag.errors import InvalidInput
from rag.language import counted
from rag.settings import Settings


def add_parsers(commands: Commands) -> None:
    parser = add_command(commands, "webhook", "tell other programs of events, and list the deliveries")
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    listing = acts.add_parser("list", help="all webhooks with the outcomes of the last seven days")
    adding = acts.add_parser(
        "add", help="add an address that receives events; prints the secret of its signatures once"
    )
    adding.add_argument("name")
    adding.add_argument("address", help="such as https://example.com/hook")
    adding.add_argument(
        "--event", action="append", default=[], dest="events", metavar="KIND", help="all when not given"
    )
    deliveries = acts.add_parser("deliveries", help="deliveries of the last thirty days")
    deliveries.add_argument("webhook", nargs="?", default="", help="its id; all webhooks when not given")
    testing = acts.add_parser("test", help="send an event of the kind test")
    removing = acts.add_parser("remove", help="remove an address with its deliveries")
    for act in (testing, removing):
        act.add_argument("webhook", help="its id, as list prints it")
    for act in (listing, adding, deliveries, testing, removing):
        act.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    parser.set_defaults(run=webhook)


def webhook(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run the `webhook` command and print the result."""
    from rag.integrations.channels.webhooks.webhooks import webhooks_of
    from rag.services import connect_services, program_of

    named = _webhook_id(arguments.webhook) if getattr(arguments, "webhook", "") else None
    parts = connect_services(settings)
    try:
        caller = program_of(parts.tenants.get(arguments.tenant or settings.tenant).id)
        webhooks = webhooks_of(parts)
        if arguments.act == "add":
            new_hook, secret = webhooks.add(caller, arguments.name, arguments.address, arguments.events)
            print(f"{new_hook.id}  {new_hook.address}")
            print(f"Its secret, which is not shown again: {secret}")
        elif arguments.act == "remove" and named is not None:
            webhooks.remove(caller, named)
            print("Removed.")
        elif arguments.act == "test" and named is not None:
            webhooks.test(caller, named)
            print("A test is queued; “webhook deliveries” lists how it ended.")
        elif arguments.act == "deliveries":
            deliveries = webhooks.deliveries(caller, named)
            if not deliveries:
                print("Nothing has been delivered yet. Send a test: python -m rag webhook test WEBHOOK")
            for delivery in deliveries:
                when = f"{delivery.created_at:%Y-%m-%d %H:%M}"
                again = f", again at {delivery.next_at:%H:%M}" if delivery.next_at else ""
                print(
                    f"{when}  {delivery.kind:16} {delivery.status:9} "
                    f"{counted(delivery.attempts, 'attempt')}{again}  {delivery.answer}"
                )
        else:
            listed = webhooks.list(caller)
            if not listed:
                print("There is no webhook yet. Add one: python -m rag webhook add NAME ADDRESS")
            for hook in listed:
                state = "on " if hook.is_active else "off"
                counts = f"{hook.delivered} delivered, {hook.waiting} waiting, {hook.failed} failed"
                print(f"{hook.id}  {state}  {hook.name}  {hook.address}  {counts}")
    finally:
        parts.close()
    return 0


def _webhook_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as exc:
        raise InvalidInput(f"{text!r} is not the id of a webhook; “webhook list” prints them.") from exc
