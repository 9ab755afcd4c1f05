"""The frame: who is let in, and which pages their role has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from rag.services import Services
from rag.types import Collection, Identity, Role
from rag.ui.frame import account_actions, link_here
from rag.ui.text import plain

NewTab = Callable[[str], AppTest]
SignIn = Callable[[Role], tuple[AppTest, Identity]]
PROJECT = Path(__file__).resolve().parents[2]
PAGES = {
    Role.EMPLOYEE: {"chat.py", "library.py"},
    Role.MANAGER: {"chat.py", "library.py", "analytics.py"},
    Role.ADMIN: {"chat.py", "library.py", "documents.py", "analytics.py", "people.py"},
}


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("session_id", ["", "0" * 64, "x' OR true --"])
def test_without_a_session_there_is_nothing_but_the_way_to_sign_in(new_tab: NewTab, session_id: str) -> None:
    tab = new_tab(session_id).run()
    assert [i.value for i in tab.info] == [plain("You are signed out. Reload the page to sign in.")]
    assert not tab.chat_input
    assert not tab.sidebar.button
    assert not tab.exception


def test_a_session_ended_elsewhere_ends_at_the_next_run(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    assert tab.run().chat_input
    running.sessions.end_all(identity.tenant_id, identity.account_id)
    tab.run()
    assert tab.info
    assert not tab.chat_input


@pytest.mark.parametrize("role", list(Role))
def test_each_role_has_its_pages_and_no_other(signed_in: SignIn, role: Role) -> None:
    tab, _ = signed_in(role)
    tab.run()
    assert not tab.exception
    for page in sorted(PAGES[Role.ADMIN] - PAGES[role]):
        with pytest.raises(ValueError, match=re.escape(page)):
            tab.switch_page(page)


def test_the_menu_says_how_many_wait_for_those_in_charge(
    running: Services, collection: Collection, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[str]] = []
    navigation = st.navigation

    def noted(pages: dict[str, list[Any]], **options: Any) -> Any:
        drawn.append([page.title for group in pages.values() for page in group])
        return navigation(pages, **options)

    monkeypatch.setattr(st, "navigation", noted)
    tab, _ = signed_in(Role.MANAGER)
    tab.run()
    with running.database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO help_requests (tenant_id, collection_id, question) VALUES ('demo', %s, 'Dogs?')",
            (collection.id,),
        )
    tab.run()
    signed_in(Role.EMPLOYEE)[0].run()

    assert ["Analytics" in drawn[0], "Analytics (1 waiting)" in drawn[1]] == [True, True]
    assert not [title for title in drawn[2] if "Analytics" in title]


def test_a_page_that_is_not_there_says_whom_to_ask_and_to_an_administrator_what_to_do(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ContextProxy, "url", property(lambda _: "http://localhost/payroll"))
    tab, admin = signed_in(Role.ADMIN)
    own = [w.value for w in tab.run().warning]
    assert own == ["There is no page “payroll” here. Choose one in the menu, or ask below."]
    for role in (Role.EMPLOYEE, Role.MANAGER):
        (sentence,) = [w.value for w in signed_in(role)[0].run().warning]
        assert sentence.endswith(f"or you may not open it. You can ask: {plain(admin.name)}.")


def test_the_account_block_shows_who_is_signed_in_and_signs_out_by_a_form(signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.MANAGER)
    tab.run()
    assert identity.email in [t.value for t in tab.sidebar.text]
    assert "Manager · demo" in [c.value for c in tab.sidebar.caption]
    assert any("/logout" in h.value for h in tab.sidebar.html)
    assert any("/account/password" in h.value for h in tab.sidebar.html)


def test_the_form_to_sign_out_carries_its_token_and_nothing_it_could_break_out_with() -> None:
    form = account_actions('a"><script>')
    assert 'method="post"' in form
    assert 'name="csrf" value="a&quot;&gt;&lt;script&gt;"' in form
    assert "<form" not in account_actions("")
    assert "<script>" not in link_here("<script>", '/account/confirm"><script>')


def test_the_settings_that_access_speed_and_privacy_rest_on_are_there() -> None:
    options = tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text("utf-8"))
    assert options["server"]["trustedUserHeaders"] == {
        "x-hr-sid": "sid",
        "x-hr-user": "email",
        "x-hr-role": "role",
        "x-hr-name": "name",
        "x-hr-tenant": "tenant",
    }
    assert options["runner"]["postScriptGC"] is False
    assert options["browser"]["gatherUsageStats"] is False
    assert options["client"]["showErrorDetails"] == "none"
    # With fewer than ten, Plotly figures fall back to colours of their own.
    assert all(len(options["theme"][mode]["chartCategoricalColors"]) >= 10 for mode in ("light", "dark"))


def test_fonts_and_marks_are_served_from_here_with_their_licences_and_stay_small() -> None:
    static = PROJECT / "pages" / "static"
    options = tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text("utf-8"))
    for face in options["theme"]["fontFaces"]:
        assert (static / face["url"].removeprefix("app/static/")).is_file()
    assert {"inter-OFL.txt", "jetbrains-mono-OFL.txt", "mark.svg", "wordmark.svg"} <= {f.name for f in static.iterdir()}
    assert sum(f.stat().st_size for f in static.iterdir()) < 1_000_000
