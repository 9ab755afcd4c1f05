"""Send e-mail if a mail server and a sender are set, and read the lists of people to invite."""

from __future__ import annotations

import codecs
import csv
import io
import re
import smtplib
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from rag.access.account_rows import MAXIMUM_EMAIL_CHARACTERS
from rag.errors import InvalidInput
from rag.settings import Settings
from rag.types import Role

SMTP_SECONDS = 20


def can_send(settings: Settings) -> bool:
    """Whether the settings have a mail server and a sender."""
    return bool(settings.smtp_url and settings.mail_from)


def make_email(
    settings: Settings, address: str, subject: str, text: str, *, sender_name: str, html: str = ""
) -> EmailMessage:
    """Build an e-mail to a single address. Raises `ValueError` for an invalid address."""
    message = EmailMessage()
    message["Subject"] = " ".join(subject.split())
    message["From"] = Address(display_name=sender_name, addr_spec=settings.mail_from)
    message["To"] = Address(addr_spec=address)
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    return message


def send_emails(settings: Settings, messages: Iterable[EmailMessage]) -> dict[str, str]:
    """Send e-mails over a single connection. Return error messages by address; empty if all were accepted."""
    waiting = {str(message["To"]): message for message in messages}
    failed: dict[str, str] = {}
    try:
        with _connect(settings) as server:
            for address, message in waiting.items():
                try:
                    server.send_message(message)
                except (smtplib.SMTPException, ValueError) as exc:
                    failed[address] = f"The mail server did not take it: {exc}"[:200]
    except (smtplib.SMTPException, OSError, InvalidInput) as exc:
        reason = f"The mail server did not answer: {exc}"[:200]
        failed |= {address: reason for address in waiting if address not in failed}
    return failed


def _connect(settings: Settings) -> smtplib.SMTP:
    parts = urlsplit(settings.smtp_url)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise InvalidInput("RAG_SMTP_URL has to look like smtp://name:password@mail.example.com:587.")
    context = ssl.create_default_context()
    if parts.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            parts.hostname, parts.port or 465, timeout=SMTP_SECONDS, context=context
        )
    else:
        server = smtplib.SMTP(parts.hostname, parts.port or 587, timeout=SMTP_SECONDS)
        server.ehlo()
        if server.has_extn("starttls"):
            server.starttls(context=context)
        elif parts.password:
            server.close()
            raise InvalidInput("The mail server offers no encryption, so the password is not sent to it.")
    if parts.username:
        server.login(unquote(parts.username), unquote(parts.password or ""))
    return server


#: People in one go.
MOST_INVITED = 500
#: Accepted column names in a list.
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
    """A person to invite. `role` and `group` are empty if missing in the list."""

    email: str
    name: str = ""
    role: Role | None = None
    group: str = ""


def list_text(content: bytes) -> str:
    """Decode an uploaded address list from UTF-8, UTF-16 (with a byte order mark) or Windows-1252."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def people_from(text: str) -> list[Invitee]:
    """Read people to invite from a CSV list with a header, or from addresses like `Name <address>`.

    Addresses are separated by line, comma or semicolon; duplicates are dropped. Raises `InvalidInput` naming an
    unreadable line.
    """
    lines = [line for line in text.replace("\ufeff", "").splitlines() if line.strip()]
    if not lines:
        raise InvalidInput("Paste at least one e-mail address.")
    separator = next((mark for mark in ";\t" if mark in lines[0]), ",")
    try:
        head = [cell.strip().lower() for cell in next(csv.reader([lines[0]], delimiter=separator))]
        has_head = any(cell in COLUMNS["email"] for cell in head)
        invitees = _from_table(lines, head, separator) if has_head else _from_addresses(lines)
    except csv.Error:  # a cell longer than 131,072 characters
        number = 1 + next((place for place, line in enumerate(lines) if len(line) > MAXIMUM_EMAIL_CHARACTERS), 0)
        raise InvalidInput(f"Line {number} has no e-mail address.") from None
    people_by_address: dict[str, Invitee] = {}
    for person in invitees:
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
            raise InvalidInput(f"Line {number}: {values['role']} is not a role. Use employee, manager or admin.")
        people.append(
            Invitee(email=values["email"], name=values["name"], role=ROLE_WORDS.get(role), group=values["group"])
        )
    return people


def _from_addresses(lines: Sequence[str]) -> list[Invitee]:
    people = []
    for number, line in enumerate(lines, start=1):
        for part in filter(None, (part.strip() for part in re.split(r"[,;\t]", line))):
            if match := NAMED.fullmatch(part):
                people.append(Invitee(email=match["email"], name=match["name"].strip(' "')))
            elif "@" in part and " " not in part:
                people.append(Invitee(email=part))
            else:
                raise InvalidInput(f"Line {number}: “{part[:80]}” is not an e-mail address.")
    return people


def send_invitations(settings: Settings, links: Mapping[str, str], *, sender_name: str) -> dict[str, str]:
    """E-mail an invitation to each address. `links` maps addresses to links. Returns the error messages by address."""
    messages, failed = [], {}
    for address, link in links.items():
        text = (
            f"{sender_name} has given you access to the HR Assistant, which answers questions from your company's "
            f"documents.\n\nChoose your password here within three days:\n{link}\n\nThe link works once."
        )
        try:
            message = make_email(settings, address, "Your access to the HR Assistant", text, sender_name=sender_name)
        except ValueError as exc:
            failed[address] = f"The mail server did not take it: {exc}"[:200]
        else:
            messages.append(message)
    return failed | send_emails(settings, messages)
