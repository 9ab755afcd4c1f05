from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag import chunk_text
from rag.errors import InvalidInput
from rag.ingestion.chunking import chunk_document
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.text.spans import join_pages
from rag.types import Chunk, Page, Section
from tests.patience import grows_evenly

TEXTS = st.text(
    st.one_of(
        st.sampled_from(list("ab  \n.!?。؟。、'’(»1,가나漢é\u0301\u200d👩🏽")), st.characters(exclude_categories=["Cs"])
    ),
    max_size=400,
)
METHODS = st.sampled_from(["fixed", "smart", "semantic"])
EMBEDDER = LexicalEmbedder()


def pages_of(*texts: str) -> list[Page]:
    return [Page(number=number, text=text) for number, text in enumerate(texts, start=1)]


def require_cover(text: str, chunks: list[Chunk], chunk_size: int) -> None:
    """Nothing lost, nothing invented, order and limits kept."""
    covered = 0
    for index, chunk in enumerate(chunks):
        assert chunk.index == index
        own = text[chunk.start : chunk.end]
        # Before the text there may be the heads of the table it begins within, and nothing else.
        assert chunk.content.endswith(own)
        assert chunk.content.removesuffix(own).rstrip("\n") in text[: chunk.start]
        assert own.strip()
        assert len(own) <= chunk_size
        assert not text[covered : chunk.start].strip()
        assert chunk.end > covered
        covered = chunk.end
    assert not text[covered:].strip()


@example([":|\n|", "b"], "smart", 2, 0.0, 0)
@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), METHODS, st.integers(1, 90), st.floats(0, 0.99), st.integers(0, 60))
def test_chunks_of_any_text_hold_all_of_it_in_order_within_limits(
    texts: list[str], method: str, chunk_size: int, share: float, minimum: int
) -> None:
    pages = pages_of(*texts)
    text = join_pages(pages)
    sections = [Section(title="S", level=1, page=1, start=position) for position in range(0, len(text), 50)]
    overlap = min(int(chunk_size * share), chunk_size - 1)
    options = {"chunk_size": chunk_size, "overlap": overlap, "minimum_chunk_size": minimum, "embedder": EMBEDDER}
    chunks = chunk_document(pages, sections, method=method, **options)  # type: ignore[arg-type]
    require_cover(text, chunks, chunk_size)
    assert chunks == chunk_document(pages, sections, method=method, **options)  # type: ignore[arg-type]
    for chunk in chunks:
        before = join_pages(pages[: chunk.first_page - 1])
        assert len(before) <= chunk.start
        assert chunk.end <= len(join_pages(pages[: chunk.last_page]))


@pytest.mark.parametrize("method", ["fixed", "smart", "semantic"])
@pytest.mark.parametrize("text", ["", "   \n\n ", "x", "One sentence."])
def test_short_texts_give_one_chunk_and_blank_ones_none(method: str, text: str) -> None:
    chunks = chunk_text(text, method=method, embedder=EMBEDDER)  # type: ignore[arg-type]
    assert [chunk.content for chunk in chunks] == ([text.strip()] if text.strip() else [])


def test_smart_chunks_end_with_sentences_and_overlap_by_whole_ones() -> None:
    text = " ".join(f"Sentence number {n} tells of the rule." for n in range(200))
    chunks = chunk_text(text, chunk_size=300, overlap=80)
    assert all(chunk.content.endswith("rule.") and chunk.content.startswith("Sentence") for chunk in chunks)
    assert all(later.start < earlier.end for earlier, later in itertools.pairwise(chunks))


def test_sentence_ends_of_chinese_japanese_and_arabic_are_known() -> None:
    for sentence in ("有給休暇は一年に二十五日です。", "员工每年有二十五天假期。", "هل لدي إجازة؟ "):
        chunks = chunk_text(sentence * 60, chunk_size=100, overlap=0, minimum_chunk_size=10)
        assert all(chunk.content.endswith(sentence.strip()[-1]) for chunk in chunks)


def test_a_number_or_an_abbreviation_does_not_end_a_sentence() -> None:
    text = "See Art. Five of No. Seven with 3.5 days for Dr. Brown in all cases. " * 20
    chunks = chunk_text(text, chunk_size=160, overlap=0, minimum_chunk_size=10)
    assert all(chunk.content.endswith("cases.") for chunk in chunks)


def test_a_chunk_does_not_end_with_the_heading_of_the_next_section() -> None:
    first = "1 Leave\n1.1 Days\n" + "Everyone has leave every year. " * 20
    second = "2 Pay\n2.1 Payday\n" + "Pay comes on the last day. " * 20
    sections = [
        Section(title="1 Leave", level=1, page=1, start=0),
        Section(title="1.1 Days", level=2, page=1, start=8),
        Section(title="2 Pay", level=1, page=2, start=len(first) + 1),
        Section(title="2.1 Payday", level=2, page=2, start=len(first) + 7),
    ]
    chunks = chunk_document(pages_of(first, second), sections, chunk_size=800, overlap=100)
    assert [chunk.content[:7] for chunk in chunks] == ["1 Leave", "2 Pay\n2"]
    assert [chunk.section for chunk in chunks] == ["1 Leave › 1.1 Days", "2 Pay › 2.1 Payday"]
    assert [(chunk.first_page, chunk.last_page) for chunk in chunks] == [(1, 1), (2, 2)]


def test_a_short_rest_takes_text_from_the_chunk_before() -> None:
    text = "Rule number one holds for all. " * 33 + "End."
    chunks = chunk_text(text, chunk_size=1000, overlap=0, minimum_chunk_size=100)
    assert all(len(chunk.content) >= 100 for chunk in chunks)
    require_cover(text, chunks, 1000)


def test_semantic_chunks_end_where_the_topic_changes() -> None:
    leave = "Paid leave is requested in the leave calendar. The leave calendar shows all leave days. " * 4
    pay = "The payroll office transfers the salary monthly. Salary questions go to the payroll office. " * 4
    chunks = chunk_text(leave + pay, method="semantic", chunk_size=2000, overlap=0, embedder=EMBEDDER)
    assert len(leave) in {chunk.start for chunk in chunks}


def test_sizes_that_do_not_fit_and_a_missing_embedder_are_refused() -> None:
    with pytest.raises(InvalidInput):
        chunk_text("text", chunk_size=100, overlap=100)
    with pytest.raises(InvalidInput):
        chunk_document(pages_of("text"), [], method="semantic")


def test_time_grows_with_the_length_of_the_text_only() -> None:
    assert grows_evenly(lambda words: chunk_text("word " * words), 40_000, 320_000, slack=3)
