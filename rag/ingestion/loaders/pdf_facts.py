"""What a PDF says of itself: title, author, dates and language, from its information dictionary, else from its XMP.

Both are written by all kinds of programs and often broken; what cannot be understood is left out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pypdf

#: `D:20240131094500+09'00'`, of which anything after the year may be missing; some leave out the mark, some the quotes.
PDF_DATE = re.compile(
    r"\s*(?:D:)?\s*(?P<year>(?:19|20)\d\d)(?P<month>\d\d)?(?P<day>\d\d)?(?P<hour>\d\d)?(?P<minute>\d\d)?"
    r"(?P<second>\d\d)?\s*(?P<zone>Z|[+-]\d\d(?:'?:?\d\d)?)?.*",
    re.DOTALL,
)
#: XMP is looked at by its marks, not as XML: nothing in it is worth what entities can do to a parser.
XMP_LOOKED_AT = 200_000
XMP_VALUE = r"(?:{name}\s*=\s*[\"'](?P<attribute>[^\"'<>]*)|<{name}>(?:\s*<[^>]*>)*\s*(?P<element>[^<]+))"
LONGEST = 500


@dataclass(frozen=True)
class PdfFacts:
    """Empty where the file does not say. Dates are ISO 8601, days where there is no time; language two letters."""

    title: str = ""
    author: str = ""
    language: str = ""
    created_at: str = ""
    modified_at: str = ""

    def metadata(self) -> dict[str, str]:
        """The dates as a document's metadata has them."""
        dates = {"file_created_at": self.created_at, "file_modified_at": self.modified_at}
        return {name: value for name, value in dates.items() if value}


def facts_of(reader: pypdf.PdfReader) -> PdfFacts:
    """What the file says; what its dictionary does not, its XMP may."""
    information, xmp = _information(reader), _xmp(reader)
    return PdfFacts(
        title=information.get("/Title") or _in_xmp(xmp, "dc:title"),
        author=information.get("/Author") or _in_xmp(xmp, "dc:creator"),
        language=_language(reader) or two_letters(_in_xmp(xmp, "dc:language")),
        created_at=iso_date(information.get("/CreationDate", "")) or iso_date(_in_xmp(xmp, "xmp:CreateDate")),
        modified_at=iso_date(information.get("/ModDate", "")) or iso_date(_in_xmp(xmp, "xmp:ModifyDate")),
    )


def iso_date(text: str) -> str:
    """A date as PDFs or XMP write it as ISO 8601; empty when it is no date, or one that cannot be."""
    text = text.strip()[:60]
    if re.match(r"\d{4}-\d\d", text):
        return _iso_of_xmp(text)
    found = PDF_DATE.fullmatch(text)
    if found is None:
        return ""
    try:
        value = datetime(
            int(found["year"]),
            int(found["month"] or 1),
            int(found["day"] or 1),
            int(found["hour"] or 0),
            int(found["minute"] or 0),
            min(int(found["second"] or 0), 59),
            tzinfo=_zone(found["zone"]),
        )
    except ValueError:
        return ""
    return value.isoformat() if found["hour"] else value.date().isoformat()


def two_letters(claimed: str) -> str:
    """A language tag as its two letters; empty for anything else."""
    match = re.match(r"[A-Za-z]{2}(?![A-Za-z])", claimed)
    return match[0].lower() if match else ""


def _iso_of_xmp(text: str) -> str:
    try:
        value = datetime.fromisoformat(f"{text}-01" if len(text) == len("2024-01") else text)
    except ValueError:
        return ""
    return value.isoformat() if "T" in text else value.date().isoformat()


def _zone(text: str | None) -> timezone | None:
    """The offset, or None when the file does not say or says what no place has."""
    if not text:
        return None
    if text == "Z":
        return UTC
    digits = re.sub(r"\D", "", text)
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4] or 0))
    return timezone(-offset if text[0] == "-" else offset) if offset <= timedelta(hours=14) else None


def _information(reader: pypdf.PdfReader) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        metadata: Mapping[str, Any] = reader.metadata or {}
    except (Exception, RecursionError):
        return found
    for name in ("/Title", "/Author", "/CreationDate", "/ModDate"):
        try:
            found[name] = str(metadata.get(name) or "")
        except (Exception, RecursionError):  # noqa: S112 - a broken entry is no reason to lose the others
            continue
    return found


def _xmp(reader: pypdf.PdfReader) -> str:
    try:
        stream: Any = reader.root_object["/Metadata"]
        data = bytes(stream.get_data()[:XMP_LOOKED_AT])
    except (Exception, RecursionError, MemoryError):
        return ""
    return data.decode("utf-16" if data[:2] in (b"\xfe\xff", b"\xff\xfe") else "utf-8", "replace")


def _in_xmp(xmp: str, name: str) -> str:
    found = re.search(XMP_VALUE.format(name=name), xmp) if name in xmp else None
    return html.unescape(found["attribute"] or found["element"] or "").strip()[:LONGEST] if found else ""


def _language(reader: pypdf.PdfReader) -> str:
    try:
        return two_letters(str(reader.root_object.get("/Lang", "")))
    except (Exception, RecursionError):
        return ""
