from __future__ import annotations

from uuid import uuid4

from rag.types import DocumentChunk
from rag.ui.document_pages import OVERLAP_TINT, chunk_html, marked_page


def chunk(index: int, start: int, end: int, content: str = "") -> DocumentChunk:
    return DocumentChunk(
        id=uuid4(), document_id=uuid4(), chunk_index=index, content=content, first_page=1, last_page=1,
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


def test_a_chunk_shows_what_it_shares_with_its_neighbours() -> None:
    html = chunk_html(chunk(1, 10, 20, "abcdefghij"), before=13, after=18)
    assert ">abc</span>defgh<span" in html
    assert html.count("shared with") == 2
    alone = chunk_html(chunk(0, 0, 3, "<b>"), before=0, after=3)
    assert "&lt;b&gt;" in alone
    assert "shared with" not in alone


def test_a_repositorys_particulars_before_a_chunk_are_no_overlap() -> None:
    html = chunk_html(chunk(1, 10, 14, "Repo\n\nabcd"), before=12, after=14)
    assert "Repo\n\n<span" in html
    assert ">ab</span>cd" in html
