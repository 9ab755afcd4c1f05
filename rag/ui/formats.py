"""Write numbers, sizes, times and the states of documents. An unknown price is "unpriced", never zero."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rag.ingestion.collections import LANGUAGES
from rag.ingestion.loaders import LOADERS
from rag.types import ChunkingMethod, DocumentStatus, PdfType

UNPRICED = "unpriced"


WITHOUT_PAGES = tuple(ending for loader in LOADERS if not loader.has_pages for ending in loader.endings)


#: How to open a row of a table, with the mouse and without: Streamlit says it nowhere.
SELECT_A_ROW = "Select a row (Shift + Space on the keyboard)"


def money(dollars: Decimal | float | None) -> str:
    """Write US dollars: four decimals below one dollar, two above; None is `unpriced`."""
    if dollars is None:
        return UNPRICED
    amount = Decimal(str(dollars))
    sign = "-" if amount < 0 else ""
    size = abs(amount)
    if size == 0:
        return "$0.00"
    if size < Decimal("0.0001"):
        return f"{sign}<$0.0001"
    return f"{sign}${size:,.2f}" if size >= 1 else f"{sign}${size:.4f}"


def duration(milliseconds: float | None) -> str:
    """Write `340 ms`, `3.2 s`, `2 min 5 s`, `1 h 4 min`; a dash when unknown."""
    if milliseconds is None:
        return "–"
    if round(milliseconds) < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def file_size(size_bytes: int) -> str:
    """Write `812 B`, `14 KB`, `1.4 MB`; a megabyte is 1024 × 1024 bytes, as in the upload limit."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    kilobytes = size_bytes / 1024
    if kilobytes < 1000:
        return f"{kilobytes:.0f} KB"
    megabytes = kilobytes / 1024
    return f"{megabytes:.1f} MB" if megabytes < 1000 else f"{megabytes / 1024:.1f} GB"


def count(number: int, one: str, many: str = "") -> str:
    """Write `1 page`, `1,200 pages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float | None) -> str:
    """Write a share of 0 … 1 as `77.2%`; a dash when there is nothing to divide."""
    return "–" if share is None else f"{share:.1%}"


def time_zone(name: str | None) -> tzinfo:
    """Return the visitor's zone from `st.context.timezone`; UTC when the browser gives none or nonsense."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def date_time(moment: datetime | None, zone: tzinfo = UTC) -> str:
    """Write `21 Nov 2026, 14:05` in the given zone; a dash for None."""
    if moment is None:
        return "–"
    local = moment.astimezone(zone)
    return f"{local.day} {local:%b %Y, %H:%M}"


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Write `just now`, `5 min ago`, `3 h ago`, `2 days ago`, then the date."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 86400:
        return f"{int(seconds // 3600)} h ago"
    if seconds < 7 * 86400:
        return f"{count(int(seconds // 86400), 'day')} ago"
    return f"{moment.day} {moment:%b %Y}"


def pages(first: int, last: int) -> str:
    """Write `p. 12`, `pp. 12–13`; nothing when the page is unknown."""
    if first < 1:
        return ""
    return f"p. {first}" if last <= first else f"pp. {first}–{last}"


def has_pages(file_name: str) -> bool:
    """Return whether a file of this name has pages to turn; others are one long text."""
    return not file_name.lower().endswith(WITHOUT_PAGES)


def language_name(code: str) -> str:
    """Return a language by its name, an unknown one by its code, a dash where there is none."""
    return LANGUAGES.get(code.split("-")[0], code) if code else "–"


#: Status as (words, colour of its badge).
STATUSES: Mapping[DocumentStatus, tuple[str, str]] = {
    DocumentStatus.REGISTERED: ("Registered", "gray"),
    DocumentStatus.READING: ("Reading", "blue"),
    DocumentStatus.ESTIMATED: ("To confirm", "orange"),
    DocumentStatus.PROCESSING: ("Processing", "blue"),
    DocumentStatus.COMPLETED: ("Ready", "green"),
    DocumentStatus.NEEDS_OCR: ("Needs OCR", "violet"),
    DocumentStatus.FAILED: ("Failed", "red"),
    DocumentStatus.SUPERSEDED: ("Earlier version", "gray"),
    DocumentStatus.BINNED: ("In the bin", "gray"),
}


#: Of a document at work whose provider refuses the key or has no money left.
WAITING = ("Waiting", "orange")


#: Of a document that is found while its tags wait for the same.
TAGS_WAITING = ("Ready, tags wait", "orange")


METHODS: Mapping[ChunkingMethod, str] = {
    "smart": "Smart",
    "auto": "By kind of document",
    "semantic": "By topic",
    "sentences": "Sentences",
    "recursive": "Separators",
    "paged": "Page by page",
    "fixed": "Fixed size",
    "professional": "Résumé",
    "narrative": "Story",
    "markdown": "Markdown sections",
    "generic": "Paragraphs",
}


METHOD_HELP: Mapping[ChunkingMethod, str] = {
    "smart": "Cuts at sections, paragraphs and sentences. Right for most documents.",
    "auto": "Cuts a résumé, a LinkedIn profile, a journey, a README and any other text each in the way that fits it.",
    "semantic": "Cuts where the topic changes. For long mixed texts; reads the text once more to find the places.",
    "sentences": "Cuts where a sentence or line ends, in longer pieces. For notices and announcements.",
    "recursive": "Cuts at the coarsest separator there is: paragraph, line, sentence, word. Works for any text.",
    "paged": "No passage goes over a page, so that each citation names exactly one. For guidelines and case law.",
    "fixed": "Cuts at a fixed length wherever that falls. For tables and logs without sentences.",
    "professional": "One position, one passage, with company, position, place and dates. For résumés and profiles.",
    "narrative": "Whole paragraphs in order, the last sentences said again in the next. For stories and reports.",
    "markdown": "One section, one passage, with its heading. For READMEs and Markdown.",
    "generic": "As many whole paragraphs as fit, nothing said twice.",
}


PDF_TYPES: Mapping[PdfType, str] = {"auto": "Auto", "scanned": "Scanned", "digital": "Digital"}


PDF_TYPE_HELP = (
    "For PDFs. Auto recognises text on the pages that are pictures, Scanned on every page, Digital on none. "
    "What text recognition costs is part of the estimate."
)


KINDS: Mapping[str, str] = {loader.media_type: loader.label for loader in LOADERS}


ENGINES: Mapping[str, str] = {"upstage": "Upstage", "tesseract": "Tesseract"}


def field_label(field: str) -> str:
    """Write `crime_type` as "Crime type"."""
    return field.replace("_", " ").capitalize()


def known_cost(values: Mapping[str, Any] | None, step: str) -> Decimal | None:
    """Return a stored cost; None when its price is unknown, and zero when nothing was spent yet."""
    value = (values or {}).get(step, 0)
    return None if value is None else Decimal(str(value))
