"""The words that documents are described with on every page."""

from __future__ import annotations

from collections.abc import Mapping

from rag.ingestion.loaders import LOADERS
from rag.types import ChunkingMethod, DocumentStatus, PdfType

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
