"""What an attacker does to somebody's account, on a clock of our own: the owner gets in, the guesses stay few."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from rag.access.accounts import MOST_KNOWN_BROWSERS, Accounts
from rag.access.limits import Attempts, Browser, UnknownSignIns
from rag.errors import TooManyAttempts, WrongPassword
from rag.storage.database import Database
from rag.types import Account, Identity
from tests.access.front_door import CHEAP, PASSWORD, Access, AddPerson

ClientOf = Callable[..., TestClient]
EMAIL = "owner@example.com"
ATTACKER = Browser(mark="attacker", address="203.0.113.9")
OWNER = Browser(mark="owner", address="198.51.100.7")
HOUR = 3600


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(access: Access, database: Database, clock: Clock) -> Access:
    """As everywhere, with the clock."""
    accounts = Accounts(database, access.sessions, access.settings, hasher=CHEAP, clock=clock)
    return replace(access, accounts=accounts)


@pytest.fixture
def owner(add_person: AddPerson) -> Account:
    return add_person(EMAIL)


def guess(access: Access, browser: Browser = ATTACKER, email: str = EMAIL) -> bool:
    """Whether a wrong password was looked at."""
    try:
        access.accounts.sign_in(email, "a wrong password", browser)
    except WrongPassword:
        return True
    except TooManyAttempts:
        return False
    raise AssertionError


def night(clock: Clock, *, every_seconds: float, hours: float = 8) -> Iterator[None]:
    """Moments of a night."""
    end = clock.now + hours * HOUR
    while clock.now < end:
        yield
        clock.now += every_seconds


def test_the_owner_gets_in_at_once_on_a_browser_that_is_known(access: Access, owner: Account, clock: Clock) -> None:
    known = replace(OWNER, known_token=access.accounts.know_browser(owner.tenant_id, owner.id))
    tries = 0
    for minute, _ in enumerate(night(clock, every_seconds=60)):
        guess(access)
        if minute % 20 == 10:
            assert access.accounts.sign_in(EMAIL, PASSWORD, known).id == owner.id
            tries += 1
    assert tries == 24


def test_signing_in_on_a_known_browser_gives_the_attacker_no_more_guesses(
    access: Access, owner: Account, clock: Clock
) -> None:
    known = replace(OWNER, known_token=access.accounts.know_browser(owner.tenant_id, owner.id))
    looked_at = 0
    for _ in night(clock, every_seconds=60, hours=3):
        looked_at += guess(access)
        access.accounts.sign_in(EMAIL, PASSWORD, known)
    assert looked_at <= 5 + 5 + 3 * 12


@pytest.mark.parametrize("mark", ["attacker", "owner"], ids=["one_browser", "the_owners_network"])
def test_the_owner_gets_in_on_an_unknown_browser_within_a_bounded_wait(
    access: Access, owner: Account, clock: Clock, mark: str
) -> None:
    attacker = replace(ATTACKER, address=OWNER.address) if mark == "owner" else ATTACKER
    for _ in night(clock, every_seconds=30, hours=1):
        guess(access, attacker)
    began, waits = clock.now, list[int]()
    for step, _ in enumerate(night(clock, every_seconds=30)):
        guess(access, attacker)
        if step % 4 == 3:
            try:
                access.accounts.sign_in(EMAIL, PASSWORD, OWNER)
                break
            except TooManyAttempts as exc:
                waits.append(exc.details["wait_seconds"])
    else:
        raise AssertionError("the owner was kept out all night")
    assert clock.now - began <= 15 * 60
    assert all(0 < wait <= 600 for wait in waits)


def test_the_guesses_of_unknown_browsers_stay_few_whatever_they_call_themselves(
    access: Access, owner: Account, clock: Clock
) -> None:
    looked_at = 0
    for step, _ in enumerate(night(clock, every_seconds=20, hours=2)):
        looked_at += guess(access, Browser(mark=f"browser {step}", address=f"192.0.2.{step % 200}"))
    assert 5 <= looked_at <= 5 + 5 + 2 * 12


def test_who_throws_cookies_away_fills_the_queue_of_their_own_address_only(
    access: Access, owner: Account, clock: Clock
) -> None:
    for step, _ in enumerate(night(clock, every_seconds=30, hours=1)):
        guess(access, replace(ATTACKER, mark=f"browser {step}"))
    began = clock.now
    for step, _ in enumerate(night(clock, every_seconds=30)):
        guess(access, replace(ATTACKER, mark=f"another browser {step}"))
        if step % 4 == 0:
            try:
                access.accounts.sign_in(EMAIL, PASSWORD, OWNER)
                break
            except TooManyAttempts:
                continue
    assert clock.now - began <= 45 * 60


def test_guesses_in_a_known_browser_are_few_too(access: Access, owner: Account, clock: Clock) -> None:
    known = Browser(known_token=access.accounts.know_browser(owner.tenant_id, owner.id))
    looked_at = sum(guess(access, known) for _ in night(clock, every_seconds=30, hours=2))
    assert looked_at <= 5 + 5 + 2 * 12
    # They do not count for the others.
    assert access.accounts.sign_in(EMAIL, PASSWORD, OWNER).id == owner.id


def test_a_browser_is_known_for_the_accounts_that_signed_in_there(
    access: Access, owner: Account, add_person: AddPerson
) -> None:
    other = add_person("other@example.com")
    token = access.accounts.know_browser(owner.tenant_id, owner.id)
    browser = Browser(known_token=token)
    assert access.accounts.knows_browser(EMAIL, browser)
    assert not access.accounts.knows_browser(other.email, browser)
    assert access.accounts.know_browser(other.tenant_id, other.id, token) == token
    assert access.accounts.knows_browser(other.email, browser)
    assert access.accounts.knows_browser(EMAIL, browser)


def test_a_token_that_somebody_put_there_is_replaced(access: Access, owner: Account) -> None:
    planted = "x" * 43
    assert access.accounts.know_browser(owner.tenant_id, owner.id, planted) != planted
    assert not access.accounts.knows_browser(EMAIL, Browser(known_token=planted))


def test_a_new_password_forgets_the_browsers(access: Access, owner: Account, admin: Identity) -> None:
    known = Browser(known_token=access.accounts.know_browser(owner.tenant_id, owner.id))
    link = access.accounts.password_link(admin, owner.id)
    access.accounts.set_password_by_link(link.partition("token=")[2], "another good password")
    assert not access.accounts.knows_browser(EMAIL, known)


def test_the_latest_browsers_are_known(access: Access, owner: Account) -> None:
    tokens = [access.accounts.know_browser(owner.tenant_id, owner.id) for _ in range(MOST_KNOWN_BROWSERS + 3)]
    known = [access.accounts.knows_browser(EMAIL, Browser(known_token=token)) for token in tokens]
    assert known == [False] * 3 + [True] * MOST_KNOWN_BROWSERS


def test_an_unknown_address_waits_as_an_account_does(access: Access, owner: Account, clock: Clock) -> None:
    """Attacked in the same way, both say the same at each moment: waiting tells nobody who has an account."""
    said: dict[str, list[object]] = {EMAIL: [], "nobody@example.com": []}
    for step, _ in enumerate(night(clock, every_seconds=45, hours=1)):
        for email, heard in said.items():
            try:
                access.accounts.sign_in(email, "a wrong password", ATTACKER if step % 3 else OWNER)
            except (WrongPassword, TooManyAttempts) as exc:
                heard.append(exc.message)
    assert said[EMAIL] == said["nobody@example.com"]


def test_the_queue_is_bounded() -> None:
    attempts = Attempts(failed=20, last_at=1000.0)
    for number in range(500):
        attempts, wait = attempts.after_attempt(Browser(mark=str(number), address=str(number)), 1001.0)
        assert wait > 0
    assert len(attempts.waiting) == 50


def test_strangers_take_turns_too() -> None:
    clock = Clock()
    strangers = UnknownSignIns(clock)
    for _ in range(5):
        strangers.count("nobody@example.com", ATTACKER)
    for browser in (ATTACKER, OWNER):
        with pytest.raises(TooManyAttempts):
            strangers.count("nobody@example.com", browser)
    clock.now += 10
    with pytest.raises(TooManyAttempts):
        strangers.count("nobody@example.com", OWNER)
    strangers.count("nobody@example.com", ATTACKER)


def test_a_browser_keeps_what_it_is_known_by(client_of: ClientOf, access: Access, owner: Account) -> None:
    def send(client: TestClient, password: str) -> int:
        csrf = client.get("/login").text.partition('name="csrf" value="')[2].partition('"')[0]
        data = {"csrf": csrf, "email": EMAIL, "password": password}
        return int(client.post("/login", data=data, headers={"origin": "http://testserver"}).status_code)

    own, stranger = client_of(), client_of()
    assert send(own, PASSWORD) == 303
    del own.cookies["hr_session"]
    assert [send(stranger, "a wrong password") for _ in range(8)] == [401] * 5 + [429] * 3
    assert send(own, PASSWORD) == 303
    assert send(stranger, PASSWORD) == 429
