"""Pages ask who is there before what needs a recent sign-in, in place of doing it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from rag.access.sessions import CONFIRM
from rag.errors import SignInAgain
from rag.services import Services
from rag.types import Collection, DocumentFilters, Identity, Role

SignIn = Callable[[Role], tuple[AppTest, Identity]]


@pytest.fixture
def administrator(signed_in: SignIn) -> tuple[AppTest, Identity]:
    return signed_in(Role.ADMIN)


def let_time_pass(running: Services) -> None:
    """Everybody signed in an hour ago."""
    with running.database.transaction("demo") as connection:
        connection.execute("UPDATE sessions SET proved_at = now() - interval '1 hour'")


def asks(page: AppTest) -> bool:
    return any(f'href="{CONFIRM}?next=' in str(html.value) for html in page.html)


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


@pytest.mark.parametrize(
    ("file", "label"),
    [
        ("people.py", "Make a key"),
        ("people.py", "Add a person"),
        ("prices.py", "Set a price"),
        ("audit.py", "Download as CSV"),
    ],
)
def test_a_button_asks_first_and_then_does_what_it_says(
    running: Services, administrator: tuple[AppTest, Identity], file: str, label: str
) -> None:
    tab, identity = administrator
    let_time_pass(running)
    page = tab.run().switch_page(file).run()
    assert not asks(page)
    press(page, label)
    assert not page.exception
    assert asks(page)
    assert not page.text_input or not any(str(field.key).startswith("people_new") for field in page.text_input)
    running.sessions.prove(identity)
    page.run()
    assert label == "Download as CSV" or not asks(press(page, label))
    assert not asks(page)
    assert label != "Download as CSV" or label not in [button.label for button in page.button], "it downloads now"


def test_a_dialog_left_open_until_the_time_ran_out_makes_no_key(
    running: Services, administrator: tuple[AppTest, Identity]
) -> None:
    tab, identity = administrator
    page = press(tab.run().switch_page("people.py").run(), "Make a key")
    page.text_input("people_key_name").set_value("Intranet")
    let_time_pass(running)
    press(page, "Make the key")
    assert not page.exception
    assert running.api_keys.list(identity) == []
    # A browser draws the dialog again alone, with this error and its link; AppTest runs the page, where none is open.
    assert isinstance(page.session_state["people_key_error"], SignInAgain)


def test_a_dialog_left_open_until_the_time_ran_out_invites_nobody(
    running: Services, administrator: tuple[AppTest, Identity]
) -> None:
    tab, identity = administrator
    page = press(tab.run().switch_page("people.py").run(), "Add a person")
    page.text_input("people_new_email").set_value("new@example.com")
    let_time_pass(running)
    press(page, "Add and get a link")
    assert not page.exception
    assert [person.email for person in running.accounts.list(identity)] == [identity.email]
    assert isinstance(page.session_state["people_add_error"], SignInAgain)


def test_a_dialog_left_open_until_the_time_ran_out_deletes_no_collection(
    running: Services, administrator: tuple[AppTest, Identity], handbook: Collection
) -> None:
    tab, identity = administrator
    page = tab.run().switch_page("collection_settings.py").run()
    page.button(f"collections_open_{handbook.id}").click().run()
    page.button("collections_delete").click().run()
    let_time_pass(running)
    page.button("collections_delete_sure_confirmed").click().run()
    assert not page.exception
    assert handbook.id in [collection.id for collection in running.documents.collections(identity)]
    assert asks(page)


def test_a_dialog_left_open_until_the_time_ran_out_empties_no_bin(
    running: Services, administrator: tuple[AppTest, Identity], handbook: Collection
) -> None:
    tab, identity = administrator
    running.documents.bin.put_collection(identity, handbook.id)
    page = tab.run().switch_page("collection_settings.py").run()
    page.button(f"collections_purge_{handbook.id}").click().run()
    page.text_input("collections_delete_name").set_value(handbook.name).run()
    let_time_pass(running)
    page.button("collections_delete_confirmed").click().run()
    assert not page.exception
    assert handbook.id in [collection.id for collection in running.documents.bin.collections(identity)]
    assert asks(page)


def test_a_refused_click_opens_the_dialog(running: Services, administrator: tuple[AppTest, Identity]) -> None:
    tab, identity = administrator
    page = tab.run().switch_page("people.py").run()
    let_time_pass(running)
    page.multiselect("people_factor_roles").set_value([Role.MANAGER]).run()
    assert not page.exception
    assert asks(page)
    running.sessions.prove(identity)
    assert running.accounts.second_factors.required_roles(identity) == frozenset()


def test_a_document_and_a_collection_stay(
    running: Services, administrator: tuple[AppTest, Identity], handbook: Collection
) -> None:
    tab, identity = administrator
    let_time_pass(running)
    page = tab.run().switch_page("collection_settings.py").run()
    page.button(f"collections_open_{handbook.id}").click().run()
    page.button("collections_delete").click().run()
    assert not page.exception
    assert asks(page)
    page = tab.switch_page("documents.py").run()
    (document,) = running.documents.find(identity, DocumentFilters())
    page.query_params["document"] = str(document.id)
    page.run().button("documents_delete").click().run()
    assert not page.exception
    assert asks(page)
    assert any(f"document%3D{document.id}" in str(html.value) for html in page.html), "it comes back to what was open"
    assert running.documents.find(identity, DocumentFilters()) == [document]
