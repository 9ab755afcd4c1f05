"""Every step of the retrieval switched on and off, for a profile and for a call, with what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from rag.profiles import HR
from rag.profiles.profile import PER_CALL, Options, Profile
from rag.providers.registry import Providers
from rag.retrieval.retriever import RetrievalResult, Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question
from tests.retrieval.shelf import Shelf
from tests.standins.providers import ProviderStandin

#: A profile that does nothing but search; each row switches one step on.
BARE = HR.changed(
    translate_queries=False,
    correct_spelling=False,
    split_questions=False,
    reranking=False,
    refine_order=False,
    collapse_near_repeats=False,
    stitch_neighbours=False,
    only_evidence=False,
    filter_by_category=False,
    recency_steps=((7, 1.5),),
    recency_older=0.5,
    category_boosts=(("news", 3.0),),
    query_patterns=((r"parking", ("news",)),),
    top_k=20,
    candidate_factor=2,
)
VACATION = "Vacation. Every employee has 25 days of vacation a year."
PARKING = "Parking. The company rents forty parking spaces."


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A setting with the value that switches its step on, and how that shows."""

    name: str
    question: str
    shows: Callable[[RetrievalResult], bool]
    #: The step of the details that speaks of it, with a part of what it says.
    said: tuple[str, str] | None
    on: Any = True
    off: Any = False
    beside: dict[str, Any] = field(default_factory=dict)


def passages(found: RetrievalResult) -> list[str]:
    return [citation.passage for citation in found.response.citations]


def titles(found: RetrievalResult) -> list[str]:
    return [citation.title for citation in found.response.citations]


def wordings(found: RetrievalResult) -> list[str]:
    return [query.query for query in found.response.rag_details.search.queries]


def steps(found: RetrievalResult) -> dict[str, str]:
    return {step.name: step.detail for step in found.response.rag_details.steps or []}


def found_of(title: str) -> Callable[[RetrievalResult], bool]:
    return lambda found: set(titles(found)) == {title}


ALL = "vacation parking"
SWITCHES = [
    Switch(
        name="translate_queries",
        question="Hoeveel vakantie krijg ik?",
        shows=lambda found: wordings(found)[0].startswith("How much vacation do I get?"),
        said=("translate", "nl to en: How much vacation do I get?"),
    ),
    Switch(
        name="expand_question",
        question="How many days?",
        shows=lambda found: wordings(found) == ["How many days? holiday leave"],
        said=("rephrase", "holiday leave"),
    ),
    Switch(
        name="alternative_questions",
        question="How many days?",
        shows=lambda found: (
            found.response.rag_details.query.alternative_queries == ["annual leave", "time off"]
            and wordings(found)[1:] == ["annual leave", "time off"]
        ),
        said=("rephrase", "annual leave | time off"),
        on=2,
        off=0,
    ),
    Switch(
        name="decompose_question",
        question="How many days?",
        shows=lambda found: wordings(found)[1:] == ["days of vacation", "days of illness"],
        said=("rephrase", "days of vacation | days of illness"),
    ),
    Switch(
        name="split_questions",
        question="How many vacation days do I have, and what is paid for my parking?",
        shows=lambda found: len(wordings(found)) == 3,
        said=("split", "How many vacation days do I have | what is paid for my parking?"),
    ),
    Switch(
        name="correct_spelling",
        question="vacaton",
        shows=lambda found: (
            wordings(found) == ["vacation"] and found.response.rag_details.query.expanded == ["vacation"]
        ),
        said=("search", "spelling corrected: vacation"),
    ),
    Switch(
        name="strict_threshold",
        question="vacation",
        shows=lambda found: found.response.rag_details.search.below_threshold is not None,
        said=("threshold", "passages cut: not above"),
        beside={"similarity_threshold": 0.9, "threshold_mode": "absolute"},
    ),
    Switch(
        name="search_type",
        question=ALL,
        shows=lambda found: any(result.keyword_score for result in found.hits),
        said=("search", "by meaning and keywords"),
        on="hybrid",
        off="vector",
    ),
    Switch(
        name="fusion",
        question=ALL,
        shows=lambda found: 0 < found.hits[0].score <= 2 / 61,
        said=("search", "ranks added"),
        on="rrf",
        off="weighted",
    ),
    Switch(
        name="refine_order",
        question="What does the News of 2020 say of vacation?",
        shows=lambda found: "News of 2020" in steps(found).get("names", ""),
        said=("search", "then refined"),
    ),
    Switch(
        name="deduplication_characters",
        question=ALL,
        shows=lambda found: len([text for text in passages(found) if text.startswith("Vacation.")]) == 2,
        said=("search", "repeats left out"),
        on=9,
        off=0,
    ),
    Switch(
        name="filter_by_category",
        question="parking",
        shows=lambda found: set(titles(found)) == {"News of 2020", "News of today"},
        said=("limits", "categories news"),
    ),
    Switch(
        name="filters_after_search",
        question="parking",
        shows=lambda found: "within" not in steps(found)["search"],
        said=("filter", "passages with categories news"),
        beside={"filter_by_category": True},
    ),
    Switch(
        name="filter_by_year",
        question="vacation in 2020",
        shows=found_of("News of 2020"),
        said=("limits", "years 2020"),
    ),
    Switch(
        name="filter_by_date",
        question="vacation until March 2020",
        shows=found_of("News of 2020"),
        said=("limits", "to 2020-03-31"),
    ),
    Switch(
        name="important_only",
        question=ALL,
        shows=found_of("News of 2020"),
        said=("search", "important ones only"),
    ),
    Switch(
        name="reranking",
        question=ALL,
        shows=lambda found: (
            all(item.result.rerank_score is not None for item in found.scored)
            and found.response.rag_details.reranking.enabled
        ),
        said=("rerank", "by rerank-multilingual-v3.0"),
    ),
    Switch(
        name="rerank_top_n",
        question=ALL,
        shows=lambda found: len(passages(found)) == found.response.rag_details.search.final_top_k == 2,
        said=None,
        on=2,
        off=0,
        beside={"reranking": True},
    ),
    Switch(
        name="recency_boost",
        question="vacation",
        shows=lambda found: titles(found).index("News of today") < titles(found).index("News of 2020"),
        said=("order", "recency_boost"),
    ),
    Switch(
        name="pinned_first",
        question="parking",
        shows=lambda found: titles(found)[0] == "News of 2020",
        said=("order", "pinned_first"),
    ),
    Switch(
        name="multi_signal",
        question="vacation",
        shows=lambda found: set(titles(found)[:2]) == {"News of 2020", "News of today"},
        said=("order", "multi_signal"),
    ),
    Switch(
        name="collapse_near_repeats",
        question=ALL,
        shows=lambda found: len([text for text in passages(found) if "Trams" in text]) == 1,
        said=("collapse", "near repeats left out"),
    ),
    Switch(
        name="one_result_per_document",
        question=ALL,
        shows=lambda found: len(titles(found)) == len({c.document_id for c in found.response.citations}),
        said=("collapse", "at most 1 of a document"),
    ),
    Switch(
        name="maximum_per_document",
        question=ALL,
        shows=lambda found: titles(found).count("Handbook") == 2,
        said=("collapse", "at most 2 of a document"),
        on=2,
        off=0,
    ),
    Switch(
        name="only_evidence",
        question="Who painted the Mona Lisa?",
        shows=lambda found: passages(found) == [] and len(found.response.nearest) == 3,
        said=("evidence", " passages speak to the question"),
    ),
    Switch(
        name="stitch_neighbours",
        question="forty spaces",
        shows=lambda found: VACATION in found.response.context_text,
        said=("neighbours", "beside 1 passages"),
        beside={"top_k": 1},
    ),
]


