"""The question before the search: its language, its translation; and after it: the reranker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import pytest

from rag.errors import ProviderAnswerInvalid, ProviderUnavailable
from rag.providers import Completed, Completion, Reranking, TextDelta
from rag.retrieval.query_understanding import question_language
from rag.retrieval.reranker import is_reranking_enabled, rerank_results
from rag.retrieval.translation import translate_query_if_needed
from rag.settings import Settings
from rag.types import ChatMessage, Collection, Identity, Question, Role, SearchResult, Usage


def test_the_conversation_counts_before_the_reader_and_the_reader_before_the_collection(collection: Collection) -> None:
    reader = Identity(account_id=uuid4(), tenant_id="demo", email="", name="", role=Role.EMPLOYEE)
    turns = [ChatMessage(role="user", content=text) for text in ("Hoeveel vakantiedagen heb ik?", "ok", "thanks")]
    question = Question(text="bonus", identity=reader, collection=collection)
    assert question_language(question) == "en"
    assert question_language(replace(question, collection=replace(collection, language="pl"))) == "pl"
    assert question_language(replace(question, reader_languages=["de-AT", "fr"])) == "de"
    assert question_language(replace(question, reader_languages=["de"], history=turns)) == "nl"
    asked = replace(question, reader_languages=["de"], history=turns, text="How many days of leave do I get?")
    assert question_language(asked) == "en", "it tells its own"


class FixedModel:
    """Answers every request alike and counts them."""

    provider = "openai"

    def __init__(self, text: str, model: str) -> None:
        self.text, self.model, self.calls = text, model, 0

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        cancel: Event,
        every_seconds: Callable[[], float] = float,
    ) -> Iterator[TextDelta | Completed]:
        raise NotImplementedError

    def context_window(self) -> int | None:
        return None

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        self.calls += 1
        usage = Usage(provider=self.provider, model=self.model, input_tokens=9, output_tokens=7)
        return Completion(text=self.text, usage=usage)


def test_a_question_in_the_documents_language_is_not_translated() -> None:
    model = FixedModel("never", "same-language")
    assert translate_query_if_needed("What is it?", "en", model=model).query == "What is it?"
    assert translate_query_if_needed("What is it?", "en-GB", target_language="en", model=model).usage is None
    assert translate_query_if_needed("???", "", model=model).translated_from is None
    assert model.calls == 0


def test_without_a_model_the_question_stays() -> None:
    translation = translate_query_if_needed("Wat is het vakantiebeleid?", "nl")
    assert (translation.query, translation.translated_from, translation.usage) == (
        "Wat is het vakantiebeleid?",
        None,
        None,
    )


def test_a_translation_is_paid_once() -> None:
    model = FixedModel(' "What is the vacation policy?" ', "paid-once")
    first = translate_query_if_needed("Wat is het vakantiebeleid?", "nl", model=model)
    again = translate_query_if_needed("Wat is het vakantiebeleid?", "nl", model=model)
    assert first.query == again.query == "What is the vacation policy?"
    assert first.translated_from == again.translated_from == "nl"
    assert first.usage is not None
    assert again.usage is None
    assert model.calls == 1


def test_a_translation_is_remembered_for_its_own_language_only() -> None:
    model = FixedModel("Was ist das?", "two targets")
    translate_query_if_needed("Wat is dit nu?", "nl", target_language="de", model=model)
    model.text = "What is this?"
    assert translate_query_if_needed("Wat is dit nu?", "nl", target_language="en", model=model).query == "What is this?"
    assert translate_query_if_needed("Wat is dit nu?", "nl", target_language="de", model=model).query == "Was ist das?"
    assert model.calls == 2


@pytest.mark.parametrize("text", ["", "  ", "word " * 1000])
def test_an_unusable_translation_is_an_error_and_not_remembered(text: str) -> None:
    model = FixedModel(text, "unusable")
    for _ in range(2):
        with pytest.raises(ProviderAnswerInvalid):
            translate_query_if_needed("Wat is dit?", "nl", model=model)
    assert model.calls == 2


class ReversingReranker:
    """Finds the last document most relevant."""

    provider, model = "cohere", "rerank-test"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def rank(self, query: str, documents: Sequence[str], *, limit: int) -> Reranking:
        self.seen = list(documents)
        order = tuple((index, (index + 1) / 10) for index in reversed(range(len(documents))))
        return Reranking(results=order[:limit], usage=Usage(provider="cohere", model=self.model, search_units=1))


class DeadReranker(ReversingReranker):
    def rank(self, query: str, documents: Sequence[str], *, limit: int) -> Reranking:
        raise ProviderUnavailable


def found(number: int) -> SearchResult:
    return SearchResult(
        chunk_id=UUID(int=number), document_id=UUID(int=1), collection_id=UUID(int=1), title="Guide",
        file_name="guide.pdf", content=f"passage {number}", first_page=1, last_page=1, section="Leave", chunk_index=0,
        metadata={}, original_rank=number,
    )  # fmt: skip


def test_results_come_back_in_the_rerankers_order_with_its_relevance() -> None:
    reranker = ReversingReranker()
    reranked = rerank_results("leave?", [found(1), found(2), found(3)], reranker=reranker, limit=2)
    assert [(r.original_rank, r.rerank_score, r.score) for r in reranked.results] == [(3, 0.3, 0.3), (2, 0.2, 0.2)]
    assert reranker.seen[0] == "Guide\nLeave\npassage 1"
    assert reranked.usage is not None


def test_nothing_to_rerank_costs_nothing() -> None:
    assert rerank_results("leave?", [], reranker=DeadReranker()).usage is None


def test_a_dead_reranker_is_the_callers_to_survive() -> None:
    with pytest.raises(ProviderUnavailable):
        rerank_results("leave?", [found(1)], reranker=DeadReranker())


def test_reranking_is_enabled_by_its_key() -> None:
    assert is_reranking_enabled(Settings(cohere_api_key="key"))
    assert not is_reranking_enabled(Settings())
