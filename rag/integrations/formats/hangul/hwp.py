"""Load documents from Hangul (.hwp, .hwpx), the word processor in Korean offices, as Markdown.

The package unhwp reads the files. Text in a .hwpx file which unhwp would skip is first moved into plain paragraphs.
Afterwards, all letters in the file are compared with the result, and the page reports the number of missing letters.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lxml import etree
from olefile import OleFileIO

from rag.errors import FileDamaged, FileKindUnknown, FileProtected
from rag.ingestion.loaders.drawing import local_name
from rag.ingestion.loaders.markdown import load_markdown
from rag.ingestion.loaders.office_package import OfficePackage, guarded, require_unpacked
from rag.ingestion.loaders.page_text import UNREAD_PICTURES, UNREAD_TEXT, letters_in
from rag.ingestion.loaders.raised import RAISED
from rag.ingestion.loaders.signatures import COMPOUND, ZIP
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions

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
    return guarded(lambda: _load_document(content))


def check_hwp(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check a document by reading it, with the errors of `load_hwp`."""
    load_hwp(content, options)
    return CheckedFile(page_count=1)


def _load_document(content: bytes) -> ExtractedDocument:
    if unhwp is None:
        raise FileKindUnknown(
            "Hangul documents cannot be read on this machine. Save this document as a PDF and upload the PDF."
        )
    unread: Counter[str] = Counter()
    stored_text = ""
    if content.startswith(ZIP):
        content, stored_text, unread = flattened(content)
    markdown, title, author = _read(content)
    if content.startswith(COMPOUND):  # not Hangul 3.0 to 97
        stored_text = _paragraphs_text(content)
    pictures = PICTURE.findall(markdown)
    lines = EMPTY_TABLE.sub("", PICTURE.sub("", markdown)).split("\n")
    unread["pictures"] = max(unread["pictures"], len(pictures))
    unread["text"] = (Counter(letters_in(stored_text)) - Counter(letters_in(markdown))).total()
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
    try:
        with unhwp.parse_bytes(content, render_options=unhwp.RenderOptions(table_fallback="html")) as opened:
            return opened.markdown, opened.title or "", opened.author or ""
    except unhwp.UnhwpError as exc:
        if exc.kind == unhwp.ErrorKind.ENCRYPTED:
            raise FileProtected from exc
        raise FileDamaged from exc


def _paragraphs_text(content: bytes) -> str:
    """Return the text in all paragraphs, in no particular order. Raises `FileDamaged` if the file is locked."""
    with OleFileIO(io.BytesIO(content)) as file:
        properties = int.from_bytes(file.openstream("FileHeader").read(40)[36:], "little")
        if properties & LOCKED:
            raise FileDamaged("This document is locked for distribution. Save it as a PDF and upload the PDF.")
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
    plain = bytearray()
    place = 0
    while place + 2 <= len(text):
        unit = int.from_bytes(text[place : place + 2], "little")
        if unit >= ord(" "):
            plain += text[place : place + 2]
        place += 2 if unit >= ord(" ") or unit in SHORT_CONTROLS else 2 * CONTROL_WIDTH
    return plain.decode("utf-16-le", "replace")


UNREAD = {
    "comments": ("1 comment was not read.", "{count} comments were not read."),
    "embedded": ("1 embedded file was not read.", "{count} embedded files were not read."),
    "pictures": UNREAD_PICTURES,
    "text": UNREAD_TEXT,
}
SECTION = re.compile(r"contents/section\d+\.xml")
#: Elements counted but not read.
LEFT_OUT = {"hiddenComment": "comments", "ole": "embedded", "chart": "embedded", "video": "embedded", "pic": "pictures"}
#: Elements read below the text of the section.
MARGINS = frozenset({"header", "footer"})
NOTES = ("footNote", "endNote")


def _tick_mark(button: Any) -> str:
    return f"{'☒' if button.get('value') == 'CHECKED' else '☐'} {button.get('caption') or ''}"


def _child(element: Any, name: str) -> str:
    return next((child.text or "" for child in element if local_name(child) == name), "")


