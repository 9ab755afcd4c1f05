"""Move all visible text of a .hwpx file into plain paragraphs, because unhwp reads only these."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from typing import Any

from lxml import etree

from rag.ingestion.loaders.drawing import local_name
from rag.ingestion.loaders.epub import PICTURES
from rag.ingestion.loaders.office_package import OfficePackage
from rag.ingestion.loaders.page_text import UNREAD_TEXT
from rag.ingestion.loaders.raised import RAISED

UNREAD = {
    "comments": ("1 comment was not read.", "{count} comments were not read."),
    "embedded": ("1 embedded file was not read.", "{count} embedded files were not read."),
    "pictures": PICTURES,
    "text": UNREAD_TEXT,
}
SECTION = re.compile(r"contents/section\d+\.xml")
#: Elements counted but not read.
LEFT_OUT = {"hiddenComment": "comments", "ole": "embedded", "chart": "embedded", "video": "embedded", "pic": "pictures"}
#: Elements read below the text of the section.
MARGINS = frozenset({"header", "footer"})
NOTES = ("footNote", "endNote")


def _ticked(button: Any) -> str:
    return f"{'☒' if button.get('value') == 'CHECKED' else '☐'} {button.get('caption') or ''}"


def _child(element: Any, name: str) -> str:
    return next((child.text or "" for child in element if local_name(child) == name), "")


#: The text of form fields, formulas and decorated letters, written in place.
WRITTEN: dict[str, Callable[[Any], str]] = {
    "checkBtn": _ticked,
    "radioBtn": _ticked,
    "comboBox": lambda box: box.get("selectedValue") or "",
    "edit": lambda field: _child(field, "text"),
    "equation": lambda formula: _child(formula, "script"),
    "compose": lambda letters: letters.get("composeText") or "",
    "dutmal": lambda ruby: f"{_child(ruby, 'mainText')} ({_child(ruby, 'subText')})",
    "textart": lambda art: re.sub(r"[␍␊]+", " ", art.get("text") or ""),
}


def flattened(content: bytes) -> tuple[bytes, str, Counter[str]]:
    """Return the file with plain paragraphs, all its text, and counts for the kinds in `UNREAD`.

    Raises `FileDamaged`, and the errors of lxml and zipfile.
    """
    package = OfficePackage(content)
    texts: list[str] = []
    unread: Counter[str] = Counter()
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(made, "w") as written:
        for name in archive.namelist():
            part = archive.read(name)
            if SECTION.fullmatch(name.lower()):
                root = package.root(name)
                _flatten(root, unread)
                texts += ("".join(element.itertext()) for element in root.iter() if local_name(element) == "t")
                part = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
            written.writestr(name, part)
    return made.getvalue(), " ".join(texts), unread


def _flatten(root: Any, unread: Counter[str]) -> None:
    _drop_deleted(root)
    _write_notes(root)
    for element in list(root.iter()):
        name, parent = local_name(element), element.getparent()
        if name in LEFT_OUT or (name == "fieldBegin" and element.get("type") == "MEMO"):
            unread[LEFT_OUT.get(name, "comments")] += 1
            parent.remove(element)
        elif name in WRITTEN:
            text = etree.SubElement(parent, element.tag.replace(name, "t"))
            text.text = WRITTEN[name](element)
            parent.replace(element, text)
        elif name in MARGINS:
            root.extend(_paragraphs(element))
            parent.remove(element)
    # From the last to the first, so that a box inside a box moves before the outer box.
    for element in reversed([element for element in root.iter() if local_name(element) == "drawText"]):
        around = next(found for found in element.iterancestors() if local_name(found) == "p")
        for paragraph in reversed(_paragraphs(element)):
            around.addnext(paragraph)
        element.getparent().remove(element)
    # unhwp skips the rest of a paragraph after a shape.
    for run in [element for element in root.iter() if local_name(element) == "run"]:
        for shape in filter(_is_shape, list(run)):
            run.remove(shape)


def _write_notes(root: Any) -> None:
    """Write footnotes and endnotes in brackets after their marks."""
    notes = [element for element in root.iter() if local_name(element) in NOTES]
    for number, note in enumerate(notes, 1):
        said = " ".join(" ".join(_letters(paragraph).split()) for paragraph in _paragraphs(note))
        place = note.getparent()
        if local_name(place) != "ctrl":
            place = note
        text = etree.Element(note.tag.replace(local_name(note), "t"))
        text.text = f" ({str(note.get('number') or number).translate(RAISED)} {said.strip()})"
        text.tail = place.tail
        place.getparent().replace(place, text)


def _letters(element: Any) -> str:
    return "".join("".join(found.itertext()) for found in element.iter() if local_name(found) == "t")


def _drop_deleted(root: Any) -> None:
    """Remove the text of tracked deletions, which the page no longer shows."""
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
        local_name(found) in ("t", "tbl") for found in element.iter()
    )
