from __future__ import annotations

from uuid import uuid4

from rag.types import DocumentChunk
from rag.ui.document_pages import OVERLAP_TINT, marked_page


def chunk(index: int, start: int, end: int) -> DocumentChunk:
    return DocumentChunk(
        id=uuid4(), document_id=uuid4(), chunk_index=index, content="", first_page=1, last_page=1,
        start_character=start, end_character=end, section="", tokens=1, embedding_model="m", has_embedding=True,
        metadata={},
    )  # fmt: skip


def test_no_character_is_lost_and_overlaps_are_tinted() -> None:
    marked = marked_page("abcdefghij", 100, [chunk(0, 90, 105), chunk(1, 103, 120)])
    assert "abc" in marked
    assert "de" in marked
    assert "fghij" in marked
    assert marked.count(OVERLAP_TINT) == 1
    assert "[2]" in marked
    assert "[1]" not in marked  # begins on the page before


def test_markup_in_the_text_is_shown_as_text() -> None:
    marked = marked_page("<img src=x onerror=alert(1)>", 0, [chunk(0, 0, 28)])
    assert "<img" not in marked
    assert "&lt;img" in marked


def test_a_page_without_chunks_is_plain() -> None:
    assert ">text</div>" in marked_page("text", 0, [])
