"""Read the elements and attributes in a Word document's parts by their usual names."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rag.ingestion.loaders.office_package import SCHEMAS, OfficePackage, R

MICROSOFT = "http://schemas.microsoft.com/office/"
W = "{" + SCHEMAS + "wordprocessingml/2006/main}"
M = "{" + SCHEMAS + "officeDocument/2006/math}"
W14 = "{" + MICROSOFT + "word/2010/wordml}"
PREFIXES = {
    W: "w",
    M: "m",
    R: "r",
    W14: "w14",
    "{" + SCHEMAS + "markup-compatibility/2006}": "mc",
    "{" + SCHEMAS + "drawingml/2006/main}": "a",
    "{" + SCHEMAS + "drawingml/2006/chart}": "c",
    "{" + SCHEMAS + "drawingml/2006/diagram}": "dgm",
    "{" + SCHEMAS + "drawingml/2006/wordprocessingDrawing}": "wp",
    "{" + MICROSOFT + "drawing/2014/chartex}": "cx",
    "{urn:schemas-microsoft-com:vml}": "v",
    "{urn:schemas-microsoft-com:office:office}": "o",
}


@lru_cache(maxsize=4096)
def name_of(tag: Any) -> str:
    """Return an element's name with the usual prefix, for example "w:p"; "" for comments and the like."""
    if not isinstance(tag, str):
        return ""
    space, brace, local = tag.rpartition("}")
    return f"{PREFIXES.get(space + brace, '?')}:{local}"


def child(element: Any, name: str) -> Any:
    if element is None:
        return None
    return next((element_child for element_child in element if name_of(element_child.tag) == name), None)


def value(element: Any, name: str = "val") -> str | None:
    """Return the value of an attribute in Word's namespace; `None` if the element or the attribute is missing."""
    attribute: str | None = None if element is None else element.get(W + name)
    return attribute


def number(element: Any, name: str = "val") -> int | None:
    """Return an attribute as a whole number, or `None` for other text."""
    try:
        return int(value(element, name) or "")
    except ValueError:
        return None


def is_on(element: Any) -> bool:
    """Whether an on/off property is on: the element exists, and its value is missing or not "off"."""
    return element is not None and (value(element) or "1").lower() not in ("0", "false", "off")


class WordPackage(OfficePackage):
    """A Word document's parts."""

    MAIN = "word/document.xml"
