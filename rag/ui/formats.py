"""Format numbers, sizes, times and document states. An unknown price is "price not known", never zero."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rag import language
from rag.ingestion.loaders.format_table import file_formats
from rag.language import N_, _
from rag.types import ChunkingMethod, DocumentStatus, PdfType

UNPRICED = N_("price not known")


WITHOUT_PAGES = tuple(ending for loader in file_formats().loaders if not loader.has_pages for ending in loader.endings)


def money(dollars: Decimal | float | None) -> str:
    """Format US dollars with four decimals below a dollar, else with two. `None` gives "price not known"."""
    if dollars is None:
        return _(UNPRICED)
    amount = Decimal(str(dollars))
    size = abs(amount)
    if size == 0:
        return language.dollars(Decimal(0), 2)
    if size < Decimal("0.0001"):
        smallest = language.dollars(Decimal("0.0001"), 4)
        return f"-<{smallest}" if amount < 0 else f"<{smallest}"
    return language.dollars(amount, 2 if size >= 1 else 4)


duration = language.duration


def file_size(size_bytes: int) -> str:
    """Format a file size: `812 B`, `14 KB`, `1.4 MB`. A megabyte is 1024 × 1024 bytes, like in the upload limit."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    kilobytes = size_bytes / 1024
    if kilobytes < 1000:
        return f"{kilobytes:.0f} KB"
    megabytes = kilobytes / 1024
    size, unit = (megabytes, "MB") if megabytes < 1000 else (megabytes / 1024, "GB")
    return f"{language.number(Decimal(f'{size:.1f}'), 1)} {unit}"


def count(number: int, one: str, many: str = "") -> str:
    """Format `1 page`, `1,200 pages`. Callers pass the words as literals, for the catalogues."""
    return language.ngettext(f"{{count}} {one}", f"{{count}} {many or one + 's'}", number)


def thousands(number: int) -> str:
    """Format a number like `1,200`."""
    return language.number(number)


def percent(share: float | None) -> str:
    """Format a fraction, 0 to 1, as `77.2%`; a dash for `None`."""
    return "–" if share is None else language.percentage(float(f"{share:.3f}"))


