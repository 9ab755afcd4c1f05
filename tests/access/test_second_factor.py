"""A second factor: asked for after the password, given once, slowed when guessed, required where somebody says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import psycopg
import pyotp
import pytest
from starlette.testclient import TestClient

from rag.access.accounts import Accounts
from rag.access.limits import Browser
from rag.access.second_factor import ISSUER, STEP_SECONDS, SecondFactors
from rag.errors import NotAllowed, TooManyAttempts, WrongPassword
from rag.records.audit import AuditLog
from rag.storage.database import Database
from rag.types import Identity, Role
from tests.access.front_door import PASSWORD, Access, AddPerson, identity_of

SECRET = re.compile(r"<code[^>]*>([A-Z2-7 ]{32,})</code>")
CODES = re.compile(r"<li><code>([a-z0-9-]{11})</code></li>")
NOON = 1_800_000_000.0


@pytest.fixture
def person(add_person: AddPerson) -> Identity:
    return identity_of(add_person("person@example.com"))


@pytest.fixture
def clock() -> list[float]:
    return [NOON]


@pytest.fixture
def factors(database: Database, clock: list[float]) -> SecondFactors:
    return SecondFactors(database, clock=lambda: clock[0])


def code_of(secret: str, clock: list[float]) -> str:
    return pyotp.TOTP(secret).at(int(clock[0]))


def set_up(factors: SecondFactors, who: Identity, clock: list[float]) -> tuple[str, list[str]]:
    """A second factor in use; its secret and the recovery codes. The next half minute has begun."""
    secret = factors.new_secret(who).secret
    codes = factors.confirm(who, code_of(secret, clock))
    clock[0] += STEP_SECONDS
    return secret, codes


def sign_in(client: TestClient, email: str) -> Any:
    client.get("/login")
    form = {"csrf": client.cookies["hr_csrf"], "email": email, "password": PASSWORD, "next": "/analytics"}
    return client.post("/login", data=form)


def test_an_app_takes_the_secret_from_its_address(factors: SecondFactors, person: Identity, clock: list[float]) -> None:
    new = factors.new_secret(person)
    app = pyotp.TOTP(new.secret)
    assert len(new.secret) == len(pyotp.random_base32())
    assert new.address == app.provisioning_uri(name=person.email, issuer_name=ISSUER)
    assert code_of(new.secret, clock) == pyotp.parse_uri(new.address).generate_otp(int(clock[0]) // STEP_SECONDS)


def give(client: TestClient, code: str) -> Any:
    return client.post("/second-factor", data={"csrf": client.cookies["hr_csrf"], "code": code, "next": "/analytics"})


def test_a_right_password_alone_is_no_session_where_a_second_factor_is_in_use(
    access: Access, person: Identity, client_of: Callable[..., TestClient]
) -> None:
    factors = access.accounts.second_factors
    secret = factors.new_secret(person).secret
    # The code of the half minute before, so that the present one is still unused.
    recovery = factors.confirm(person, pyotp.TOTP(secret).at(int(factors._clock()) - STEP_SECONDS))
    client = client_of()
    answer = sign_in(client, person.email)
    assert (answer.status_code, answer.headers["location"]) == (303, "/second-factor?next=/analytics")
    assert "hr_session" not in client.cookies
    assert client.get("/api/me").status_code == 401
    assert "authenticator" in client.get("/second-factor?next=/analytics").text
    assert give(client, "000000").status_code == 401
    assert "hr_session" not in client.cookies
    answer = give(client, recovery[0])
    assert (answer.status_code, answer.headers["location"]) == (303, "/analytics")
    assert client.get("/api/me").json()["email"] == person.email
    # What stood for the password is used up.
    assert give(client, recovery[1]).headers["location"] == "/login"


def test_where_a_role_needs_one_it_is_set_up_before_the_first_session(
    access: Access, admin: Identity, person: Identity, client_of: Callable[..., TestClient]
) -> None:
    access.accounts.second_factors.require_for(admin, [Role.EMPLOYEE])
    client = client_of()
    assert sign_in(client, person.email).headers["location"].startswith("/second-factor")
    page = client.get("/second-factor?next=/analytics").text
    found = SECRET.search(page)
    assert found is not None
    assert "<svg" in page
    assert give(client, "123456").status_code == 401
    answer = give(client, pyotp.TOTP(found[1].replace(" ", "")).now())
    assert answer.status_code == 200, answer.text
    assert len(set(CODES.findall(answer.text))) == 10
    assert client.get("/api/me").json()["email"] == person.email
    with pytest.raises(NotAllowed, match="Your role needs"):
        access.accounts.second_factors.turn_off(person, "123456")
    # Others come in with their password, as before.
    assert sign_in(client_of(), admin.email).headers["location"] == "/analytics"


def test_one_company_asks_nothing_of_another(access: Access, admin: Identity) -> None:
    token = access.accounts.first_admin_link("other")
    assert token is not None
    other = access.accounts.create_first_admin(token, "admin@other.example", "Other", PASSWORD)
    access.accounts.second_factors.require_for(admin, [Role.ADMIN])
    assert access.accounts.second_factors.state("demo", admin.account_id).is_required
    assert access.accounts.second_factors.state("other", other.id).is_enough_without


def test_a_link_to_a_new_password_is_no_way_around_it(
    access: Access, admin: Identity, person: Identity, client_of: Callable[..., TestClient]
) -> None:
    access.accounts.second_factors.require_for(admin, [Role.EMPLOYEE])
    token = access.accounts.password_link(admin, person.account_id).partition("token=")[2]
    client = client_of()
    client.get(f"/set-password?token={token}")
    form = {"csrf": client.cookies["hr_csrf"], "token": token, "password": "another good password"}
    assert client.post("/set-password", data=form).headers["location"].startswith("/second-factor")
    assert client.get("/api/me").status_code == 401


def test_nobody_gives_a_second_factor_without_the_password(client_of: Callable[..., TestClient]) -> None:
    client = client_of()
    assert client.get("/second-factor").headers["location"] == "/login"
    client.get("/login")
    client.cookies.set("hr_second_factor", "A" * 43, path="/second-factor")
    assert give(client, "123456").headers["location"] == "/login"


def test_a_code_works_once_and_in_its_own_time(factors: SecondFactors, person: Identity, clock: list[float]) -> None:
    secret, _ = set_up(factors, person, clock)
    code = code_of(secret, clock)
    factors.check("demo", person.account_id, code)
    with pytest.raises(WrongPassword):
        factors.check("demo", person.account_id, code)
    clock[0] += 3600
    early, late = (pyotp.TOTP(secret).at(int(clock[0]) + seconds) for seconds in (-90, 90))
    for wrong in (early, late, "", "١٢٣٤٥٦", "\ud800"):
        clock[0] += 3600
        with pytest.raises(WrongPassword):
            factors.check("demo", person.account_id, wrong)
    clock[0] += 3600
    factors.check("demo", person.account_id, f" {code_of(secret, clock)[:3]} {code_of(secret, clock)[3:]} ")


def test_a_recovery_code_works_once_and_new_ones_end_the_old(
    factors: SecondFactors, person: Identity, clock: list[float]
) -> None:
    secret, codes = set_up(factors, person, clock)
    factors.check("demo", person.account_id, codes[0].upper())
    with pytest.raises(WrongPassword):
        factors.check("demo", person.account_id, codes[0])
    assert factors.recovery_codes_left(person) == 9
    clock[0] += 3600
    fresh = factors.new_recovery_codes(person, code_of(secret, clock))
    clock[0] += 3600
    with pytest.raises(WrongPassword):
        factors.check("demo", person.account_id, codes[1])
    clock[0] += 3600
    factors.check("demo", person.account_id, fresh[1])


def test_guesses_are_slowed_and_counted_before_they_are_looked_at(
    factors: SecondFactors, person: Identity, clock: list[float]
) -> None:
    secret, _ = set_up(factors, person, clock)
    for _ in range(5):
        with pytest.raises(WrongPassword):
            factors.check("demo", person.account_id, "000000")
    for _ in range(20):
        with pytest.raises((WrongPassword, TooManyAttempts)):
            factors.check("demo", person.account_id, "000000")
    with pytest.raises(TooManyAttempts):
        factors.check("demo", person.account_id, code_of(secret, clock))
    clock[0] += 3600
    factors.check("demo", person.account_id, code_of(secret, clock))


def test_who_knows_the_password_keeps_nobody_from_giving_a_code(
    access: Access, factors: SecondFactors, person: Identity, clock: list[float]
) -> None:
    secret, _ = set_up(factors, person, clock)
    known = Browser(known_token=access.accounts.know_browser("demo", person.account_id), mark="own", address="1")
    stranger, new = Browser(mark="stranger", address="2"), Browser(mark="new", address="3")

    def guess(browser: Browser, code: str = "000000") -> bool:
        """Whether the code was looked at."""
        try:
            factors.check("demo", person.account_id, code, browser)
        except TooManyAttempts:
            return False
        except WrongPassword:
            pass
        return True

    for _ in range(200):
        guess(stranger)
        clock[0] += 1
    assert not guess(stranger)
    # The owner signs in where they have before, and that gives the stranger nothing back.
    factors.check("demo", person.account_id, code_of(secret, clock), known)
    assert not guess(stranger)
    # Guesses in a known browser wait as well, and keep nobody else waiting there.
    assert sum(guess(known) for _ in range(20)) == 5
    # From a new browser the owner gets a turn, although the stranger takes each one that comes.
    assert not guess(new)
    for _ in range(1200):
        clock[0] += 1
        guess(stranger)
        try:
            factors.check("demo", person.account_id, code_of(secret, clock), new)
            break
        except TooManyAttempts:
            pass
    else:
        pytest.fail("the stranger took every turn")


def test_neither_secrets_nor_codes_can_be_read_from_the_tables(
    factors: SecondFactors, person: Identity, clock: list[float], superuser_conninfo: str
) -> None:
    secret, codes = set_up(factors, person, clock)
    with psycopg.connect(superuser_conninfo) as connection:
        kept = connection.execute("SELECT secret FROM second_factors").fetchall()
        kept += connection.execute("SELECT code_hash FROM recovery_codes").fetchall()
    stored = b"".join(row[0] for row in kept)
    assert secret.encode() not in stored
    assert not any(code.replace("-", "").encode() in stored for code in codes)


def test_an_administrator_takes_it_away_from_others_and_it_is_on_record(
    factors: SecondFactors, admin: Identity, person: Identity, clock: list[float], database: Database
) -> None:
    set_up(factors, person, clock)
    set_up(factors, admin, clock)
    assert factors.enrolled(admin) == {person.account_id, admin.account_id}
    with pytest.raises(NotAllowed):
        factors.remove(person, admin.account_id)
    with pytest.raises(NotAllowed):
        factors.remove(admin, admin.account_id)
    factors.remove(admin, person.account_id)
    assert not factors.state("demo", person.account_id).is_on
    entries = AuditLog(database).entries(admin, kind="second")
    assert [(e.actor, e.action, e.target) for e in entries] == [
        (admin.email, "second factor deleted", person.email),
        (admin.email, "second factor changed", admin.email),
        (person.email, "second factor changed", person.email),
    ]


def test_ones_own_is_set_up_and_turned_off_with_the_password(
    access: Access, person: Identity, client_of: Callable[..., TestClient]
) -> None:
    accounts: Accounts = access.accounts
    account = accounts.sign_in(person.email, PASSWORD)
    client = client_of(access.sessions.start(account))
    page = client.get("/account/second-factor").text
    found = SECRET.search(page)
    assert found is not None
    app = pyotp.TOTP(found[1].replace(" ", ""))
    form = {"csrf": client.cookies["hr_csrf"], "code": app.now()}
    for stolen in ({**form, "password": "not the password"}, form):
        assert client.post("/account/second-factor", data=stolen).status_code == 401
    assert client.post("/account/second-factor", data={**form, "csrf": "x", "password": PASSWORD}).status_code == 403
    answer = client.post("/account/second-factor", data={**form, "password": PASSWORD})
    codes = CODES.findall(answer.text)
    assert len(codes) == 10
    assert "10 recovery codes left" in client.get("/account/second-factor").text
    off = {"csrf": client.cookies["hr_csrf"], "wish": "off", "password": PASSWORD}
    assert client.post("/account/second-factor", data={**off, "code": "000000"}).status_code == 401
    assert client.post("/account/second-factor", data={**off, "code": codes[0]}).status_code == 303
    assert accounts.second_factors.state("demo", person.account_id).is_enough_without
