"""Make compound files, the format of Office before 2007, of Outlook messages and of Hangul documents."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

#: Names with the bytes of a stream, or with what a storage holds.
Tree: TypeAlias = "dict[str, bytes | Tree]"
SECTOR, SMALL, CUTOFF = 512, 64, 4096
END, FREE, IS_TABLE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
MESSAGE_CLASS = bytes.fromhex("0b0d020000000000c000000000000046")


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
