"""The words that documents are described with on every page."""

from __future__ import annotations

from collections.abc import Mapping

from rag.types import DocumentStatus

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
METHODS = {"smart": "Smart", "fixed": "Fixed size", "semantic": "By topic"}