#: The text of form fields, formulas and decorated letters, written in place.
INLINE_TEXT: dict[str, Callable[[Any], str]] = {
    "checkBtn": _tick_mark,
    "radioBtn": _tick_mark,
    "comboBox": lambda box: box.get("selectedValue") or "",
    "edit": lambda field: _child(field, "text"),
    "equation": lambda formula: _child(formula, "script"),
    "compose": lambda signs: signs.get("composeText") or "",
    "dutmal": lambda ruby: f"{_child(ruby, 'mainText')} ({_child(ruby, 'subText')})",
    "textart": lambda art: re.sub(r"[␍␊]+", " ", art.get("text") or ""),
}


def flattened(content: bytes) -> tuple[bytes, str, Counter[str]]:
    """Return the .hwpx file with only plain paragraphs, the file's whole text, and counts by unread element.

    The counted elements are listed in `UNREAD`. Raises `FileDamaged`, and the errors raised by lxml and zipfile.
    """
    package = OfficePackage(content)
    texts: list[str] = []
    unread: Counter[str] = Counter()
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(target, "w") as target_archive:
        for name in archive.namelist():
            part = archive.read(name)
            if SECTION.fullmatch(name.lower()):
                root = package.root(name)
                _flatten(root, unread)
                texts += ("".join(element.itertext()) for element in root.iter() if local_name(element) == "t")
                part = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
            target_archive.writestr(name, part)
    return target.getvalue(), " ".join(texts), unread


def _flatten(root: Any, unread: Counter[str]) -> None:
    _drop_deleted(root)
    _write_notes(root)
    for element in list(root.iter()):
        name, parent = local_name(element), element.getparent()
        if name in LEFT_OUT or (name == "fieldBegin" and element.get("type") == "MEMO"):
            unread[LEFT_OUT.get(name, "comments")] += 1
            parent.remove(element)
        elif name in INLINE_TEXT:
            text = etree.SubElement(parent, element.tag.replace(name, "t"))
            text.text = INLINE_TEXT[name](element)
            parent.replace(element, text)
        elif name in MARGINS:
            root.extend(_paragraphs(element))
            parent.remove(element)
    # From the last to the first, so that a box inside a box moves before the outer box.
    for element in reversed([element for element in root.iter() if local_name(element) == "drawText"]):
        around = next(ancestor for ancestor in element.iterancestors() if local_name(ancestor) == "p")
        for paragraph in reversed(_paragraphs(element)):
            around.addnext(paragraph)
        element.getparent().remove(element)
    # unhwp skips the rest of a paragraph after a shape.
    for run in [element for element in root.iter() if local_name(element) == "run"]:
        for shape in filter(_is_shape, list(run)):
            run.remove(shape)


def _write_notes(root: Any) -> None:
    notes = [element for element in root.iter() if local_name(element) in NOTES]
    for number, note in enumerate(notes, 1):
        note_text = " ".join(" ".join(_text_in(paragraph).split()) for paragraph in _paragraphs(note))
        place = note.getparent()
        if local_name(place) != "ctrl":
            place = note
        text = etree.Element(note.tag.replace(local_name(note), "t"))
        text.text = f" ({str(note.get('number') or number).translate(RAISED)} {note_text.strip()})"
        text.tail = place.tail
        place.getparent().replace(place, text)


def _text_in(element: Any) -> str:
    return "".join(
        "".join(text_element.itertext()) for text_element in element.iter() if local_name(text_element) == "t"
    )


def _drop_deleted(root: Any) -> None:
    """Remove text whose deletion is a tracked change, because the page no longer shows this text."""
    is_deleted = False
    for text in [element for element in root.iter() if local_name(element) == "t"]:
        if is_deleted:
            text.text = None
        for mark in list(text):
            is_deleted = local_name(mark) == "deleteBegin" or (is_deleted and local_name(mark) != "deleteEnd")
            if is_deleted:
                mark.tail = None


def _paragraphs(element: Any) -> list[Any]:
    return [child for part in element if local_name(part) == "subList" for child in part if local_name(child) == "p"]


def _is_shape(element: Any) -> bool:
    return any(local_name(child) == "shapeComment" for child in element) and not any(
        local_name(descendant) in ("t", "tbl") for descendant in element.iter()
    )
