"""Where people are signed in, on their own page and on that of administrators, and who changed what."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from streamlit.testing.v1 import AppTest

from rag.money.price_list import charge
from rag.services import Services
from rag.types import Account, Collection, Identity, Role, Usage

SignIn = Callable[[Role], tuple[AppTest, Identity]]
NewTab = Callable[[str], AppTest]
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"


def texts(page: AppTest) -> str:
    return "\n".join(str(m.value) for m in (*page.markdown, *page.caption)).replace("\\", "")


def account_of(identity: Identity) -> Account:
    return Account(
        id=identity.account_id,
        tenant_id=identity.tenant_id,
        email=identity.email,
        name=identity.name,
        role=identity.role,
        user_group="",
        is_active=True,
        created_at=datetime.now(UTC),
        last_signed_in_at=None,
    )


def sign_in_elsewhere(running: Services, identity: Identity) -> Identity:
    """The same person in another browser."""
    found = running.sessions.find(running.sessions.start(account_of(identity), FIREFOX))
    assert found is not None
    return found


def ends(page: AppTest) -> list[str]:
    return [str(button.key) for button in page.button if str(button.key).startswith("end_")]


# Your account


def test_the_browser_one_looks_from_has_no_button_that_would_end_it(signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    page = tab.run().switch_page("account.py").run()
    assert not page.exception
    assert f"**{identity.name}**" in texts(page)
    assert "Employee" in texts(page)
    assert "This browser" in texts(page)
    assert ends(page) == []
    assert "Sign out everywhere else" not in [b.label for b in page.button]


def test_another_browser_is_named_and_signed_out_alone(running: Services, signed_in: SignIn, new_tab: NewTab) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    elsewhere = sign_in_elsewhere(running, identity)
    page = tab.run().switch_page("account.py").run()
    assert "Firefox on Windows" in texts(page)
    page.button(f"end_{elsewhere.session_id}").click().run()
    assert not page.exception
    assert ends(page) == []
    assert running.sessions.find_by_id(elsewhere.session_id) is None
    assert running.sessions.find_by_id(identity.session_id) is not None
    assert "You are signed out" in new_tab(elsewhere.session_id).run().info[0].value


def test_everything_else_is_signed_out_at_once(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.MANAGER)
    others = [sign_in_elsewhere(running, identity) for _ in range(2)]
    page = tab.run().switch_page("account.py").run()
    next(b for b in page.button if b.label == "Sign out everywhere else").click().run()
    assert not page.exception
    assert [running.sessions.find_by_id(other.session_id) for other in others] == [None, None]
    assert running.sessions.find_by_id(identity.session_id) is not None


# The sessions of others, for administrators


def chosen_in_people(running: Services, page: AppTest, admin: Identity, chosen: Identity) -> AppTest:
    """The page People with the row of one person chosen."""
    people = running.accounts.list(admin)
    key = str(page.dataframe[0].key)
    row = next(i for i, person in enumerate(people) if person.id == chosen.account_id)
    page.session_state[key] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return page.run()


def test_an_administrator_sees_and_ends_the_sessions_of_another(running: Services, signed_in: SignIn) -> None:
    tab, admin = signed_in(Role.ADMIN)
    _, employee = signed_in(Role.EMPLOYEE)
    elsewhere = sign_in_elsewhere(running, employee)
    page = chosen_in_people(running, tab.run().switch_page("people.py").run(), admin, employee)
    assert not page.exception
    assert "Firefox on Windows" in texts(page)
    assert set(ends(page)) == {f"end_{employee.session_id}", f"end_{elsewhere.session_id}"}
    page.button(f"end_{elsewhere.session_id}").click().run()
    assert not page.exception
    assert running.sessions.find_by_id(elsewhere.session_id) is None
    assert running.sessions.find_by_id(employee.session_id) is not None
    assert running.sessions.find_by_id(admin.session_id) is not None


def test_an_administrator_cannot_end_the_session_they_work_in_from_there(running: Services, signed_in: SignIn) -> None:
    tab, admin = signed_in(Role.ADMIN)
    page = chosen_in_people(running, tab.run().switch_page("people.py").run(), admin, admin)
    assert "This browser" in texts(page)
    assert ends(page) == []


def test_an_administrator_says_which_roles_need_a_second_factor(running: Services, signed_in: SignIn) -> None:
    tab, admin = signed_in(Role.ADMIN)
    page = tab.run().switch_page("people.py").run()
    page.multiselect("people_factor_roles").set_value([Role.MANAGER]).run()
    assert not page.exception
    assert running.accounts.second_factors.required_roles(admin) == {Role.MANAGER}
    page = tab.switch_page("people.py").run()
    assert page.multiselect("people_factor_roles").value == [Role.MANAGER]


# The audit log


@pytest.mark.parametrize("role", [Role.EMPLOYEE, Role.MANAGER])
def test_only_administrators_read_the_audit_log(signed_in: SignIn, role: Role) -> None:
    tab, _ = signed_in(role)
    tab.run()
    with pytest.raises(ValueError, match=r"audit\.py"):
        tab.switch_page("audit.py").run()


def test_a_log_without_entries_says_so(signed_in: SignIn) -> None:
    tab, _ = signed_in(Role.ADMIN)
    page = tab.run().switch_page("audit.py").run()
    assert not page.exception
    # Whoever looks has signed in.
    assert list(page.dataframe[0].value["What"]) == ["Sign-in succeeded"]
    page.text_input("audit_text").set_value("nothing like this").run()
    assert "No change matches these filters." in texts(page)


def test_a_change_stands_in_the_log_with_its_person_and_in_words(
    running: Services, signed_in: SignIn, collection: Collection
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    running.documents.change_collection(
        identity, collection.id, name="Handbooks", language=collection.language, groups=["Sales"]
    )
    running.api_keys.create(identity, "Intranet", ["search"], None)
    page = tab.run().switch_page("audit.py").run()
    table = page.dataframe[0].value
    assert list(table["What"]) == ["API key added", "Collection changed", "Sign-in succeeded"]
    assert set(table["Who"]) == {identity.email}
    assert "groups that may read it: everybody → Sales" in table["Change"][1]
    assert "HR documents → Handbooks" in table["Change"][1]
    page.session_state[str(page.dataframe[0].key)] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    page.run()
    fields = page.dataframe[1].value.set_index("Field")
    assert list(fields.loc["name"]) == ["HR documents", "Handbooks"]
    lines = running.audit.export_json(identity, running.audit.rows(identity)).decode().splitlines()
    assert [json.loads(line)["action"] for line in lines] == [
        "API key added",
        "collection changed",
        "sign-in succeeded",
    ]
    page.selectbox("audit_kind").set_value("API keys").run()
    assert list(page.dataframe[0].value["Item"]) == ["Intranet"]


# Groups that may read a collection


def test_the_groups_that_may_read_a_collection_are_saved_shown_and_hold(
    running: Services, signed_in: SignIn, handbook: Collection
) -> None:
    tab, _ = signed_in(Role.ADMIN)
    _, employee = signed_in(Role.EMPLOYEE)
    page = tab.run().switch_page("collection_settings.py").run()
    page.button(f"collections_open_{handbook.id}").click().run()
    page.button("collections_rename").click().run()
    assert page.multiselect("collections_groups").value == []
    page.multiselect("collections_groups").set_value(["Sales"])
    page.button("collections_rename_save").click().run()
    assert not page.exception
    assert "Only for Sales" in texts(page)
    assert list(running.documents.collection("demo", handbook.id).groups) == ["Sales"]
    assert running.documents.collections(employee) == []
    page.button("collections_rename").click().run()
    page.multiselect("collections_groups").set_value([])
    page.button("collections_rename_save").click().run()
    assert "Only for" not in texts(page)
    assert [c.id for c in running.documents.collections(employee)] == [handbook.id]


# Prices


def test_an_administrator_sets_a_price_on_the_page(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("prices.py").run()
    assert not page.exception
    assert any("appears here after its first use" in caption.value for caption in page.caption)
    used = Usage(provider="openai", model="gpt-4o", input_tokens=1000)
    running.ledger.record("demo", charge("chat", used))
    page.run().button("prices_add").click().run()
    page.selectbox("prices_model").set_value("gpt-4o")
    page.text_input("prices_price").set_value("$2.50")
    next(button for button in page.button if button.label == "Save").click().run()
    assert not page.exception
    assert [price.own for price in running.prices.list(identity)] == [Decimal("2.5"), None, None]
    assert page.dataframe[0].value["Your price"].tolist() == ["$2.5", "", ""]
    assert page.dataframe[0].value["List price"].tolist() == ["$2.5", "$1.25", "$10"]
    page.button("prices_add").click().run()
    page.selectbox("prices_model").set_value("gpt-4o")
    page.text_input("prices_price").set_value("much")
    next(button for button in page.button if button.label == "Save").click().run()
    assert "US dollars" in str(page.session_state["prices_error"])


def test_a_budget_is_set_and_a_bad_amount_is_refused(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("prices.py").run()
    for amount in ("much", "$1,250.50"):
        page.button("prices_budget_add").click().run()
        assert (page.slider("prices_budget_warn").min, page.slider("prices_budget_warn").max) == (0, 100)
        page.text_input("prices_budget_amount").set_value(amount)
        page.slider("prices_budget_warn").set_value(100)
        page.button("prices_budget_add").click()  # a click in a dialog runs the page, here without the dialog
        page.button("prices_budget_save").click().run()
        assert not page.exception
        assert len(page.error) == (amount == "much")
    (made,) = running.budgets.list(identity)
    assert (made.amount, made.warn_share, made.ask_share) == (Decimal("1250.5"), Decimal(1), None)


@pytest.mark.parametrize("role", [Role.EMPLOYEE, Role.MANAGER])
def test_prices_are_for_administrators(role: Role, signed_in: SignIn) -> None:
    tab, _ = signed_in(role)
    with pytest.raises(ValueError, match=r"prices\.py"):
        tab.run().switch_page("prices.py").run()


def test_a_connected_program_is_listed_and_ended(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.ADMIN)
    apps = running.connected_apps
    program = apps.register("Notes **of** mine", ["https://notes.example.com/back"])
    code = apps.connect(
        identity, program, ["chat"], redirect_uri="https://notes.example.com/back", code_challenge="x" * 43
    )
    grant = apps.grant(code)
    assert grant is not None
    issued = apps.issue(grant, code)
    assert issued is not None
    assert apps.find(issued[0], "/api/me").identity.account_id == identity.account_id
    page = tab.run().switch_page("account.py").run()
    assert "notes.example.com" in texts(page)
    next(button for button in page.button if button.label.startswith(":red[Disconnect")).click().run()
    assert apps.list(identity), "it asks first"
    page.button("disconnect_confirmed").click().run()
    assert apps.list(identity) == []
    assert "Programs connected" not in str(page.header)
