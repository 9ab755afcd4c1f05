"""The page that says what is configured, and whether the providers answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rag.services import Services
from rag.settings import Settings
from rag.types import Identity, Role
from tests.standins.providers import ProviderStandin


@pytest.fixture
def settings(tmp_path: Path, provider_standin: ProviderStandin) -> Settings:
    """An installation with a language model, and a server of models where nobody answers."""
    return Settings(
        data_dir=tmp_path / "data",
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        ollama_url="http://127.0.0.1:9",
    )


def texts(page: AppTest) -> str:
    return "\n".join(str(item.value) for item in (*page.markdown, *page.caption)).replace("\\", "")


def test_an_administrator_asks_the_providers_and_sees_who_answers(
    running: Services, signed_in: Callable[[Role], tuple[AppTest, Identity]]
) -> None:
    page, _ = signed_in(Role.ADMIN)
    page.run().switch_page("health.py").run()
    assert not page.exception
    assert "**Language model**" in texts(page)
    assert "answers**" not in texts(page)
    page.button("health_check").click().run()
    assert not page.exception
    shown = texts(page)
    assert "**OpenAI answers**" in shown
    assert "The provider answered a free test call in" in shown
    assert "**Ollama answers**" in shown
    assert shown.count("Failed") >= 1


def test_others_have_no_such_page(signed_in: Callable[[Role], tuple[AppTest, Identity]]) -> None:
    page, _ = signed_in(Role.MANAGER)
    page.run()
    with pytest.raises(ValueError, match="navigation page"):
        page.switch_page("health.py")
