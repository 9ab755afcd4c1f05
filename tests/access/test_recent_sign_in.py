"""Keys, exports, deletions and changes to people need a recent sign-in; a browser left open is asked who is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import uuid4

import pyotp
import pytest
from starlette.testclient import TestClient

from rag.access.second_factor import STEP_SECONDS
from rag.access.sessions import CONFIRM, is_recent, token_hash
from rag.errors import NotFound, SignInAgain
from rag.library.bin import Bin
from rag.library.documents import DocumentLibrary
from rag.money.price_list import TenantPrices
from rag.records.analytics import Analytics, Filters, Period, QuestionFilters
from rag.records.audit import AuditLog
from rag.storage.database import Database
from rag.types import Account, Identity, Role
from tests.access.front_door import PASSWORD, Access, AddPerson, identity_of

HTML = {"accept": "text/html"}
Act = Callable[[Access, Database, Identity], object]


def export_questions(access: Access, database: Database, who: Identity) -> object:
    day = datetime.now(UTC).date()
    return Analytics(database).export_csv(who, Period(day, day), Filters(), QuestionFilters())


def library(database: Database) -> DocumentLibrary:
    """Only its rows are touched here: there is nothing to delete."""
    made = object.__new__(DocumentLibrary)
    made._database = database
    return made


def bin_of(database: Database) -> Bin:
    """The bin, where nothing is deleted or taken back."""
    return Bin(database, cast(Any, None), estimate=cast(Any, None), forget=lambda tenant_id, document_ids: None)


ACTS: dict[str, Act] = {
    "make a key": lambda access, _, who: access.api_keys.create(who, "Programs", ["chat"]),
    "export questions": export_questions,
    "export the audit log": lambda _, database, who: AuditLog(database).export_csv(who, ["What"], [["x"]]),
    "invite": lambda access, _, who: access.accounts.invite(who, "new@example.com"),
    "make a password link": lambda access, _, who: access.accounts.password_link(who, who.account_id),
    "change an account": lambda access, _, who: access.accounts.change(who, who.account_id, name="Another"),
    "require a second factor": lambda access, _, who: access.accounts.second_factors.require_for(who, []),
    "set a price": lambda _, database, who: TenantPrices(database).set(who, "gpt-4o", "input_mtok", "2"),
    "remove a second factor": lambda access, _, who: access.accounts.second_factors.remove(who, uuid4()),
    "delete a document": lambda _, database, who: library(database).delete(who, uuid4()),
    "put a document into the bin": lambda _, database, who: bin_of(database).put(who, [uuid4()]),
    "delete a document for good": lambda _, database, who: bin_of(database).delete_for_good(who, [uuid4()]),
    "delete a collection": lambda _, database, who: library(database).delete_collection(
        who, uuid4(), confirmed_name="x"
    ),
}


@pytest.fixture
def account(access: Access, admin: Identity) -> Account:
    return access.accounts.list(admin)[0]


def session_of(access: Access, account: Account) -> tuple[str, Identity]:
    """The token of a new session, and who acts in it."""
    token = access.sessions.start(account)
    identity = access.sessions.find(token)
    assert identity is not None
    return token, identity


def signed_in_before(database: Database, minutes: float) -> None:
    """Have everybody signed in so long ago."""
    with database.transaction("demo") as connection:
        connection.execute("UPDATE sessions SET proved_at = now() - make_interval(secs => %s)", (60 * minutes,))


def confirm(client: TestClient, **fields: str) -> Any:
    client.get(CONFIRM)
    return client.post(CONFIRM, data={"csrf": client.cookies["hr_csrf"], "next": "/people?tab=keys", **fields})


@pytest.mark.parametrize("name", ACTS)
def test_a_sensitive_act_long_after_the_sign_in_is_refused_where_it_is_done(
    name: str, access: Access, database: Database, account: Account
) -> None:
    _, identity = session_of(access, account)
    signed_in_before(database, 31)
    with pytest.raises(SignInAgain) as refused:
        ACTS[name](access, database, identity)
    assert refused.value.status == 403
    assert refused.value.details == {"link": CONFIRM}
    access.sessions.prove(identity)
    try:
        ACTS[name](access, database, identity)
    except NotFound:
        assert name.startswith("delete")


@pytest.mark.parametrize(("minutes", "limit", "is_enough"), [(29, 30, True), (31, 30, False), (5000, 0, True)])
def test_the_setting_says_how_long_ago_it_may_be(
    access: Access, database: Database, account: Account, minutes: int, limit: int, is_enough: bool
) -> None:
    _, identity = session_of(access, account)
    signed_in_before(database, minutes)
    database.recent_sign_in_minutes = limit
    assert is_recent(database, identity) is is_enough


def test_a_session_from_before_an_update_counts_from_its_beginning(
    access: Access, database: Database, account: Account
) -> None:
    _, identity = session_of(access, account)
    for minutes in (29, 31):
        with database.transaction("demo") as connection:
            began = "UPDATE sessions SET proved_at = NULL, created_at = now() - make_interval(mins => %s)"
            connection.execute(began, (minutes,))
        assert is_recent(database, identity) is (minutes < 30)


def test_a_password_proves_it_and_leads_back(
    access: Access, database: Database, account: Account, client_of: Callable[..., TestClient]
) -> None:
    token, identity = session_of(access, account)
    signed_in_before(database, 60)
    client = client_of(token)
    page = client.get(f"{CONFIRM}?next=/people%3Ftab%3Dkeys").text
    assert 'value="/people?tab=keys"' in page
    assert 'name="code"' not in page
    for wrong in ("a wrong password", ""):
        answer = confirm(client, password=wrong)
        assert answer.status_code == 422
        assert "not right" in answer.text
    assert confirm(client, password=PASSWORD, csrf="x").status_code == 403
    assert not is_recent(database, identity)
    answer = confirm(client, password=PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/people?tab=keys")
    assert is_recent(database, identity)
    assert client.get("/api/seen").json()["email"] == account.email, "it is the same session"
    assert AuditLog(database).entries(identity)[0].action == "sign-in confirmed"


def test_it_leads_to_no_other_site(access: Access, account: Account, client_of: Callable[..., TestClient]) -> None:
    token, _ = session_of(access, account)
    assert confirm(client_of(token), password=PASSWORD, next="//elsewhere.example").headers["location"] == "/"


def test_right_passwords_do_not_add_up_to_a_wait(
    access: Access, account: Account, client_of: Callable[..., TestClient]
) -> None:
    client = client_of(session_of(access, account)[0])
    assert [confirm(client, password=PASSWORD).status_code for _ in range(8)] == [303] * 8


def test_guesses_are_slowed(access: Access, account: Account, client_of: Callable[..., TestClient]) -> None:
    client = client_of(session_of(access, account)[0])
    answers = [confirm(client, password="a guess").status_code for _ in range(7)]
    assert answers[:5] == [422] * 5
    assert answers[-1] == 429


def test_neither_another_session_of_the_person_nor_another_person_proves_it(
    access: Access,
    database: Database,
    account: Account,
    add_person: AddPerson,
    client_of: Callable[..., TestClient],
) -> None:
    other = add_person("other@example.com", Role.ADMIN)
    _, identity = session_of(access, account)
    elsewhere, _ = session_of(access, account)
    others, other_identity = session_of(access, other)
    signed_in_before(database, 60)
    for token in (elsewhere, others):
        assert confirm(client_of(token), password=PASSWORD).status_code == 303
    assert not is_recent(database, identity)
    # A session that is somebody else's is nobody's proof, and cannot be confirmed by them.
    assert is_recent(database, other_identity)
    assert not is_recent(database, replace(identity, session_id=token_hash(others)))
    access.sessions.prove(replace(other_identity, session_id=identity.session_id))
    assert not is_recent(database, identity)


def test_where_a_second_factor_is_in_use_the_password_alone_is_not_enough(
    access: Access, database: Database, account: Account, client_of: Callable[..., TestClient]
) -> None:
    token, identity = session_of(access, account)
    factors = access.accounts.second_factors
    secret = factors.new_secret(identity).secret
    recovery = factors.confirm(identity, pyotp.TOTP(secret).at(int(factors._clock()) - STEP_SECONDS))
    signed_in_before(database, 60)
    client = client_of(token)
    assert 'name="code"' in client.get(CONFIRM).text
    for fields in ({}, {"code": "000000"}):
        assert confirm(client, password=PASSWORD, **fields).status_code == 422
    assert confirm(client, password="wrong", code=recovery[0]).status_code == 422
    assert not is_recent(database, identity)
    assert confirm(client, password=PASSWORD, code=recovery[0]).status_code == 303
    assert is_recent(database, identity)


def test_it_is_no_way_in_for_visitors(client_of: Callable[..., TestClient]) -> None:
    answer = client_of().get(CONFIRM, headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={CONFIRM}")
    assert client_of().post(CONFIRM, data={"password": PASSWORD}).status_code == 401


def test_programs_and_commands_are_not_asked(access: Access, database: Database, account: Account) -> None:
    _, secret = access.api_keys.create(identity_of(account), "Programs", ["admin"], datetime.now(UTC) + timedelta(1))
    use = access.api_keys.find(secret)
    signed_in_before(database, 5000)
    assert is_recent(database, use.identity)
    assert is_recent(database, "demo")
