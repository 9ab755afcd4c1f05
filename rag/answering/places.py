"""Where in its document a passage says what it is cited for: a passage may run over several sections and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.ingestion.chunking.spans import section_paths
from rag.records.chat_logs import PassagePlace
from rag.types import Citation


def terms_held(terms: Sequence[str], text: str) -> int:
    """How many different ones of these words stand in a text."""
    folded = text.casefold()
    return sum(term.casefold() in folded for term in set(terms))


def with_section(citation: Citation, place: PassagePlace) -> Citation:
    """The citation under the heading below which most of its marked words stand, of equal ones the passage's own."""
    # Before the text a chunker may have put the header of a table; a text cut short has lost its end.
    before = len(citation.passage) - (place.end - place.start)
    if before < 0:
        return citation
    ordered = sorted(place.sections, key=lambda section: section.start)
    starts = [max(0, before + section.start - place.start) for section in ordered]
    held: dict[str, int] = {}
    for path, start, end in zip(section_paths(ordered), starts, [*starts[1:], len(citation.passage)], strict=True):
        held[path] = max(held.get(path, 0), terms_held(citation.matched_terms, citation.passage[start:end]))
    most = max(held.values(), default=0)
    if held.get(citation.section, 0) == most:
        return citation
    return replace(citation, section=next(path for path, count in held.items() if count == most))
