"""Recognise file formats by their bytes."""

from __future__ import annotations

import re
from uuid import UUID

#: The start of an HTML file, after blank space and comments. A comment ends at its first "-->" and is not retried
#: (`(?>`, `*+`): forty short comments would take hours.
HTML_BEGINNING = re.compile(
    rb"\s*+(?:(?><!--.{0,2000}?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|div|p|table)\b", re.I | re.S
)
#: The bytes looked at, from the start.
LOOKED_AT = 8192

#: The start of an archive, used by Office documents, and of a compound file, used by Office before 2007.
ZIP, COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: The file list in an archive ends within this number of bytes from the end.
LONGEST_ZIP_END = 65_557


def names_in_zip(content: bytes) -> bytes:
    """Return a ZIP archive's file list (central directory) in raw bytes, or b"" for other files."""
    place = content.rfind(b"PK\x05\x06", max(len(content) - LONGEST_ZIP_END, 0)) if content.startswith(ZIP) else -1
    if place < 0 or len(content) < place + 20:
        return b""
    size = int.from_bytes(content[place + 12 : place + 16], "little")
    return content[max(place - size, 0) : place]


#: The first field in a mail's head, and the end of the head.
FIELD, HEAD_END = re.compile(rb"[!-9;-~]{1,60}:"), re.compile(rb"\r?\n\r?\n|\r\r")


def looks_like_mail(content: bytes) -> bool:
    """Whether the bytes start with email headers: a sender, and a subject or a date."""
    head = HEAD_END.split(content[:LOOKED_AT], maxsplit=1)[0]
    names = {line.partition(b":")[0].lower() for line in head.splitlines()}
    return FIELD.match(head) is not None and b"from" in names and bool({b"subject", b"date"} & names)


#: The stream with the list of properties in an Outlook message, and the classes in the root entry: message, template,
#: and zeros from programs without a class.
MESSAGE_PROPERTIES = "__properties_version1.0".encode("utf-16-le")
MESSAGE_CLASSES = tuple(
    UUID(name).bytes_le
    for name in (
        "00020d0b-0000-0000-c000-000000000046",
        "0006f046-0000-0000-c000-000000000046",
        "00000000-0000-0000-0000-000000000000",
    )
)


def is_outlook(content: bytes) -> bool:
    """Whether the bytes are an Outlook message. False for other compound files, even if they contain messages."""
    if not content.startswith(COMPOUND) or MESSAGE_PROPERTIES not in content:
        return False
    # The first entry in the directory describes the file.
    shift, sector = int.from_bytes(content[30:32], "little"), int.from_bytes(content[48:52], "little")
    place = (sector + 1) << min(shift, 12)
    return content[place + 80 : place + 96] in MESSAGE_CLASSES
