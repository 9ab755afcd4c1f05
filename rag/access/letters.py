"""Send e-mail where a mail server and a sender are set."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterable
from email.headerregistry import Address
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from rag.errors import InvalidInput
from rag.settings import Settings

SMTP_SECONDS = 20


def can_send(settings: Settings) -> bool:
    """Return whether a mail server and a sender are set."""
    return bool(settings.smtp_url and settings.mail_from)


def make_letter(
    settings: Settings, address: str, subject: str, text: str, *, sender_name: str, html: str = ""
) -> EmailMessage:
    """Return a letter to one address. Raises `ValueError` for an address that is none."""
    letter = EmailMessage()
    letter["Subject"] = " ".join(subject.split())
    letter["From"] = Address(display_name=sender_name, addr_spec=settings.mail_from)
    letter["To"] = Address(addr_spec=address)
    letter.set_content(text)
    if html:
        letter.add_alternative(html, subtype="html")
    return letter


def send_letters(settings: Settings, letters: Iterable[EmailMessage]) -> dict[str, str]:
    """Send letters over one connection. Return why, by address, for those that were not taken."""
    waiting = {str(letter["To"]): letter for letter in letters}
    failed: dict[str, str] = {}
    try:
        with _connected(settings) as server:
            for address, letter in waiting.items():
                try:
                    server.send_message(letter)
                except (smtplib.SMTPException, ValueError) as exc:
                    failed[address] = f"The mail server did not take it: {exc}"[:200]
    except (smtplib.SMTPException, OSError, InvalidInput) as exc:
        reason = f"The mail server did not answer: {exc}"[:200]
        failed |= {address: reason for address in waiting if address not in failed}
    return failed


def _connected(settings: Settings) -> smtplib.SMTP:
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
