"""Parse emails. Header fields stay encoded, and long fields are cut, because Python's parsers are slow on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email import message_from_bytes
from email.message import Message
from email.parser import BytesHeaderParser
from email.policy import Compat32

LONGEST_FIELD = 20_000
FOLD = re.compile(r"[\r\n]+(?=[ \t])|[\r\n]+\Z")


class _Policy(Compat32):
    """An email parser policy which leaves header fields encoded, and truncates long fields."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(list(sourcelines))
        return name, FOLD.sub("", value)[:LONGEST_FIELD]

    def header_fetch_parse(self, name: str, value: str) -> str:
        return value


class ConvertedMail(Message):
    """An email converted from a different format. `notes` are warnings about unread parts."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []


def parsed_mail(content: bytes) -> Message:
    """Parse an email with all parts. Raises `RecursionError` for very deep nesting."""
    return message_from_bytes(content, policy=_Policy())


def parsed_head(content: bytes) -> Message:
    """Parse only an email's header."""
    return BytesHeaderParser(policy=_Policy()).parsebytes(content)
