"""The end of an answer on the page where next questions take their time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rag.settings import Settings
from rag.types import Identity, Role
from tests.standin import ProviderStandin

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
    tab.chat_input[0].set_value("How many days of annual leave do I have?").run()
    assert not tab.exception
    drawn = [element.value for element in tab.main.markdown]
    assert sum("25 days of annual leave" in text and "](#s" in text for text in drawn) == 1
    assert sum("**Sources**" in text for text in drawn) == 1
    assert sum("1 source" in text for text in drawn) == 1
    assert len(tab.get("feedback")) == 1
    assert [button.label for button in tab.button if button.key and button.key.startswith("chat_next_")]
    assert not [button for button in tab.button if button.label == "Stop"]
