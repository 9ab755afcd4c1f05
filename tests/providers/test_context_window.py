"""A server that reads only the beginning or the end of a prompt is noticed, and the next prompts fit."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from rag.profiles import HR
from rag.providers import ChatModel, Completed
from rag.providers.context_window import ContextWindow
from rag.providers.ollama import OllamaConnection
from rag.providers.openai_connection import OpenAIConnection
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.settings.providers import BY_NAME
from rag.types import ChatMessage
from tests.standins.providers import ProviderStandin

MODEL = "llama3.2"


@pytest.fixture(params=["OLLAMA_URL", "OPENAI_BASE_URL"])
def model(request: pytest.FixtureRequest, provider_standin: ProviderStandin) -> Iterator[ChatModel]:
    """A model of Ollama's, reached in either way."""
    connection = (
        OllamaConnection(BY_NAME["ollama"], Settings(ollama_url=provider_standin.ollama_url))
        if request.param == "OLLAMA_URL"
        else OpenAIConnection(BY_NAME["ollama"], Settings(), key="key", address=f"{provider_standin.ollama_url}/v1")
    )
    yield connection.chat_model(MODEL)
    connection.close()


def is_cut(model: ChatModel, words: int) -> bool:
    said = "the days of leave " * (words // 4)
    messages = [ChatMessage(role="system", content="Answer."), ChatMessage(role="user", content=said)]
    *_, last = model.stream(messages, temperature=0.0, maximum_output_tokens=100, cancel=Event())
    assert isinstance(last, Completed)
    return last.is_prompt_cut


def test_the_window_of_a_loaded_model_is_known_and_a_longer_prompt_was_cut(
    model: ChatModel, provider_standin: ProviderStandin
) -> None:
    provider_standin.window = 4096
    assert model.context_window() is None  # no model is loaded yet
    assert not is_cut(model, 500)
    assert model.context_window() == 4096
    assert is_cut(model, 8000)
    assert not is_cut(model, 500)


@pytest.mark.parametrize(("window", "is_noticed"), [(512, True), (None, False)])
def test_a_server_that_names_no_window_shows_it_by_what_it_counts(
    window: int | None, is_noticed: bool, model: ChatModel, provider_standin: ProviderStandin
) -> None:
    provider_standin.window, provider_standin.tells_window = window, False
    assert is_cut(model, 3000) is is_noticed
    assert model.context_window() == window


@pytest.mark.parametrize(
    ("sent", "counted"),
    [
        pytest.param(5000, 12, id="all but the end was kept from the prompt before"),
        pytest.param(5000, 1300, id="a tokenizer that makes fewer tokens"),
        pytest.param(700, 300, id="a short prompt"),
        pytest.param(5000, 9000, id="a tokenizer that makes more"),
    ],
)
def test_counts_that_say_nothing_are_not_taken_for_a_cut(sent: int, counted: int) -> None:
    window = ContextWindow("a model")
    assert not window.cuts(sent=sent, counted=counted)
    assert window.size() is None


def test_a_large_window_that_is_named_clears_a_count_of_what_was_not_kept() -> None:
    assert not ContextWindow("a model", lambda: 32_768).cuts(sent=5000, counted=600)


def test_what_a_model_has_shown_is_remembered_over_questions(provider_standin: ProviderStandin) -> None:
    settings = Settings(openai_api_key="key", openai_base_url=provider_standin.openai_url, chat_model="hr-answers")
    providers = Providers(settings)
    for _ in range(3):
        model = providers.chat_model_for(HR)
        assert model is not None
        assert not is_cut(model, 10)
    providers.close()
    asked = [("max_tokens" in body, "max_completion_tokens" in body) for _, body in provider_standin.requests]
    assert asked == [(True, False), (False, True), (False, True), (False, True)]