@pytest.fixture
def retriever(provider_standin: ProviderStandin, database: Database) -> Iterator[Retriever]:
    provider_standin.reply(answer)
    providers = Providers(
        Settings(
            openai_api_key="key",
            openai_base_url=provider_standin.openai_url,
            cohere_api_key="key",
            cohere_base_url=provider_standin.cohere_url,
        )
    )
    yield Retriever(database, providers)
    providers.close()


def answer(messages: list[dict[str, Any]]) -> str:
    if "Translate" in str(messages[0]["content"]):
        return "How much vacation do I get?"
    return json.dumps(
        {
            "expansion": "holiday leave",
            "alternatives": ["annual leave", "time off"],
            "parts": ["days of vacation", "days of illness"],
        }
    )


@pytest.fixture
def library(database: Database, new_collection: Callable[..., Collection], provider_standin: ProviderStandin) -> Shelf:
    model = "openai/text-embedding-3-small@1536"
    settings = Settings(openai_api_key="key", openai_base_url=provider_standin.openai_url)
    providers = Providers(settings)
    shelf = Shelf(database, new_collection("demo", "Paid", embedding_model=model), providers.embedder_for(model))
    shelf.add("Handbook", [VACATION, PARKING, "Vacation. It is asked for a week before."])
    old = {"categories": ["news"], "years": [2020], "createdAt": "2020-03-05T10:00:00Z", "isPinned": True}
    shelf.add(
        "News of 2020", ["Vacation. Nobody works on vacation and parking days."], metadata={**old, "isImportant": True}
    )
    shelf.add(
        "News of today",
        ["On vacation, and on all else that people do when they are not here, nothing is new but parking."],
        metadata={"categories": ["news"]},
    )
    trams = "Trams. The company pays for trams and buses and bicycles to work, but not for parking at the office"
    shelf.add("Travel", [f"{trams} by night.", f"{trams} by night. The intranet has maps."])
    providers.close()
    return shelf


@pytest.mark.parametrize("switch", SWITCHES, ids=[switch.name for switch in SWITCHES])
def test_a_step_is_switched_for_a_profile_and_for_a_call_and_says_what_it_did(
    switch: Switch, retriever: Retriever, library: Shelf, asker: Identity
) -> None:
    question = Question(text=switch.question, identity=asker, collection=library.collection)
    profiles: dict[str, Profile] = {
        way: BARE.changed(**switch.beside, **{switch.name: value})
        for way, value in (("on", switch.on), ("off", switch.off))
    }
    for way, other, value in (("on", "off", switch.on), ("off", "on", switch.off)):
        by_profile = retriever.retrieve(question, profile=profiles[way])
        # The profile says the contrary; the call has the last word.
        by_call = retriever.retrieve(question, profile=profiles[other], options=Options(**{switch.name: value}))
        for found in (by_profile, by_call):
            assert switch.shows(found) is (way == "on"), (way, titles(found), wordings(found), steps(found))
            if switch.said is not None:
                step, part = switch.said
                assert (part in steps(found).get(step, "")) is (way == "on"), steps(found)
            assert all(step.ms >= 0 for step in found.response.rag_details.steps or [])
            assert found.response.rag_details.timing.total_ms > 0


def test_every_switch_of_a_call_is_a_setting_of_a_profile_and_is_tried_here() -> None:
    tried = {switch.name for switch in SWITCHES}
    amounts = {"top_k", "candidate_factor", "similarity_threshold", "context_tokens", "follow_ups"}
    assert set(PER_CALL) - amounts == tried
