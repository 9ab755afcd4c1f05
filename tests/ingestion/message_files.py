"""Make Outlook messages (.msg): a compound file with the properties that a test needs."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from compressed_rtf import compress

#: Names with the bytes of a stream, or with what a storage holds.
Tree: TypeAlias = "dict[str, bytes | Tree]"
SECTOR, SMALL, CUTOFF = 512, 64, 4096
END, FREE, IS_TABLE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
MESSAGE_CLASS = bytes.fromhex("0b0d020000000000c000000000000046")
CLASS, SUBJECT, SENT, HEADS, SENDER, SENDER_ADDRESS = 0x1A, 0x37, 0x39, 0x7D, 0xC1A, 0x5D01
PLAIN, HTML, RTF, MESSAGE_SET, TEXT_SET = 0x1000, 0x1013, 0x1009, 0x3FFD, 0x3FDE
#: A property: text, bytes (text in a set of letters where the number ends in 0x1E), a number, or a time.
Value: TypeAlias = "str | bytes | int | datetime"


def compound_file(tree: Tree, *, kind: bytes = MESSAGE_CLASS) -> bytes:
    """Write a compound file of version 3, of at most 7 MB."""
    sectors: list[bytes] = []
    table: list[int] = []
    small = bytearray()
    small_table: list[int] = []
    entries: list[bytes] = [b""]

    def place(content: bytes) -> int:
        start, count = len(sectors), -(-len(content) // SECTOR)
        sectors.extend(content[at : at + SECTOR].ljust(SECTOR, b"\0") for at in range(0, len(content), SECTOR))
        table.extend([*range(start + 1, start + count), END] if count else [])
        return start if count else END

    def place_small(content: bytes) -> int:
        start, count = len(small_table), -(-len(content) // SMALL)
        small.extend(content.ljust(count * SMALL, b"\0"))
        small_table.extend([*range(start + 1, start + count), END] if count else [])
        return start if count else END

    def entry(name: str, sort: int, links: Sequence[int], start: int, size: int, kind: bytes = bytes(16)) -> bytes:
        text = name.encode("utf-16-le") + b"\0\0"
        return struct.pack("<64sHBB3I16s4xQQIQ", text, len(text), sort, 1, *links, kind, 0, 0, start, size)

    def add(folder: Tree) -> int:
        """Write the entries of a storage as a balanced tree; return its top."""
        names = sorted(folder, key=lambda name: (len(name), name.upper()))

        def top(low: int, high: int) -> int:
            if low >= high:
                return FREE
            middle = (low + high) // 2
            number, name = len(entries), names[middle]
            entries.append(b"")
            links, content = [top(low, middle), top(middle + 1, high)], folder[name]
            if isinstance(content, dict):
                entries[number] = entry(name, 1, [*links, add(content)], 0, 0)
            else:
                start = place_small(content) if len(content) < CUTOFF else place(content)
                entries[number] = entry(name, 2, [*links, FREE], start, len(content))
            return number

        return top(0, len(names))

    first = add(tree)
    entries[0] = entry("Root Entry", 5, [FREE, FREE, first], place(bytes(small)), len(small), kind)
    listing = place(b"".join(entries))
    small_start = place(struct.pack(f"<{len(small_table)}I", *small_table).ljust(SECTOR, b"\xff"))
    small_count = len(sectors) - small_start
    count = -(-len(table) // 127)
    begin = len(sectors)
    table += [IS_TABLE] * count
    packed = struct.pack(f"<{len(table)}I", *table).ljust(count * SECTOR, b"\xff")
    head = struct.pack(
        "<8s16xHHHHH6xII I I I I I I I".replace(" ", ""),
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, count, listing, 0, CUTOFF, small_start,
        small_count, END, 0,
    )  # fmt: skip
    places = [*range(begin, begin + count)]
    head += struct.pack("<109I", *places, *[FREE] * (109 - count))
    return head + b"".join(sectors) + packed


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
    packed: bytes = compress(text)
    return packed
