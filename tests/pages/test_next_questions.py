"""The end of an answer on the page where next questions take their time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import ScriptRunContext
from streamlit.testing.v1 import AppTest

from rag.services import Services
from rag.settings import Settings
from rag.types import Collection, Identity, Question, Role
from tests.patience import patient
from tests.standins.providers import ProviderStandin

QUESTION = "How many days of annual leave do I have?"
ANSWER = "You have 25 days of annual leave [1]."
#: Longer than the page waits for a stored answer before it draws the one that is written.
THINKING_SECONDS = 0.6


@pytest.fixture
def settings(tmp_path: Path, provider_standin: ProviderStandin) -> Settings:
    """With a model."""
    return Settings(data_dir=tmp_path / "data", openai_api_key="key", openai_base_url=provider_standin.openai_url)


@pytest.mark.usefixtures("handbook")
def test_sources_footer_and_next_questions_are_each_there_once(
    signed_in: Callable[[Role], tuple[AppTest, Identity]], provider_standin: ProviderStandin
) -> None:
    replies = iter([ANSWER])
    provider_standin.reply(lambda messages: next(replies, "How is annual leave requested?"))
    provider_standin.delays["chat"] = THINKING_SECONDS
    tab, _ = signed_in(Role.MANAGER)
    tab.run()
    tab.chat_input[0].set_value(QUESTION).run()
    assert not tab.exception
    drawn = [element.value for element in tab.main.markdown]
    assert sum("25 days of annual leave" in text and "](#s" in text for text in drawn) == 1
    assert sum("**Sources**" in text for text in drawn) == 1
    assert sum("1 source" in text for text in drawn) == 1
    assert len(tab.get("feedback")) == 1
    assert [button.label for button in tab.button if button.key and button.key.startswith("chat_next_")]
    assert not [button for button in tab.button if button.label == "Stop"]


@pytest.fixture
def drawn(provider_standin: ProviderStandin, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What pages draw in its order, and when the model has thought of next questions: once the buttons are there."""
    monkeypatch.setattr("rag.answering.follow_ups.SUGGESTION_SECONDS", 60.0)
    order: list[str] = []
    has_buttons = Event()
    enqueue = ScriptRunContext.enqueue

    def noting(context: ScriptRunContext, message: ForwardMsg, *arguments: Any, **options: Any) -> None:
        text = str(message.delta)
        order.extend(name for name in ("div data-answer", "Ask again", "1 source ") if name in text)
        enqueue(context, message, *arguments, **options)
        if "Ask again" in text:
            has_buttons.set()

    def reply(messages: list[dict[str, Any]]) -> str:
        if "Suggest" not in str(messages[0]["content"]):
            return ANSWER
        if has_buttons.wait(patient(30)):
            order.append("next questions")
        return "How is annual leave requested?"

    monkeypatch.setattr(ScriptRunContext, "enqueue", noting)
    provider_standin.reply(reply)
    return order


@pytest.mark.usefixtures("handbook")
def test_buttons_do_not_wait_for_next_questions_and_figures_come_after_them(
    signed_in: Callable[[Role], tuple[AppTest, Identity]], drawn: list[str]
) -> None:
    tab, _ = signed_in(Role.MANAGER)
    tab.run()
    tab.chat_input[0].set_value(QUESTION).run()
    assert drawn == ["div data-answer", "Ask again", "next questions", "1 source "]
    assert not tab.exception


def test_a_page_opened_while_next_questions_are_thought_of_shows_the_written_answer_at_once(
    running: Services, handbook: Collection, signed_in: Callable[[Role], tuple[AppTest, Identity]], drawn: list[str]
) -> None:
    tab, identity = signed_in(Role.MANAGER)
    live = running.answers.ask(Question(text=QUESTION, identity=identity, collection=handbook))
    assert live.wait_until_written(patient(30))
    assert not live.is_done
    tab.query_params["c"] = str(live.conversation_id)
    tab.run()
    assert drawn == ["Ask again", "next questions", "1 source "]
    assert not [button for button in tab.button if button.label == "Stop"]
    assert not tab.exception
