"""Spans of the joined text: pages, sections and the heads of tables."""

from __future__ import annotations

from string import ascii_lowercase

import pytest

from rag.text.spans import Piece, breaks_of, chunks_from_spans, join_pages, page_starts, parts_between, section_paths
from rag.types import Page, Section


def pages_of(*texts: str) -> list[Page]:
    return [Page(number=number, text=text) for number, text in enumerate(texts, start=1)]


def heading(title: str, level: int, start: int) -> Section:
    return Section(title=title, level=level, page=1, start=start)


def test_a_page_starts_behind_the_newline_of_the_page_before() -> None:
    pages = pages_of("Leave", "", "Pay")
    text = join_pages(pages)
    assert page_starts(pages) == [0, 6, 7]
    assert [text[start : start + 3] for start in page_starts(pages)] == ["Lea", "\nPa", "Pay"]


@pytest.mark.parametrize(
    ("places", "parts"),
    [
        ([], [(0, 9)]),
        ([4], [(0, 4), (4, 9)]),
        ([6, 4, 6, 0, 9, 12, -1], [(0, 4), (4, 6), (6, 9)]),
    ],
    ids=["none", "one", "repeated, unordered and outside"],
)
def test_parts_cover_the_text_in_order(places: list[int], parts: list[tuple[int, int]]) -> None:
    assert parts_between(places, 9) == parts


def test_a_path_has_the_headings_above_and_no_neighbours() -> None:
    sections = [
        heading("Leave", 1, 0),
        heading("Parents", 3, 10),
        heading("Care", 2, 20),
        heading("Pay", 1, 30),
    ]
    assert section_paths(sections) == ["Leave", "Leave › Parents", "Leave › Care", "Pay"]


def test_a_chunk_may_not_end_between_a_heading_and_the_heading_below() -> None:
    text = "Leave\n\nCare\nTen days.\n\nPay\nMonthly."
    sections = [heading(title, level, text.index(title)) for title, level in (("Pay", 1), ("Leave", 1), ("Care", 2))]
    assert breaks_of(sections) == [text.index("Leave"), text.index("Pay")]


def test_a_chunk_knows_its_pages_and_the_section_with_most_of_it() -> None:
    pages = pages_of("Leave\nTen days a year.", "Pay\nMonthly, on the last working day.")
    text = join_pages(pages)
    sections = [heading("Pay", 1, text.index("Pay")), heading("Leave", 1, 0)]
    (chunk,) = chunks_from_spans(pages, sections, [(0, len(text))])
    assert (chunk.first_page, chunk.last_page, chunk.section) == (1, 2, "Pay")
    first, second = chunks_from_spans(pages, sections, [(0, 22), (22, len(text))])
    assert (first.last_page, first.section, second.first_page, second.section) == (1, "Leave", 2, "Pay")


def test_blank_and_repeated_spans_give_no_chunk() -> None:
    pages = pages_of("  Ten days.  \n ")
    chunks = chunks_from_spans(pages, [], [(0, 3), (0, 13), (6, 10), (11, 15)])
    assert [(chunk.index, chunk.content) for chunk in chunks] == [(0, "T"), (1, "Ten days.")]
    exact = chunks_from_spans(pages, [], [(0, 13), (6, 10)], is_exact=True)
    assert [chunk.content for chunk in exact] == ["Ten days.", "days"]


@pytest.mark.parametrize(
    ("columns", "is_repeated"), [(2, True), (22, True), (23, False)], ids=["two columns", "298 characters", "312"]
)
def test_a_chunk_within_a_table_begins_with_short_heads(columns: int, is_repeated: bool) -> None:
    head = " | ".join(["Kind", *(f"Days for {letter * 2}" for letter in ascii_lowercase[: columns - 1])])
    paid, care = (" | ".join([name, *["25"] * (columns - 1)]) for name in ("Paid", "Care"))
    text = f"{head}\n{paid}\n{care}\n\nAsk HR."
    starts = [text.index("Care"), text.index("Ask")]
    inside, below = chunks_from_spans(pages_of(text), [], [(starts[0], starts[1]), (starts[1], len(text))])
    assert inside.content == (f"{head}\n{care}" if is_repeated else care)
    assert below.content == "Ask HR."


def test_a_piece_puts_its_text_before_the_chunk_and_not_into_the_span() -> None:
    (chunk,) = chunks_from_spans(pages_of("Ten days."), [], [Piece(0, 9, {"year": 2026}, before="Leave")])
    assert (chunk.content, chunk.start, chunk.end, chunk.metadata) == ("Leave\n\nTen days.", 0, 9, {"year": 2026})
