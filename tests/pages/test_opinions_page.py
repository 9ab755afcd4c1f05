"""Opinions on their page: references added and found, the draft written, cited and kept, tags set by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rag.services import Services
from rag.settings import Settings
from rag.types import Identity, Role
from tests.standins.providers import ProviderStandin, default_reply

RULE = "절도죄의 양형기준: 피해자와 합의한 경우 집행유예를 참작할 사유가 된다."
TAGS = {"topic": "양형 기준", "crime_type": "절도", "summary": "합의와 집행유예", "keywords": ["합의"]}


@pytest.fixture
def settings(tmp_path: Path, provider_standin: ProviderStandin) -> Settings:
    """An installation with Gemini."""
    return Settings(data_dir=tmp_path / "data", gemini_api_key="key", gemini_base_url=provider_standin.gemini_url)


def write(messages: list[dict[str, Any]]) -> str:
    asked = str(messages)
    if "의견서 초안" in asked:
        return "합의하였으므로 집행유예를 참작할 사유가 있습니다 [1]."
    return json.dumps(TAGS, ensure_ascii=False) if "<passage>" in asked else default_reply(messages)


def texts(page: AppTest) -> str:
    return "\n".join(str(item.value) for item in (*page.markdown, *page.caption)).replace("\\", "")


def test_a_lawyer_drafts_an_opinion_on_references_and_keeps_it(
    running: Services, signed_in: Callable[[Role], tuple[AppTest, Identity]], provider_standin: ProviderStandin
) -> None:
    provider_standin.reply(write)
    page, admin = signed_in(Role.ADMIN)
    running.documents.create_collection(admin, "양형", "legal", language="ko")
    page.run().switch_page("opinions.py").run()
    assert not page.exception

    page.text_input("references_category_0").set_value("기준")
    page.text_area("references_text_0").set_value(RULE)
    next(button for button in page.button if button.label == "Add").click().run()
    assert "A reference needs a title" in page.error[0].value
    assert page.text_area("references_text_0").value == RULE
    page.text_input("references_title_0").set_value("양형기준표")
    next(button for button in page.button if button.label == "Add").click().run()
    assert not page.exception
    assert not page.error
    assert [toast.value.replace("\\", "") for toast in page.toast] == ["양형기준표 is added: 1 passage."]
    assert page.text_area("references_text_1").value == ""
    (document,), _ = running.references.list(admin)
    assert (document.title, document.category, document.chunks, document.embedded, document.tagged) == (
        "양형기준표", "기준", 1, 1, 1
    )  # fmt: skip

    page.button("opinions_find").click().run()
    assert "Choose the kind of opinion" in page.error[0].value
    page.selectbox("opinions_kind").set_value("양형의견서")
    page.text_area("opinions_facts").set_value("피고인은 초범이고 피해자와 합의하였다.")
    page.button("opinions_find").click().run()
    assert not page.exception
    (tick,) = [box for box in page.checkbox if (box.key or "").startswith("opinions_use_")]
    assert tick.value
    assert page.code[0].value.strip() == f"【참고자료】\n\n【양형기준 - 절도】\n{RULE}"
    tick.uncheck().run()
    assert page.code[0].value == "No references."
    tick.check().run()
    page.button("opinions_write").click().run()
    assert not page.exception
    (kept,), total = running.opinions.list(admin)
    assert (total, kept.state, kept.content) == (1, "complete", "합의하였으므로 집행유예를 참작할 사유가 있습니다 [1].")
    assert [item["cited"] for item in kept.cited] == [1]
    assert "gemini-flash-latest" in texts(page)
    page.button(f"opinions_delete_kept_{kept.id}").click().run()
    page.button("opinions_delete_confirmed").click().run()
    assert running.opinions.list(admin) == ([], 0)
    with running.database.transaction("demo") as connection:
        assert connection.execute("SELECT content, facts FROM opinions").fetchall() == [("", "")]
    page.button("opinions_way_back_taken").click().run()
    assert not page.exception
    assert running.opinions.list(admin) == ([kept], 1)


def test_employees_draft_and_do_not_see_the_references_of_administrators(
    running: Services, signed_in: Callable[[Role], tuple[AppTest, Identity]]
) -> None:
    _page, admin = signed_in(Role.ADMIN)
    running.documents.create_collection(admin, "양형", "legal", language="ko")
    tab, _ = signed_in(Role.EMPLOYEE)
    tab.run().switch_page("opinions.py").run()
    assert not tab.exception
    assert [item.label for item in tab.tabs] == ["Draft", "Your drafts"]
