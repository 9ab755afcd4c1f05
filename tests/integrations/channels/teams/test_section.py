"""Administrators set a company's bot up on the page Other programs."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from rag.integrations.channels.teams.bots import TeamsBots
from rag.services import Services
from rag.types import Identity, Role
from tests.pages.conftest import new_tab, running, signed_in

__all__ = ["new_tab", "running", "signed_in"]
SignIn = Callable[[Role], tuple[AppTest, Identity]]


def test_a_bot_in_teams_is_set_up_changed_and_removed(signed_in: SignIn, running: Services) -> None:
    app, directory = "11111111-2222-4333-8444-555555555555", "aaaaaaaa-0000-4000-8000-000000000001"
    bots = TeamsBots(running.database)
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("programs.py").run()

    def save(**fields: str) -> str:
        for name, value in fields.items():
            page.text_input(key=f"programs_teams_{name}").set_value(value)
        next(button for button in page.button if button.label == "Save").click().run()
        assert not page.exception
        return " ".join(error.value for error in page.error).replace("\\", "")

    assert "/teams/messages" in " ".join(code.value for code in page.code)
    assert "application (client) id" in save(app="contoso", directory=directory, secret="s3cret~x")
    assert "client secret is missing" in save(app=app, secret="")
    assert not save(secret="s3cret~x")
    kept = bots.get(identity)
    assert kept is not None
    assert (kept.app_id, kept.directories) == (app, [directory])
    assert "s3cret" not in page.text_input(key="programs_teams_secret").placeholder
    assert not save(others=app, secret="")
    assert len(getattr(bots.get(identity), "directories", [])) == 2
    page.button(key="programs_teams_switch").click().run()
    assert bots.find(app) is None
    page.button(key="programs_teams_remove").click().run()
    page.button(key="programs_teams_removal_confirmed").click().run()
    assert bots.get(identity) is None
