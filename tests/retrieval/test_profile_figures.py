"""The figures of the source documents at work: how many are looked at and kept, by what they are raised, where cut."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from rag.profiles import CIVIL, HR, LEGAL, NOTICES, PORTFOLIO
from rag.profiles.profile import Options, Profile
from rag.providers.registry import Providers
from rag.retrieval.retriever import RetrievalResult, Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.text.tokens import estimate_tokens
from rag.types import Identity, Question
from tests.retrieval.shelf import Shelf

TODAY = date(2026, 6, 15)


def retrieve(
    database: Database, shelf: Shelf, asker: Identity, text: str, profile: Profile, options: Options | None = None
) -> RetrievalResult:
    question = Question(text=text, identity=asker, collection=shelf.collection)
    retriever = Retriever(database, Providers(Settings()), today=lambda: TODAY)
    return retriever.retrieve(question, profile=profile, options=options)


@pytest.fixture
def board(shelf: Shelf) -> Shelf:
    """More posts on one thing than any profile looks at, each with words of its own."""
    for number in range(36):
        shelf.add(f"Post {number}", [f"Settlement support: form A{number}, desk {number * 7}, floor {number % 9}."])
    return shelf


@pytest.mark.parametrize(
    ("profile", "candidates", "kept"),
    [
        (NOTICES, 30, 5),  # 000: topK 10, three times as many fetched, rerankTopN 5
        (PORTFOLIO, 20, 5),  # 001: limit 5, limit × 4 fetched
        (LEGAL, 20, 5),  # 002: 상위 5개; how many more are looked at is not said
        (CIVIL, 20, 5),  # 003 says neither
        (HR, 20, 5),  # 004: DEFAULT_TOP_K 5
    ],
    ids=lambda value: value.name if isinstance(value, Profile) else None,
)
def test_as_many_candidates_are_ordered_and_passages_kept_as_the_document_says(
    profile: Profile, candidates: int, kept: int, database: Database, board: Shelf, asker: Identity
) -> None:
    found = retrieve(database, board, asker, "Settlement support", profile)
    details = found.response.rag_details
    assert len(found.hits) == len(details.search.raw_results) == details.search.vector_top_k == candidates
    assert len(found.cited) == details.search.final_top_k == kept


@pytest.mark.parametrize(
    ("profile", "options", "candidates", "kept"),
    [
        (NOTICES, Options(reranking=False), 30, 10),
        (NOTICES, Options(top_k=4), 12, 4),
        (NOTICES, Options(rerank_top_n=3), 30, 3),
        (PORTFOLIO, Options(top_k=7), 28, 7),
        (HR, Options(top_k=8), 32, 8),
    ],
)
def test_a_call_for_another_number_keeps_the_documents_proportion(
    profile: Profile, options: Options, candidates: int, kept: int, database: Database, board: Shelf, asker: Identity
) -> None:
    found = retrieve(database, board, asker, "Settlement support", profile, options)
    assert (len(found.hits), len(found.cited)) == (candidates, kept)


def test_a_post_is_raised_by_the_factor_of_its_age(database: Database, shelf: Shelf, asker: Identity) -> None:
    """000, "Recency Boost", on both sides of every limit."""
    factors = {0: 1.5, 7: 1.5, 8: 1.3, 30: 1.3, 31: 1.1, 90: 1.1, 91: 1.0, 365: 1.0, 366: 0.9, 4000: 0.9}
    for days in factors:
        metadata = {"backdatedAt": (TODAY - timedelta(days=days)).isoformat(), "createdAt": TODAY.isoformat()}
        shelf.add(f"Post {days}", ["Settlement support is paid."], metadata=metadata)
    found = retrieve(database, shelf, asker, "settlement support", NOTICES, Options(reranking=False))
    raised = {int(i.result.title.split()[1]): i.result.score / (i.result.similarity or 0) for i in found.cited}
    assert raised == pytest.approx(factors)


@pytest.mark.parametrize(
    ("category", "year", "words", "factor"),
    [
        ("resume", 2026, 250, 1.3 * 1.3 * 1.1),  # the document's example: 0.85 becomes 1.58
        ("linkedin", 2025, 100, 1.25 * 1.2 * 1.1),
        ("journey", 2024, 300, 1.2 * 1.1 * 1.1),
        ("github", 2023, 99, 1.15),
        ("generic", 2026, 301, 1.3),
    ],
)
def test_a_passage_is_raised_by_its_kind_year_and_length(
    category: str, year: int, words: int, factor: float, database: Database, shelf: Shelf, asker: Identity
) -> None:
    text = " ".join(["Python", "and", "Postgres", *(f"w{n}" for n in range(words - 3))])
    shelf.add("Paper", [text], metadata={"categories": [category], "years": [year]})
    found = retrieve(database, shelf, asker, "Python and Postgres", PORTFOLIO)
    (cited,) = found.cited
    assert cited.result.score / (cited.result.similarity or 0) == pytest.approx(factor)


def test_a_portfolio_is_joined_by_rules_and_ends_at_8000_characters(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    for number in range(4):
        shelf.add(f"Project {number}", [f"Python project {number}. " + f"Step {number} of it was long. " * 120])
    found = retrieve(database, shelf, asker, "Python project", PORTFOLIO)
    text = found.response.context_text
    assert 7990 <= len(text) <= 8000
    assert len(text.split("\n\n---\n\n")) == len(found.response.citations) == 3
    whole, cut = found.response.citations[0].passage, found.response.citations[-1].passage
    assert len(cut) < len(whole)


def test_notices_take_about_4000_tokens(database: Database, shelf: Shelf, asker: Identity) -> None:
    for number in range(10):
        shelf.add(f"공지 {number}", ["정착지원금 " + f"신청서는 {number}번 창구에 냅니다. " * 80], language="ko")
    found = retrieve(database, shelf, asker, "정착지원금", NOTICES, Options(reranking=False))
    assert 2500 < estimate_tokens(found.response.context_text) <= 4000
    assert 0 < len(found.response.citations) < 10


def test_in_the_formula_of_003_a_passage_with_the_same_first_100_characters_is_the_same(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    same = "Parking is settled by the traffic department. " * 3
    shelf.add("Leaflet", [same[:100] + ending for ending in (" One.", " Two.")] + [same[:99] + "! Three."])
    found = retrieve(database, shelf, asker, "parking traffic department", CIVIL)
    assert sorted(result.content[99:] for result in found.hits) == sorted({r.content[99:] for r in found.hits})
    assert len(found.hits) == 2
    assert len(retrieve(database, shelf, asker, "parking traffic department", HR).hits) == 3
