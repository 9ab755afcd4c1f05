"""Open an OpenDocument package (.ods, .odt): parts as XML trees, and paragraph texts."""

from __future__ import annotations

import zipfile
from typing import Any, ClassVar

from rag.errors import DocumentError, FileDamaged, FileProtected
from rag.ingestion.loaders.office_package import OfficePackage, require_unpacked
from rag.ingestion.loaders.values import ExtractionLimits

SPACE = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TABLE, TEXT, DRAW, STYLE, PRESENTATION = (
    f"{{{SPACE}{name}:1.0}}" for name in ("office", "table", "text", "drawing", "style", "presentation")
)
FO = f"{{{SPACE}xsl-fo-compatible:1.0}}"
SVG = f"{{{SPACE}svg-compatible:1.0}}"
META = f"{{{SPACE}meta:1.0}}"
DC = "{http://purl.org/dc/elements/1.1/}"
XLINK = "{http://www.w3.org/1999/xlink}"
MATH = "{http://www.w3.org/1998/Math/MathML}"
#: In centimetres: a smaller picture is a logo or a sign.
LEAST_PICTURE = (5.0, 2.5)
UNITS = {"cm": 1.0, "mm": 0.1, "in": 2.54, "pt": 2.54 / 72, "pc": 2.54 / 6, "px": 2.54 / 96}


class OpenDocument(OfficePackage):
    """A package in OpenDocument format, with access to the XML parts."""

    MAIN: ClassVar[str] = "content.xml"

    def properties(self) -> dict[str, str]:
        """Return title, creator and language from the file's properties."""
        properties = {"title": "", "creator": "", "language": ""}
        root = self.root("meta.xml")
        for element in () if root is None else root.iter():
            if element.tag in (f"{DC}title", f"{DC}creator", f"{DC}language"):
                properties[str(element.tag).removeprefix(DC)] = element.text or ""
            elif element.tag == f"{META}initial-creator" and not properties["creator"]:
                properties["creator"] = element.text or ""
        return properties


def require_open_document(content: bytes, limits: ExtractionLimits) -> None:
    """Raise the fitting `DocumentError` unless a file is a valid package."""
    require_unpacked(content, limits)
    try:
        package = OpenDocument(content)
        if b"encryption-data" in (package.bytes_of("META-INF/manifest.xml") or b""):
            raise FileProtected
        package.main()
    except DocumentError:
        raise
    except (zipfile.BadZipFile, OSError, ValueError, KeyError, RuntimeError, NotImplementedError) as exc:
        raise FileDamaged from exc


def centimetres(length: str | None) -> float | None:
    """Convert a length, for example "0.83in", to centimetres, or return `None` for other text."""
    text = (length or "").strip()
    try:
        return float(text[:-2]) * UNITS[text[-2:]]
    except (KeyError, ValueError):
        return None


def is_large(frame: Any) -> bool:
    """Whether an image's frame is large enough to hold text."""
    width, height = centimetres(frame.get(SVG + "width")), centimetres(frame.get(SVG + "height"))
    return (width is None or width >= LEAST_PICTURE[0]) and (height is None or height >= LEAST_PICTURE[1])


def is_struck(properties: Any) -> bool:
    """Whether text properties strike the text through."""
    kinds = (properties.get(f"{STYLE}text-line-through-{name}") for name in ("style", "type"))
    return any(kind not in (None, "none") for kind in kinds)


def place_of(properties: Any) -> str | None:
    """Return the text's position: "super", "sub", "" for the baseline, or `None` if the properties do not say."""
    shift = (properties.get(f"{STYLE}text-position") or "").split(" ")[0]
    if shift in ("", "0", "0%"):
        return "" if shift else None
    number = shift.rstrip("%")
    return "super" if shift == "super" or (number.isdecimal() and int(number[:6]) > 0) else "sub"
