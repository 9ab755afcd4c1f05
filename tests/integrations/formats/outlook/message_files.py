"""Make Outlook messages (.msg): a compound file with the properties that a test needs."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from tests.ingestion.compound_files import Tree, compound_file

CLASS, SUBJECT, SENT, HEADS, SENDER, SENDER_ADDRESS = 0x1A, 0x37, 0x39, 0x7D, 0xC1A, 0x5D01
PLAIN, HTML, RTF, MESSAGE_SET, TEXT_SET = 0x1000, 0x1013, 0x1009, 0x3FFD, 0x3FDE
#: A property: text, bytes (text in a set of letters where the number ends in 0x1E), a number, or a time.
Value: TypeAlias = "str | bytes | int | datetime"


def properties(values: Mapping[int, Value], head: bytes, *, said: Mapping[int, int] | None = None) -> Tree:
    """Make the streams of properties by number. Bytes have the type of binary ones, or 0x1E where `said` is -1."""
    tree: Tree = {}
    listed = head
    for number, value in values.items():
        flags = 6
        if isinstance(value, int):
            listed += struct.pack("<HHIQ", 3, number, flags, value)
            continue
        if isinstance(value, datetime):
            ticks = int((value - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10**7
            listed += struct.pack("<HHIQ", 0x40, number, flags, ticks)
            continue
        is_narrow = isinstance(value, bytes) and (said or {}).get(number) == -1
        kind = 0x1F if isinstance(value, str) else 0x1E if is_narrow else 0x102
        content = value.encode("utf-16-le") if isinstance(value, str) else value
        length = len(content) + {0x1F: 2, 0x1E: 1, 0x102: 0}[kind]
        if said and said.get(number, -1) >= 0:
            length = said[number]
        listed += struct.pack("<HHIQ", kind, number, flags, length)
        tree[f"__substg1.0_{number:04X}{kind:04X}"] = content
    tree["__properties_version1.0"] = listed
    return tree


def attachment(name: str = "", content: bytes = b"", kind: str = "", *, mail: Tree | None = None) -> Tree:
    """Make an attachment: a file, or a message."""
    values: dict[int, Value] = {0x3705: 5 if mail else 1}
    values |= {number: text for number, text in ((0x3707, name), (0x370E, kind)) if text}
    if mail is None:
        values[0x3701] = content
    tree = properties(values, bytes(8))
    if mail is not None:
        tree["__substg1.0_3701000D"] = mail
    return tree


def recipient(name: str, address: str, kind: int = 1) -> Tree:
    return properties({0x3001: name, 0x39FE: address, 0xC15: kind}, bytes(8))


def message(
    values: Mapping[int, Value] | None = None,
    *,
    attachments: Sequence[Tree] = (),
    recipients: Sequence[Tree] = (),
    counted: int = -1,
    is_within: bool = False,
    said: Mapping[int, int] | None = None,
) -> Tree:
    """Make the tree of a message; `is_within` another one. `counted` attachments are told."""
    counted = len(attachments) if counted < 0 else counted
    head = struct.pack("<8x4I", len(recipients), len(attachments), len(recipients), counted)
    usual: dict[int, Value] = {CLASS: "IPM.Note", SUBJECT: "Leave policy", PLAIN: "Everyone has 25 days."}
    tree = properties({**usual, **(values or {})}, head if is_within else head + bytes(8), said=said)
    for number, each in enumerate(attachments):
        tree[f"__attach_version1.0_#{number:08X}"] = each
    for number, each in enumerate(recipients):
        tree[f"__recip_version1.0_#{number:08X}"] = each
    return tree


def msg_file(values: Mapping[int, Value] | None = None, *, attachments: Sequence[Tree] = ()) -> bytes:
    return compound_file(message(values, attachments=attachments))


def packed_rtf(text: bytes) -> bytes:
    from compressed_rtf import compress  # of the integration

    packed: bytes = compress(text)
    return packed
