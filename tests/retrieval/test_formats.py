from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from rag.profiles import HR, LEGAL, PORTFOLIO
from rag.retrieval.context_builder import ContextPassage, context_from, fill_template, format_context
from rag.retrieval.evidence import Coverage, PassageSignals, ScoredHit
from rag.types import SearchResult

DOCUMENT = UUID(int=7)


def result(content: str, *, title: str = "Guide", **metadata: Any) -> SearchResult:
    return SearchResult(
        chunk_id=uuid4(),
        document_id=DOCUMENT,
        collection_id=uuid4(),
        title=title,
        file_name="guide.pdf",
        content=content,
        first_page=3,
        last_page=4,
        section="Leave › Days",
        chunk_index=0,
        metadata=metadata,
    )


def passage(content: str, **metadata: Any) -> ContextPassage:
    return ContextPassage(number=1, result=result(content, **metadata), text=content)


def judged(content: str) -> ScoredHit:
    return ScoredHit(
        result=result(content),
        coverage=Coverage(share=0.0, matched=(), words=0),
        signals=PassageSignals(share=1.0),
        words=(),
        language="en",
    )


def test_a_label_leaves_out_what_is_not_known_and_falls_back_to_the_title() -> None:
    template = LEGAL.answer.context_format
    assert (
        fill_template(template, passage("본문", topic="양형기준", crime_type="절도")) == "【양형기준 - 절도】\n본문\n\n"
    )
    assert fill_template(template, passage("본문", topic="판례", crime_type=None)) == "【판례】\n본문\n\n"
    assert fill_template(template, passage("본문", title="양형기준표")) == "【양형기준표】\n본문\n\n"


def test_braces_and_labels_in_a_text_stay_as_they_are() -> None:
    assert fill_template("{title}: {content}", passage("{title} 【 - 】 {x}")) == "Guide: {title} 【 - 】 {x}"


def test_a_field_is_read_in_either_spelling_and_the_passages_own_comes_first() -> None:
    one = replace(
        passage("x", repo_name="own"), document_metadata={"repoName": "other", "yearOf": 2025, "tags": ["a", "b"]}
    )
    assert fill_template("{repo_name} {year_of} {tags} {unknown}|", one) == "own 2025 a, b |"


def test_without_a_form_of_its_own_a_passage_stands_under_its_place() -> None:
    assert format_context(HR, [passage("Text.")]) == "[1] Guide, pp. 3–4, Leave › Days\nText."


def test_a_passage_says_the_day_of_its_document_where_it_is_known() -> None:
    metadata = {
        DOCUMENT: {"file_created_at": "2025-01-02T10:00:00+00:00", "file_modified_at": "2026-03-01T10:00:00+00:00"}
    }
    text, _ = context_from([judged("Text.")], profile=HR, metadata=metadata)
    assert text == "[1] Guide (2026-03-01), pp. 3–4, Leave › Days\nText."
    text, _ = context_from([judged("Text.")], profile=HR, metadata={DOCUMENT: {"createdAt": "2024-05-06"}})
    assert text.startswith("[1] Guide (2024-05-06), pp. 3–4")


def test_documents_of_one_title_are_told_apart() -> None:
    def of(number: int, file_name: str) -> ScoredHit:
        item = judged(f"Text {number}.")
        return replace(item, result=replace(item.result, document_id=UUID(int=number), file_name=file_name))

    metadata = {UUID(int=1): {"file_modified_at": "2025-01-02"}, UUID(int=2): {"file_modified_at": "2026-01-02"}}
    items = [of(1, "guide-2025.pdf"), of(2, "guide-2026.pdf"), of(1, "guide-2025.pdf")]
    text, _ = context_from(items, profile=HR, metadata=metadata)
    assert [line for line in text.splitlines() if line.startswith("[")] == [
        "[1] Guide (guide-2025.pdf, 2025-01-02), pp. 3–4, Leave › Days",
        "[2] Guide (guide-2026.pdf, 2026-01-02), pp. 3–4, Leave › Days",
        "[3] Guide (guide-2025.pdf, 2025-01-02), pp. 3–4, Leave › Days",
    ]
    text, _ = context_from([of(1, "guide.pdf"), of(2, "guide.pdf")], profile=HR)
    assert "[1] Guide (guide.pdf, copy 1)" in text
    assert "[2] Guide (guide.pdf, copy 2)" in text


def test_a_form_of_its_own_stays_as_it_is() -> None:
    metadata = {DOCUMENT: {"file_modified_at": "2026-03-01"}}
    text, _ = context_from([judged("본문")], profile=LEGAL, metadata=metadata)
    assert "2026-03-01" not in text
    assert text.startswith("[1] 【Guide】")


def test_passages_are_joined_by_the_profiles_joiner_and_cut_at_its_characters() -> None:
    text, kept = context_from([judged("a" * 3000), judged("b" * 3000), judged("c" * 3000)], profile=PORTFOLIO)
    assert len(text) == 8000
    assert [item.result.content[0] for item in kept] == ["a", "b", "c"]
    assert text.count("\n\n---\n\n") == 2
    assert len(kept[-1].result.content) < 3000  # what is cited is what was read


def test_a_passage_of_which_nothing_fits_is_not_cited() -> None:
    _, kept = context_from([judged("a" * 990), judged("b" * 100)], profile=PORTFOLIO.changed(context_characters=1030))
    assert [item.result.content[0] for item in kept] == ["a"]


def test_the_best_passage_is_shortened_where_it_alone_is_too_long() -> None:
    _, kept = context_from([judged("word " * 2000), judged("more")], profile=HR.changed(context_tokens=200))
    assert len(kept) == 1
    assert 0 < len(kept[0].result.content) < 10_000
