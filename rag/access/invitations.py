"""Read the people to invite from what an administrator pastes, and write to them where a mail server is set."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.access.letters import can_send, make_letter, send_letters
from rag.errors import InvalidInput
from rag.settings import Settings
from rag.types import Role

__all__ = ["Invitee", "can_send", "people_from", "send_invitations"]

#: People in one go.
MOST_INVITED = 500
#: What the columns of a list may be called.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "email": ("email", "e-mail", "mail", "address", "email address", "e-mail address"),
    "name": ("name", "full name", "display name"),
    "role": ("role",),
    "group": ("group", "department", "team", "site"),
}
ROLE_WORDS = {role.value: role for role in Role} | {"administrator": Role.ADMIN, "user": Role.EMPLOYEE}
NAMED = re.compile(r"(?P<name>[^<>,;]*?)\s*<(?P<email>[^<>\s]+@[^<>\s]+)>")


@dataclass(frozen=True, kw_only=True)
class Invitee:
    """Somebody to invite. `role` and `group` are empty where the list says nothing of them."""

    email: str
    name: str = ""
    role: Role | None = None
    group: str = ""


def people_from(text: str) -> list[Invitee]:
    """Read people from a CSV list with a head, or from addresses by line, comma or semicolon: `Name <address>`.

    Each address counts once. Raises `InvalidInput` that names the line which cannot be read.
    """
    lines = [line for line in text.replace("\ufeff", "").splitlines() if line.strip()]
    if not lines:
        raise InvalidInput("Paste at least one e-mail address.")
    separator = next((mark for mark in ";\t" if mark in lines[0]), ",")
    head = [cell.strip().lower() for cell in next(csv.reader([lines[0]], delimiter=separator))]
    has_head = any(cell in COLUMNS["email"] for cell in head)
    found = _from_table(lines, head, separator) if has_head else _from_addresses(lines)
    people_by_address: dict[str, Invitee] = {}
    for person in found:
        people_by_address.setdefault(person.email.casefold(), person)
    people = list(people_by_address.values())
    if len(people) > MOST_INVITED:
        raise InvalidInput(f"Invite at most {MOST_INVITED} people in one go; this list has {len(people):,}.")
    return people


def _from_table(lines: Sequence[str], head: Sequence[str], separator: str) -> list[Invitee]:
    places = {
        field: next((place for place, cell in enumerate(head) if cell in names), -1) for field, names in COLUMNS.items()
    }
    people = []
    for number, row in enumerate(csv.reader(io.StringIO("\n".join(lines[1:])), delimiter=separator), start=2):
        values = {field: row[place].strip() if 0 <= place < len(row) else "" for field, place in places.items()}
        if "@" not in values["email"]:
            raise InvalidInput(f"Line {number} has no e-mail address.")
        role = values["role"].lower()
        if role and role not in ROLE_WORDS:
            raise InvalidInput(f"Line {number}: {values['role']} is no role. Use employee, manager or admin.")
        people.append(
            Invitee(email=values["email"], name=values["name"], role=ROLE_WORDS.get(role), group=values["group"])
        )
    return people


def _from_addresses(lines: Sequence[str]) -> list[Invitee]:
    people = []
    for number, line in enumerate(lines, start=1):
        for part in filter(None, (part.strip() for part in re.split(r"[,;\t]", line))):
            if found := NAMED.fullmatch(part):
                people.append(Invitee(email=found["email"], name=found["name"].strip(' "')))
            elif "@" in part and " " not in part:
                people.append(Invitee(email=part))
            else:
                raise InvalidInput(f"Line {number}: “{part[:80]}” is no e-mail address.")
    return people


# By e-mail


def send_invitations(settings: Settings, letters: Mapping[str, str], *, sender_name: str) -> dict[str, str]:
    """Send each address its link. Return why, by address, for those that were not taken."""
    made, failed = [], {}
    for address, link in letters.items():
        text = (
            f"{sender_name} has given you access to the HR Assistant, which answers questions from your company's "
            f"documents.\n\nChoose your password here within three days:\n{link}\n\nThe link works once."
        )
        try:
            letter = make_letter(settings, address, "Your access to the HR Assistant", text, sender_name=sender_name)
        except ValueError as exc:
            failed[address] = f"The mail server did not take it: {exc}"[:200]
        else:
            made.append(letter)
    return failed | send_letters(settings, made)
