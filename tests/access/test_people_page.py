from __future__ import annotations

from pathlib import Path

import pytest
import streamlit.config
from streamlit.testing.v1 import AppTest

import rag.services
from rag.access.sessions import token_hash
from rag.errors import AccessError, LinkExpired, NotAllowed, WrongPassword
from rag.types import Account, Identity, Role
from tests.access.front_door import PASSWORD, Access, AddPerson
from tests.patience import patient

PAGE = str(Path(__file__).resolve().parents[2] / "pages" / "people.py")


@pytest.fixture
def people_page(access: Access, admin: Identity, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The page as the administrator sees it, before its first run."""
    monkeypatch.setattr(rag.services, "services", lambda: access)
    return page_of(access, access.accounts.sign_in(admin.email, PASSWORD))


def page_of(access: Access, account: Account) -> AppTest:
    # A package that only tests have brings rich, with which Streamlit prints what a page raises instead of logging it.
    streamlit.config.set_option("logger.enableRich", False)
    page = AppTest.from_file(PAGE, default_timeout=patient(20))
    page.user = {"sid": token_hash(access.sessions.start(account))}
    return page


def choose(page: AppTest, position: int) -> AppTest:
    """Choose a row of the table."""
    key = page.dataframe[0].proto.id.split("-", 2)[2]
    page.session_state[key] = {"selection": {"rows": [position], "columns": [], "cells": []}}
    return page.run()


def link_in(page: AppTest) -> str:
    """The token of the link shown."""
    (code,) = page.code
    return str(code.value).partition("/set-password?token=")[2]


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


def raised(caplog: pytest.LogCaptureFixture) -> type[BaseException] | None:
    """What ended the page; its text is not shown to the visitor."""
    return next((record.exc_info[0] for record in caplog.records if record.exc_info), None)


@pytest.mark.parametrize("role", [Role.EMPLOYEE, Role.MANAGER])
def test_who_is_no_administrator_sees_nobody(
    access: Access, add_person: AddPerson, people_page: AppTest, caplog: pytest.LogCaptureFixture, role: Role
) -> None:
    page = page_of(access, add_person("somebody@example.com", role)).run()
    assert page.exception
    assert raised(caplog) is NotAllowed
    assert not page.dataframe


def test_the_first_administrator_was_signed_in_by_their_link(
    access: Access, admin: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.services, "services", lambda: access)
    account = access.accounts.list(admin)[0]
    assert account.last_signed_in_at is None
    page = page_of(access, account).run()
    assert page.title[0].value == "People"
    assert page.dataframe[0].value["Last sign-in"][0] != "Never"


def test_people_are_listed_with_role_and_last_sign_in(
    access: Access, add_person: AddPerson, people_page: AppTest
) -> None:
    add_person("kim@example.com", Role.MANAGER, "김하늘")
    page = people_page.run()
    assert not page.exception
    table = page.dataframe[0].value
    assert list(table["Name"]) == ["Admin (you)", "김하늘"]
    assert list(table["Role"]) == ["Administrator", "Manager"]
    assert table["Last sign-in"][1] == "Never"
    assert not {"password_hash", "id"} & set(table.columns)
    page.text_input(key="people_search").set_value("KIM@").run()
    assert list(page.dataframe[0].value["Name"]) == ["김하늘"]
    page.text_input(key="people_search").set_value("nobody").run()
    assert not page.dataframe
    assert not page.exception


def test_a_person_is_added_and_their_link_shown_until_it_is_taken(access: Access, people_page: AppTest) -> None:
    page = people_page.run()
    page.button(key="people_add_button").click().run()
    page.text_input(key="people_new_email").set_value("new@example.com")
    page.text_input(key="people_new_name").set_value("New <b>Person</b>")
    page.text_input(key="people_new_group").set_value("Sales")
    press(page, "Add and get a link")
    assert not page.exception
    account = access.accounts.account_of_link(link_in(page))
    assert (account.email, account.role, account.user_group) == ("new@example.com", Role.EMPLOYEE, "Sales")
    # Something else runs the page: the link is seen nowhere else.
    page.run()
    assert link_in(page)
    page.button(key="people_link_done").click().run()
    assert not page.code


def test_an_address_that_cannot_be_used_is_said_in_the_dialog(people_page: AppTest) -> None:
    page = people_page.run()
    page.button(key="people_add_button").click().run()
    page.text_input(key="people_new_email").set_value("admin@example.com")
    press(page, "Add and get a link")
    assert "there is an account with it already" in page.session_state.people_add_error.message
    assert not page.code


def test_name_role_and_group_are_changed(
    access: Access, admin: Identity, add_person: AddPerson, people_page: AppTest
) -> None:
    person = add_person("kim@example.com", name="Kim")
    page = choose(people_page.run(), 1)
    page.text_input(key=f"people_name_{person.id}").set_value("Kim Haneul")
    page.selectbox(key=f"people_role_{person.id}").set_value(Role.MANAGER)
    page.text_input(key=f"people_user_group_{person.id}").set_value("Sales")
    press(page, "Save changes")
    assert not page.exception
    changed = access.accounts.list(admin)[1]
    assert (changed.name, changed.role, changed.user_group) == ("Kim Haneul", Role.MANAGER, "Sales")


def test_an_account_is_disabled_after_a_question_and_enabled_again(
    access: Access, admin: Identity, add_person: AddPerson, people_page: AppTest
) -> None:
    person = add_person("kim@example.com", name="Kim")
    session = access.sessions.start(person)
    page = choose(people_page.run(), 1)
    page.button(key=f"people_disable_{person.id}").click().run()
    assert access.sessions.find(session) is not None
    page.button(key="people_disable_confirmed").click().run()
    assert not page.exception
    assert access.sessions.find(session) is None
    page = choose(page.run(), 1)
    page.button(key=f"people_enable_{person.id}").click().run()
    assert access.accounts.sign_in("kim@example.com", PASSWORD).is_active


def test_a_lost_password_gets_a_link(access: Access, add_person: AddPerson, people_page: AppTest) -> None:
    person = add_person("kim@example.com", name="Kim")
    page = choose(people_page.run(), 1)
    page.button(key=f"people_link_{person.id}").click().run()
    token = link_in(page)
    access.accounts.set_password_by_link(token, "another good password")
    with pytest.raises(LinkExpired):
        access.accounts.account_of_link(token)
    with pytest.raises(WrongPassword):
        access.accounts.sign_in("kim@example.com", PASSWORD)


def test_nobody_can_disable_or_demote_themselves(admin: Identity, people_page: AppTest) -> None:
    page = choose(people_page.run(), 0)
    assert page.selectbox(key=f"people_role_{admin.account_id}").disabled
    assert page.button(key=f"people_disable_{admin.account_id}").disabled


def test_a_session_that_ended_ends_the_page(
    access: Access, admin: Identity, people_page: AppTest, caplog: pytest.LogCaptureFixture
) -> None:
    page = people_page.run()
    access.sessions.end_all("demo", admin.account_id)
    page.run()
    assert raised(caplog) is AccessError
    assert not page.dataframe


def test_who_asked_for_a_new_password_is_shown_until_they_have_their_link(
    access: Access, add_person: AddPerson, people_page: AppTest
) -> None:
    person = add_person("lost@example.com", name="Zo")
    access.accounts.ask_for_password("lost@example.com")
    page = people_page.run()
    assert "1 person needs a new password" in page.caption[0].value
    assert list(page.dataframe[0].value["Status"]) == ["Active", "Needs a password"]
    choose(page, 1)
    assert "asked for a new password" in page.info[0].value
    press(page, "New password link")
    assert access.accounts.account_of_link(link_in(page)).id == person.id
    page.run()
    assert "needs a new password" not in page.caption[0].value
