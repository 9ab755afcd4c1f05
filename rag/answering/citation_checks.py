"""Check the citations in a finished answer against their passages, and complete the data for their cards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from rag.answering.canned_answers import (
    EARLIER_VERSION,
    NEWER_VERSION,
    NO_LONGER_VALID,
    NOT_YET_VALID,
    STILL_VALID,
    phrase,
)
from rag.answering.citations import cited_figures, quoted, verified, with_matched_terms, with_rows, with_section
from rag.answering.extras import extra
from rag.answering.state import AnswerState
from rag.ingestion.loaders import has_rows
from rag.text.language_detection import detect_language
from rag.types import Citation, Outcome


def check_citations(state: AnswerState) -> None:
    """Mark the question's words and the answer's figures in each cited passage; note unsupported figures.

    Each citation also gets the name of the section with the most marked words.
    """
    language = state.question.collection.language
    checked = tuple(
        with_matched_terms(
            citation,
            (state.question.text, cited_figures(state.text, citation.number)),
            detect_language(citation.passage[:400], [language]),
        )
        for citation in state.citations
    )
    if state.kind == "cited":
        if not state.is_quoted:
            checked = verified(
                state.text,
                checked,
                question=state.question.text,
                page_text=partial(_page_text, state),
                language=detect_language(state.text[:400], [state.answer_language]),
                likely=(language,),
            )
        with extra("warnings of old documents"):
            state.warnings = _warnings(state, checked)
    state.citations = checked
    with extra("names of sections"):
        chunk_ids = [citation.chunk_id for citation in checked]
        places = state.parts.chat_logs.passage_places(state.tenant_id, chunk_ids) if checked else {}
        state.citations = tuple(with_section(c, places[c.chunk_id]) if c.chunk_id in places else c for c in checked)
    with extra("rows of spreadsheets"):
        state.citations = _with_rows(state, state.citations)
    # A reply without a supporting citation is no answer.
    if state.outcome is Outcome.ANSWERED and not (
        state.kind == "cited" and any(citation.is_supported for citation in state.citations)
    ):
        state.outcome = Outcome.PERHAPS


def _page_text(state: AnswerState, citation: Citation) -> str:
    """Return the text of the pages around a passage in the context."""
    first = citation.first_read_page or citation.first_page
    last = citation.last_read_page or citation.last_page
    return state.parts.chat_logs.page_text(state.tenant_id, citation.document_id, first, last)


def _warnings(state: AnswerState, cited: Sequence[Citation]) -> list[str]:
    """Return a sentence for each cited document that is not valid today, and for each earlier version, with the day."""
    titles = {citation.document_id: citation.title for citation in cited}
    found = state.parts.chat_logs.days_of_invalid(state.tenant_id, list(titles)) if titles else {}
    sentences = []
    for version in state.context.versions if state.context is not None else ():
        if version.document_id not in titles:
            continue
        found.pop(version.document_id, None)
        is_coming = version.valid_from is not None and version.day == datetime.now(UTC).date()
        sentences.append(
            phrase(NEWER_VERSION if is_coming else EARLIER_VERSION, state.answer_language).format(
                title=version.title,
                version=version.version,
                day=version.valid_from if is_coming else version.day,
            )
        )
    for version in state.context.staying if state.context is not None else ():
        if version.document_id in titles:
            sentence = phrase(STILL_VALID, state.answer_language)
            sentences.append(sentence.format(title=version.title, version=version.version, day=version.day))
    for document_id, (is_over, day) in found.items():
        words = NO_LONGER_VALID if is_over else NOT_YET_VALID
        sentences.append(phrase(words, state.answer_language).format(title=titles[document_id], day=day))
    return sentences


def _with_rows(state: AnswerState, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    """Add row references to spreadsheet citations."""
    of_sheets = [citation.chunk_id for citation in citations if has_rows(citation.file_name)]
    pages = state.parts.chat_logs.sheet_pages(state.tenant_id, of_sheets) if of_sheets else {}
    marked = quoted(state.text, citations) if pages else {}
    return tuple(with_rows(c, marked[c.number], pages[c.chunk_id]) if c.chunk_id in pages else c for c in citations)
