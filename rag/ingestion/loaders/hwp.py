"""Load documents from Hangul (.hwp, .hwpx), the word processor in Korean offices, as Markdown.

The package unhwp reads them. Text in a .hwpx file which unhwp would skip is first moved into plain paragraphs
(`hwpx`). All letters in the file are compared with the result, and the page reports the number of missing letters.
"""

from __future__ import annotations

import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from olefile import OleFileIO

from rag.errors import FileDamaged, FileKindUnknown, FileProtected
from rag.ingestion.loaders import COMPOUND, DEFAULT_OPTIONS, ZIP, CheckedFile, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.hwpx import UNREAD, flattened
from rag.ingestion.loaders.markdown import load_markdown
from rag.ingestion.loaders.office_package import guarded, require_unpacked
from rag.ingestion.loaders.page_text import letters_in

try:
    import unhwp
except (ImportError, OSError):  # the package has no files for Linux on ARM
    unhwp = None

#: A record in a .hwp file starts with tag, level and size in 10, 10 and 12 bits; for size 4095, the size follows in 32
#: bits.
TAG, SIZE, LONG = 0x3FF, 20, 0xFFF
PARAGRAPH_TEXT = 67
#: Characters below 32 are controls: these take one place in the text, all others eight.
SHORT_CONTROLS, CONTROL_WIDTH = frozenset({0, 10, 13, *range(24, 32)}), 8
#: Bits of the properties in a file's header.
PACKED, LOCKED = 1, 4

PICTURE = re.compile(r"!\[[^\]\n]*\]\(assets/[^)\n]*\)")
#: Marks unhwp writes for bold and italic letters, and before a character Markdown would read as a mark.
EMPHASIS = re.compile(r"(?<!\\)\*+")
ESCAPED = re.compile(r"\\([^\w\s#>|~]|_)|(?<=.)\\([#>])")
#: unhwp turns every paragraph starting with an article number into a heading.
LONGEST_HEADING = 80
NO_HEADING = re.compile(rf"#+ (?=.*[.!?]$|.{{{LONGEST_HEADING}}})")
EMPTY_TABLE = re.compile(r"^\|[\s|]*\|\n\|[ :|-]+\|\n(?:\|[\s|]*\|(?:\n|\Z))*", re.MULTILINE)


def load_hwp(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a document as a single page, with the headings as sections.

    Raises `FileProtected`, `FileTooLarge`, `FileDamaged`, and `FileKindUnknown` on machines without unhwp.
    """
    if content.startswith(ZIP):
        require_unpacked(content, options.limits)
    return guarded(lambda: _loaded(content))


def check_hwp(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check a document by reading it, with the errors of `load_hwp`."""
    load_hwp(content, options)
    return CheckedFile(page_count=1)


def _loaded(content: bytes) -> ExtractedDocument:
    if unhwp is None:
        raise FileKindUnknown(
            "Documents of Hangul cannot be read on this machine. Save this one as PDF and upload that."
        )
    unread: Counter[str] = Counter()
    letters = ""
    if content.startswith(ZIP):
        content, letters, unread = flattened(content)
    markdown, title, author = _read(content)
    if content.startswith(COMPOUND):  # not Hangul 3.0 to 97
        letters = _letters(content)
    pictures = PICTURE.findall(markdown)
    lines = EMPTY_TABLE.sub("", PICTURE.sub("", markdown)).split("\n")
    unread["pictures"] = max(unread["pictures"], len(pictures))
    unread["text"] = (Counter(letters_in(letters)) - Counter(letters_in(markdown))).total()
    read = load_markdown("\n".join(map(_without_marks, lines)).encode())
    (page,) = read.pages
    warnings = [
        sentences[unread[kind] > 1].format(count=f"{unread[kind]:,}")
        for kind, sentences in UNREAD.items()
        if unread[kind]
    ]
    return replace(read, pages=(replace(page, warnings=(*page.warnings, *warnings)),), title=title, author=author)


def _without_marks(line: str) -> str:
    line = ESCAPED.sub(r"\1\2", EMPHASIS.sub("", line))
    is_row = line.startswith("|")
    return line if is_row else NO_HEADING.sub("", line.replace("\\|", "|"), count=1)


def _read(content: bytes) -> tuple[str, str, str]:
    """Return a document's Markdown, title and author."""
    try:
        with unhwp.parse_bytes(content, render_options=unhwp.RenderOptions(table_fallback="html")) as opened:
            return opened.markdown, opened.title or "", opened.author or ""
    except unhwp.UnhwpError as exc:
        if exc.kind == unhwp.ErrorKind.ENCRYPTED:
            raise FileProtected from exc
        raise FileDamaged from exc


def _letters(content: bytes) -> str:
    """Return the text of all paragraphs in a .hwp file, in no order. Raises `FileDamaged` if the file is locked."""
    with OleFileIO(io.BytesIO(content)) as file:
        properties = int.from_bytes(file.openstream("FileHeader").read(40)[36:], "little")
        if properties & LOCKED:
            raise FileDamaged("This document is locked for distribution. Save it as PDF and upload that.")
        streams = (file.openstream(name).read() for name in file.listdir() if name[0] == "BodyText")
        unpacked = (zlib.decompress(stream, -zlib.MAX_WBITS) if properties & PACKED else stream for stream in streams)
        return " ".join(text for records in unpacked for text in _texts(records))


def _texts(records: bytes) -> Iterator[str]:
    place = 0
    while place + 4 <= len(records):
        head = int.from_bytes(records[place : place + 4], "little")
        size, place = head >> SIZE, place + 4
        if size == LONG:
            size, place = int.from_bytes(records[place : place + 4], "little"), place + 4
        if head & TAG == PARAGRAPH_TEXT:
            yield _without_controls(records[place : place + size])
        place += size


def _without_controls(text: bytes) -> str:
    kept = bytearray()
    place = 0
    while place + 2 <= len(text):
        unit = int.from_bytes(text[place : place + 2], "little")
        if unit >= ord(" "):
            kept += text[place : place + 2]
        place += 2 if unit >= ord(" ") or unit in SHORT_CONTROLS else 2 * CONTROL_WIDTH
    return kept.decode("utf-16-le", "replace")
