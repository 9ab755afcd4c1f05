from __future__ import annotations

from typing import get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answering.citations import telling_span
from rag.types import ChunkingMethod, DocumentChunk, DocumentPage
from rag.ui.formats import METHOD_HELP, METHODS, has_pages
from rag.ui.page_view import MARK, PART_CHARACTERS, STRONG_MARK, page_with_most, part_with, parts_of, text_html


@given(st.text(alphabet="ab \n", max_size=300), st.integers(1, 60), st.floats(0, 1))
def test_parts_hold_the_whole_text_in_order_and_one_begins_a_little_before_the_passage(
    text: str, times: int, share: float
) -> None:
    text *= times
    passage = int(len(text) * share)
    parts = parts_of(text, passage)
    assert "".join(text[start:end] for start, end in parts) == text
    assert all(end - start <= PART_CHARACTERS * 4 // 3 for start, end in parts)
    start, end = parts[part_with(parts, passage)]
    assert start <= passage <= max(end, len(text))


def test_a_passage_is_in_sight_when_its_part_opens() -> None:
    text = "A line of some length that says little.\n" * 400 + "The passage." + "\nMore." * 300
    passage = text.index("The passage.")
    parts = parts_of(text, passage)
    assert passage - parts[part_with(parts, passage)][0] < 400


@pytest.mark.parametrize(
    ("terms", "page"),
    [(("forms",), 2), (("parental", "weeks", "forms"), 3), (("forms", "weeks"), 2), (("discount",), 2), ((), 2)],
)
def test_a_passage_over_two_pages_opens_at_the_one_with_most_of_what_is_marked(
    terms: tuple[str, ...], page: int
) -> None:
    """Words of the page that are not of the passage do not count, and of equal pages the first is opened."""
    texts = ["Parental leave, weeks and weeks.", "Discount. Bring the forms", "of Parental leave: 13 weeks. Discount."]
    text = "\n".join(texts)
    document = UUID(int=1)
    pages = [
        DocumentPage(
            document_id=document, number=number, text=part, characters=len(part), method="text", language="en",
            label="", warnings=[],
        )
        for number, part in enumerate(texts, 1)
    ]  # fmt: skip
    start, end = text.index("Bring"), text.index("13 weeks.") + 9
    passage = DocumentChunk(
        id=UUID(int=2), document_id=document, chunk_index=0, content=text[start:end], first_page=2, last_page=3,
        start_character=start, end_character=end, section="", tokens=9, embedding_model="", has_embedding=False,
        metadata={},
    )  # fmt: skip
    assert page_with_most(terms, pages, passage) == page


def test_text_of_a_document_is_shown_as_text_with_its_passage_marked() -> None:
    html = text_html("<script>x</script> & more", mark=(8, 9), label='"><img src=x>')
    assert "<script>" not in html
    assert "<img" not in html
    assert ">x</mark>" in html
    assert "<mark" not in text_html("plain")
    assert 'dir="auto"' in text_html("plain")


def test_the_sentence_of_a_passage_stands_out_in_it() -> None:
    passage = "Leave is planned.\n\nEveryone has 25 days\nof paid leave. Five may be kept."
    span = telling_span(passage, ("25", "paid"))
    assert span is not None
    assert passage[slice(*span)] == "Everyone has 25 days\nof paid leave."
    html = text_html(f"<b>{passage}", mark=(3, 3 + len(passage)), strong=(span[0] + 3, span[1] + 3))
    inner = f'<mark style="{STRONG_MARK}">Everyone has 25 days\nof paid leave.</mark>'
    assert f'&lt;b&gt;<mark style="{MARK}">Leave is planned.\n\n{inner} Five may be kept.</mark>' in html
    assert telling_span(passage, ("dental",)) is None
    rules = "Report an illness before it begins to bite. Illness is paid for 14 weeks."
    told = telling_span(rules, ("Illness", "illness", "begins", "14"))
    assert told is not None
    assert rules[slice(*told)] == "Illness is paid for 14 weeks.", "of equal ones that with the answer's figures"
    assert telling_span(passage, ()) is None
    headed = "3.1 Private health plan\n\nThe excess is £150 in a year, and 6.50 a month. Your plan pays 50 pounds."
    told = telling_span(headed, ("health", "plan", "50"))
    assert told is not None
    assert headed[slice(*told)] == "Your plan pays 50 pounds.", "no heading, and no digits of another figure"
    assert telling_span("", ("a",)) is None
    table = "| Years | Days |\n|---|---|\n| 5 | 28 |\n| 10 | 30 |"
    row = telling_span(table, ("10", "30"))
    assert row is not None
    assert table[slice(*row)] == "| 10 | 30 |"
    # What a mark is cut to, its sentence is cut to as well.
    assert text_html("abcdef", mark=(0, 3), strong=(2, 9)).count("<mark") == 2
    assert text_html("abcdef", mark=(0, 3), strong=(4, 9)).count("<mark") == 1


def test_every_way_of_cutting_has_a_name_and_a_sentence() -> None:
    assert set(METHODS) == set(METHOD_HELP) == set(get_args(ChunkingMethod))
    assert all(sentence.endswith(".") for sentence in METHOD_HELP.values())


def test_only_pdfs_have_pages_to_turn_to() -> None:
    assert has_pages("rules.PDF")
    assert has_pages("rules")
    assert not has_pages("rules.docx")
    assert not has_pages("README.md")
