from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from rag.types import ChunkingMethod
from rag.ui.document_names import METHOD_HELP, METHODS
from rag.ui.formats import has_pages
from rag.ui.original_text import PART_CHARACTERS, part_with, parts_of, text_html


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


def test_text_of_a_document_is_shown_as_text_with_its_passage_marked() -> None:
    html = text_html("<script>x</script> & more", mark=(8, 9), label='"><img src=x>')
    assert "<script>" not in html
    assert "<img" not in html
    assert ">x</mark>" in html
    assert "<mark" not in text_html("plain")


def test_every_way_of_cutting_has_a_name_and_a_sentence() -> None:
    assert set(METHODS) == set(METHOD_HELP) == set(get_args(ChunkingMethod))
    assert all(sentence.endswith(".") for sentence in METHOD_HELP.values())


def test_only_pdfs_have_pages_to_turn_to() -> None:
    assert has_pages("rules.PDF")
    assert has_pages("rules")
    assert not has_pages("rules.docx")
    assert not has_pages("README.md")
