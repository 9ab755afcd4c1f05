"""The boosts of the source documents, and the orders they make."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from rag.profiles import NOTICES, PORTFOLIO
from rag.profiles.profile import Options
from rag.providers.registry import Providers
from rag.retrieval.evidence import Coverage, PassageSignals, ScoredHit
from rag.retrieval.ranking import (
    Signals,
    category_factor,
    multi_signal_score,
    of_passage,
    ordered,
    priority,
    quality_factor,
    recency_factor,
    signals_from,
    year_factor,
)
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Identity, Question, SearchFilters, SearchResult
from tests.retrieval.shelf import Shelf

TODAY = date(2026, 11, 21)
CAME = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "factor"),
    [(0, 1.5), (7, 1.5), (8, 1.3), (30, 1.3), (31, 1.1), (90, 1.1), (91, 1.0), (365, 1.0), (366, 0.9), (4000, 0.9)],
)
def test_recency_is_that_of_source_000(days: int, factor: float) -> None:
    written = TODAY - timedelta(days=days)
    steps, older = NOTICES.ranking.recency_steps, NOTICES.ranking.recency_older
    assert recency_factor(written, TODAY, steps=steps, older=older) == factor


def test_a_post_of_tomorrow_counts_as_new() -> None:
    assert recency_factor(TODAY + timedelta(days=1), TODAY, steps=NOTICES.ranking.recency_steps, older=0.9) == 1.5


def test_the_example_of_source_001_comes_out() -> None:
    score = multi_signal_score(
        0.85,
        category=category_factor(["resume"], dict(PORTFOLIO.ranking.category_boosts)),
        year=year_factor([2026], 2026, PORTFOLIO.ranking.year_boosts),
        quality=quality_factor("word " * 250, least_words=100, most_words=300, factor=1.1),
    )
    assert score == pytest.approx(1.581, abs=0.001)


@pytest.mark.parametrize(("year", "factor"), [(2027, 1.3), (2026, 1.3), (2025, 1.2), (2024, 1.1), (2023, 1.0)])
def test_years_count_from_this_one(year: int, factor: float) -> None:
    assert year_factor([year], 2026, PORTFOLIO.ranking.year_boosts) == factor


def test_what_is_not_known_raises_nothing() -> None:
    assert category_factor([], dict(PORTFOLIO.ranking.category_boosts)) == category_factor(["recipes"], {}) == 1.0
    assert year_factor([], 2026, PORTFOLIO.ranking.year_boosts) == 1.0
    for words in (0, 99, 301):
        assert quality_factor("word " * words, least_words=100, most_words=300, factor=1.1) == 1.0


def test_pinned_comes_before_important_before_regular() -> None:
    classes = [
        priority(is_pinned=True, is_important=False),
        priority(is_pinned=False, is_important=True),
        priority(is_pinned=False, is_important=False),
    ]
    assert classes == [0, 1, 2]


def test_a_pinned_post_never_displaces_a_relevant_one() -> None:
    judged = [
        ScoredHit(
            result=SearchResult(
                chunk_id=UUID(int=number), document_id=UUID(int=number), collection_id=UUID(int=1), title="Post",
                file_name="", content="", first_page=1, last_page=1, section="", chunk_index=0, metadata={},
                score=1 - number / 10,
            ),
            coverage=Coverage(share=1.0, matched=("post",), words=1), signals=PassageSignals(share=1.0), words=(),
            language="en",
        )
        for number in (1, 2, 3)
    ]  # fmt: skip
    signals = {UUID(int=n): Signals(written_on=TODAY, is_pinned=n > 1) for n in (1, 2, 3)}
    found = ordered(judged, signals, profile=NOTICES, top_k=2, today=TODAY)
    assert [item.result.chunk_id.int for item in found] == [2, 1]


def test_a_backdated_day_comes_before_the_day_of_the_post_and_that_of_the_file() -> None:
    backdated, posted = datetime(2024, 5, 1, tzinfo=UTC), "2025-06-01T10:00:00Z"
    both = signals_from({"backdatedAt": backdated.timestamp() * 1000, "createdAt": posted}, CAME)
    assert both.written_on == date(2024, 5, 1)
    assert signals_from({"createdAt": posted}, CAME).written_on == date(2025, 6, 1)
    assert signals_from({"backdatedAt": "soon", "years": "x"}, CAME).written_on == date(2026, 11, 20)


def test_metadata_is_read_in_both_spellings() -> None:
    camel = signals_from({"isPinned": True, "isImportant": True, "categorySlug": "notice", "year": "2025"}, CAME)
    snake = signals_from({"is_pinned": True, "is_important": True, "categories": ["notice"], "years": [2025]}, CAME)
    assert camel == snake
    assert (snake.is_pinned, snake.categories, snake.years) == (True, ("notice",), (2025,))


def asked(text: str, asker: Identity, shelf: Shelf) -> Question:
    return Question(text=text, identity=asker, collection=shelf.collection)


def test_notices_are_pinned_then_important_then_recent(database: Database, shelf: Shelf, asker: Identity) -> None:
    text = "The parking garage is closed."
    posts: dict[str, dict[str, Any]] = {
        "old": {"createdAt": "2020-01-01"},
        "new": {"createdAt": "2026-11-20"},
        "important": {"createdAt": "2020-01-01", "isImportant": True},
        "pinned": {"createdAt": "2020-01-01", "isPinned": True},
    }
    for title, metadata in posts.items():
        shelf.add(title, [f"{text} {title}"], metadata=metadata)
    retriever = Retriever(database, Providers(Settings()), today=lambda: TODAY)

    def titles(options: Options | None = None) -> list[str]:
        found = retriever.retrieve(asked("parking garage closed", asker, shelf), profile=NOTICES, options=options)
        return [c.title for c in found.response.citations]

    assert titles() == ["pinned", "important", "new", "old"]
    assert titles(Options(pinned_first=False))[0] == "new"


def test_a_resume_comes_before_a_repository(database: Database, shelf: Shelf, asker: Identity) -> None:
    resume = shelf.add("mine", ["Skills: Python and Postgres."], metadata={"categories": ["resume"], "years": [2026]})
    shelf.add("code", ["Skills: Python and Postgres."], metadata={"categories": ["github"], "years": [2020]})
    shelf.add("else", ["Skills: Python and Postgres."], metadata={"categories": ["hobby"]})
    found = Retriever(database, Providers(Settings()), today=lambda: TODAY).retrieve(
        asked("Python and Postgres", asker, shelf), profile=PORTFOLIO
    )
    documents: list[UUID] = [c.document_id for c in found.response.citations]
    assert documents[0] == resume
    assert len(documents) == 3
    scores = [item.result.score for item in found.cited]
    assert scores[0] / scores[-1] == pytest.approx(1.3 * 1.3, rel=0.15)


def test_the_question_of_the_source_is_searched_in_its_categories(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("journey", ["AI projects I built and what they taught me."], metadata={"categories": ["journey"]})
    shelf.add("github", ["AI projects I built: an index."], metadata={"categories": ["github"]})
    retriever = Retriever(database, Providers(Settings()))
    found = retriever.retrieve_context(asked("What AI projects have you built?", asker, shelf), profile=PORTFOLIO)
    assert [c.title for c in found.citations] == ["github"]
    assert any(s.name == "limits" and "github, resume, linkedin" in s.detail for s in found.rag_details.steps or [])


def test_limits_that_leave_nothing_are_dropped(database: Database, shelf: Shelf, asker: Identity) -> None:
    shelf.add("hobby", ["AI projects I built."], metadata={"categories": ["hobby"]})
    found = Retriever(database, Providers(Settings())).retrieve_context(
        asked("What AI projects have you built?", asker, shelf), profile=PORTFOLIO
    )
    assert [c.title for c in found.citations] == ["hobby"]
    assert "0 of 1 passages" in next(step.detail for step in found.rag_details.steps or [] if step.name == "filter")


def test_limits_within_the_search_that_leave_nothing_are_dropped(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("hobby", ["AI projects I built."], metadata={"categories": ["hobby"]})
    found = Retriever(database, Providers(Settings())).retrieve_context(
        asked("What AI projects have you built?", asker, shelf), profile=PORTFOLIO.changed(filters_after_search=False)
    )
    assert [c.title for c in found.citations] == ["hobby"]
    assert "search everywhere" in [step.name for step in found.rag_details.steps or []]


@pytest.mark.parametrize("afterwards", [True, False])
def test_the_kinds_that_the_question_means_are_looked_at_after_the_search_or_within_it(
    afterwards: bool, database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("diary", ["The projects I built were a story."], metadata={"categories": ["journey"]})
    shelf.add("planner", ["A project I built: shift planner."], metadata={"categories": ["github"]})
    found = Retriever(database, Providers(Settings())).retrieve_context(
        asked("Which projects did you build?", asker, shelf),
        profile=PORTFOLIO.changed(filters_after_search=afterwards),
    )
    assert [c.title for c in found.citations] == ["planner"]


def test_a_passages_own_year_comes_before_its_documents() -> None:
    one = SearchResult(
        chunk_id=UUID(int=1), document_id=UUID(int=1), collection_id=UUID(int=1), title="CV", file_name="cv.pdf",
        content="Editor", first_page=1, last_page=1, section="", chunk_index=0,
        metadata={"year": "2019", "category": "resume"},
    )  # fmt: skip
    signals = of_passage(one, Signals(written_on=date(2026, 1, 1), years=(2026,)))
    assert (signals.years, signals.categories) == ((2019,), ("resume",))


JOBS = [
    "I worked on search at Ottermere and wrote Python.",
    "I worked on search at a paper shop and wrote Python.",
    "My work: search, Python and all that I worked on.",
]
OF_JOBS: list[dict[str, Any]] = [
    {"start_year": "2020", "end_year": "2022"},
    {"start_year": "2023", "end_year": "present"},
    {},
]


@pytest.mark.parametrize("is_given", [True, False])
def test_of_a_year_are_the_jobs_that_lasted_in_it_and_no_passage_without_a_year(
    is_given: bool, database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("CV", JOBS, metadata={"years": [2021, 2024]}, of_passages=OF_JOBS)
    shelf.add("Talks", ["Search in Python: what I worked on."], metadata={"years": [2021]})
    question = asked("What did you work on?" if is_given else "What did you work on in 2021?", asker, shelf)
    if is_given:
        question = replace(question, filters=SearchFilters(years=(2021,)))
    found = Retriever(database, Providers(Settings())).retrieve_context(question, profile=PORTFOLIO)
    assert sorted(citation.passage for citation in found.citations) == [JOBS[0], "Search in Python: what I worked on."]


def test_a_year_that_no_passage_is_of_is_dropped_where_only_the_question_names_it(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("CV", JOBS, of_passages=OF_JOBS)
    question = asked("What did you work on in 2015?", asker, shelf)
    retriever = Retriever(database, Providers(Settings()))
    assert retriever.retrieve_context(question, profile=PORTFOLIO).citations
    given = replace(question, filters=SearchFilters(years=(2015,)))
    assert not retriever.retrieve_context(given, profile=PORTFOLIO).citations