def time_zone(name: str | None) -> tzinfo:
    """Return the time zone named by `st.context.timezone`; UTC for an invalid name or `None`."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def date_time(moment: datetime | None, zone: tzinfo = UTC) -> str:
    """Format `21 Nov 2026, 14:05` in the given zone; a dash for `None`."""
    if moment is None:
        return "–"
    local = moment.astimezone(zone)
    return f"{language.day(local)}, {language.clock(local)}"


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Format how long ago a moment was: `just now`, `5 min ago`, `3 h ago`, `2 days ago`, or the date."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    if seconds < 60:
        return _("just now")
    if seconds < 3600:
        return _("{minutes} min ago", minutes=int(seconds // 60))
    if seconds < 86400:
        return _("{hours} h ago", hours=int(seconds // 3600))
    if seconds < 7 * 86400:
        return language.ngettext("{count} day ago", "{count} days ago", int(seconds // 86400))
    return language.day(moment)


def pages(first: int, last: int) -> str:
    """Format `p. 12`, `pp. 12–13`; "" for an unknown page."""
    if first < 1:
        return ""
    return _("p. {first}", first=first) if last <= first else _("pp. {first}–{last}", first=first, last=last)


def language_name(code: str) -> str:
    """Format the language `nl` as "Dutch"; a dash without a language."""
    return str(language.locale().languages.get(code.split("-")[0], code)) if code else "–"


def has_pages(file_name: str) -> bool:
    """Whether files with this extension have pages, like a PDF. All other files are shown in a single text."""
    return not file_name.lower().endswith(WITHOUT_PAGES)


#: Status: words and badge colour.
STATUSES: Mapping[DocumentStatus, tuple[str, str]] = {
    DocumentStatus.REGISTERED: (N_("Registered"), "gray"),
    DocumentStatus.READING: (N_("Reading"), "blue"),
    DocumentStatus.ESTIMATED: (N_("To be confirmed"), "orange"),
    DocumentStatus.PROCESSING: (N_("Processing"), "blue"),
    DocumentStatus.COMPLETED: (N_("Ready"), "green"),
    DocumentStatus.NEEDS_OCR: (N_("Needs text recognition"), "violet"),
    DocumentStatus.FAILED: (N_("Failed"), "red"),
    DocumentStatus.SUPERSEDED: (N_("Earlier version"), "gray"),
    DocumentStatus.BINNED: (N_("In the bin"), "gray"),
}


#: For a document in processing whose provider refuses the key or has no credit left.
WAITING = (N_("Waiting"), "orange")


#: For a searchable document whose tags wait for the same reason.
TAGS_WAITING = (N_("Ready, but tags are missing"), "orange")


METHODS: Mapping[ChunkingMethod, str] = {
    "smart": N_("Smart"),
    "auto": N_("By kind of document"),
    "semantic": N_("By topic"),
    "sentences": N_("Sentences"),
    "recursive": N_("Separators"),
    "paged": N_("Page by page"),
    "fixed": N_("Fixed size"),
    "professional": N_("Résumé"),
    "narrative": N_("Story"),
    "markdown": N_("Markdown sections"),
    "generic": N_("Paragraphs"),
}


METHOD_HELP: Mapping[ChunkingMethod, str] = {
    "smart": N_("Splits at sections, paragraphs and sentences. Right for most documents."),
    "auto": N_(
        "Splits each kind of text in its own way: résumés, LinkedIn profiles, journeys, READMEs and all others."
    ),
    "semantic": N_(
        "Splits where the topic changes. For long mixed texts. The text is read once more to find these places."
    ),
    "sentences": N_("Splits where a sentence or line ends, into longer passages. For notices and announcements."),
    "recursive": N_("Splits at the largest break available: paragraph, line, sentence or word. Works for any text."),
    "paged": N_(
        "Each passage stays within one page, so that each citation names exactly one page. For guidelines and case law."
    ),
    "fixed": N_("Splits at a fixed length, even within a word. For tables and logs without sentences."),
    "professional": N_(
        "Makes each position a passage of its own, with company, position, place and dates. For résumés and profiles."
    ),
    "narrative": N_(
        "Keeps whole paragraphs in order. Each passage begins with the last sentences of the previous passage. For "
        "stories and reports."
    ),
    "markdown": N_("Makes each section a passage of its own, with its heading. For READMEs and Markdown."),
    "generic": N_("Each passage holds as many whole paragraphs as fit. No text is repeated."),
}


PDF_TYPES: Mapping[PdfType, str] = {"auto": N_("Auto"), "scanned": N_("Scanned"), "digital": N_("Digital")}


PDF_TYPE_HELP = N_(
    "For PDFs. “Auto” recognises text only on pages that are pictures, “Scanned” recognises it on every page, and "
    "“Digital” recognises none. The estimate includes the cost of text recognition."
)


KINDS: Mapping[str, str] = {loader.media_type: loader.label for loader in file_formats().loaders}


def status_badge(status: DocumentStatus) -> tuple[str, str]:
    """Return the words and the colour for a document's status badge."""
    words, color = STATUSES[status]
    return _(words), color


def method_name(method: str) -> str:
    return next((_(words) for name, words in METHODS.items() if name == method), method)


def kind_name(media_type: str) -> str:
    return _(KINDS.get(media_type, media_type))


def field_label(field: str) -> str:
    """Return a field's name as a label: "Crime type" for `crime_type`."""
    return _(field.replace("_", " ").capitalize())


def stored_cost(values: Mapping[str, Any] | None, step: str) -> Decimal | None:
    """Return a step's stored cost. `None` means an unknown price, and 0 that no money was spent yet."""
    value = (values or {}).get(step, 0)
    return None if value is None else Decimal(str(value))
