"""An administrator signs in with Google, and a collection reads the Drive folder that they may read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from rag.errors import ProviderKeyRejected, SettingsError
from rag.integrations.sources.google_drive.sign_in import ACCOUNT_COOKIE, GoogleSignIn
from rag.services import assemble
from rag.settings import Settings
from rag.types import Identity, Role
from tests.api.callers import Api
from tests.integrations.sources.google_drive.drive_standin import ROOT, DriveStandin

WHERE = {"folder": f"https://drive.google.com/drive/folders/{ROOT}"}


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DriveStandin]:
    server = DriveStandin(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    with server:
        yield server


@pytest.fixture
def settings(settings: Settings, drive: DriveStandin) -> Settings:
    variables = {
        "RAG_GOOGLE_CLIENT_ID": "client-7",
        "RAG_GOOGLE_CLIENT_SECRET": "the-client-secret",
        "RAG_GOOGLE_LOGIN_URL": f"https://{drive.host}/auth",
        "RAG_GOOGLE_OAUTH_URL": f"https://{drive.host}/token",
        "RAG_GOOGLE_API_URL": f"https://{drive.host}",
    }
    return replace(settings, integration_variables=variables, sync_hosts=drive.host)


def browser_of(api: Api, role: Role = Role.ADMIN) -> httpx.Client:
    browser = api.client(Accept="text/html")
    browser.cookies.set("hr_session", api.session(role))
    return browser


def person_of(api: Api, browser: httpx.Client) -> Identity:
    found = api.parts.sessions.find(browser.cookies["hr_session"])
    assert found is not None
    return found


def start(api: Api, browser: httpx.Client) -> str:
    """Begin; the address at Google."""
    sent = browser.get(f"/sources/google/start?collection={api.collection.id}")
    assert sent.status_code == 303, sent.text
    return sent.headers["location"]


def path_of(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


def test_a_folder_is_read_as_the_person_who_signed_in(api: Api, drive: DriveStandin) -> None:
    browser, syncs = browser_of(api), api.parts.syncs
    address = start(api, browser)
    asked = parse_qs(urlsplit(address).query)
    assert asked["scope"] == ["https://www.googleapis.com/auth/drive.readonly"]
    assert asked["code_challenge_method"] == ["S256"]
    back = browser.get(path_of(drive.person_allows(address, "hr@example.com")))
    assert back.status_code == 303, back.text
    assert back.headers["location"] == f"/collections?collection={api.collection.id}&source=google_drive"
    sealed = browser.cookies[ACCOUNT_COOKIE]
    google, person = GoogleSignIn(api.parts.database, api.parts.settings), person_of(api, browser)
    account = google.account(sealed, person)
    assert account is not None
    assert account.email == "hr@example.com"
    # The cookie is worth nothing in anybody else's browser, and says nothing to who reads it.
    assert google.account(sealed, api.admin) is None
    assert google.account(sealed[:-4] + "AAAA", person) is None
    assert "hr@example" not in sealed
    assert "the-client-secret" not in repr(account)

    drive.put("file-leave", "leave.md", b"# Leave\n\nTwenty-eight days.")
    secrets = {"key": account.key}
    assert syncs.try_source(api.admin, api.collection, "google_drive", WHERE, secrets=secrets) == ["leave.md"]
    syncs.set_source(api.admin, api.collection, "google_drive", WHERE, secrets=secrets)
    (kept,) = syncs.sources(api.collection)
    assert "refresh_token" not in f"{kept!r} {kept.secrets} {kept.settings}"
    assert syncs.sync_now(api.admin, api.collection).added == 1
    assert set(drive.acted_as) == {"hr@example.com"}
    drive.people.clear()  # they took their consent back
    with pytest.raises(ProviderKeyRejected, match="Sign in with Google again"):
        syncs.sync_now(api.admin, api.collection)


def test_what_was_not_allowed_is_said_and_nothing_is_kept(api: Api, drive: DriveStandin) -> None:
    browser = browser_of(api)

    def refused(path: str, said: str) -> None:
        answer = browser.get(path)
        assert answer.status_code in (401, 403)
        assert said in answer.text
        assert ACCOUNT_COOKIE not in browser.cookies

    state = parse_qs(urlsplit(start(api, browser)).query)["state"][0]
    refused(f"/sources/google/callback?error=access_denied&state={state}", "You did not allow access at Google")
    # The attempt is over with the first answer, whatever it was.
    refused(f"/sources/google/callback?code=x&state={state}", "took too long")
    start(api, browser)
    refused("/sources/google/callback?code=x&state=another", "took too long")
    start(api, browser)
    refused(f"/sources/google/callback?code=made-up&state={state}", "took too long")
    drive.granted = "openid"
    refused(
        path_of(drive.person_allows(start(api, browser), "hr@example.com")),
        "did not allow access to your files in Google Drive",
    )


def test_nobody_but_an_administrator_is_sent_there(api: Api, drive: DriveStandin) -> None:
    path = f"/sources/google/start?collection={api.collection.id}"
    assert browser_of(api, Role.EMPLOYEE).get(path).status_code == 403
    assert api.client(api.key()).get(path).status_code in (401, 403)
    assert api.client(Accept="text/html").get(path).headers["location"].startswith("/login")
    # Another administrator's browser does not take back what one was sent with.
    one = browser_of(api)
    back = path_of(drive.person_allows(start(api, one), "hr@example.com"))
    second, _ = api.parts.accounts.invite(api.admin, "second@example.com", "Second", Role.ADMIN)
    other = api.client(Accept="text/html")
    other.cookies.update(one.cookies)
    other.cookies.set("hr_session", api.parts.sessions.start(second))
    assert other.get(back).status_code in (401, 403)
    assert ACCOUNT_COOKIE not in other.cookies


def test_without_a_client_it_is_not_offered_and_half_a_client_is_named(api: Api, settings: Settings) -> None:
    without = GoogleSignIn(api.parts.database, replace(settings, integration_variables={}))
    assert not without.is_offered
    half = {**settings.integration_variables, "RAG_GOOGLE_CLIENT_SECRET": ""}
    with pytest.raises(SettingsError, match="set together"):
        assemble(replace(settings, integration_variables=half), api.parts.database)
