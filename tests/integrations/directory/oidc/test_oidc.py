"""Signing in elsewhere: what is believed, where people end up, and who ends their sessions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from joserfc.jwk import OctKey, RSAKey

from rag.access.external import ExternalAccounts
from rag.access.identity import SignInAttempt
from rag.access.sessions import Sessions
from rag.errors import AccessError, ProviderAnswerInvalid, ProviderUnavailable, RagError, SettingsError
from rag.integrations.directory.oidc.provider import Mappings, OpenIdProvider
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Role
from tests.access.front_door import Access
from tests.integrations.directory.oidc.oidc_standin import OidcStandin

ATTEMPT = SignInAttempt(state="the-state", nonce="the-nonce", verifier="v" * 64, next="/")
BACK = {"state": "the-state", "code": "the-code"}
LOGOUT = "http://schemas.openid.net/event/backchannel-logout"


@pytest.fixture
def elsewhere() -> Iterator[OidcStandin]:
    with OidcStandin() as running:
        running.claims = running.person("the-nonce")
        yield running


@pytest.fixture
def configured(settings: Settings, elsewhere: OidcStandin) -> Settings:
    return replace(
        settings,
        oidc_issuer=elsewhere.issuer,
        oidc_client_id="hr",
        oidc_client_secret="the client's secret",
        oidc_tenants="example.com=demo, other.example=other",
    )


@pytest.fixture
def provider(configured: Settings, database: Database) -> OpenIdProvider:
    return OpenIdProvider(configured, ExternalAccounts(database))


def test_an_honest_token_makes_an_account_and_finds_it_again(provider: OpenIdProvider, elsewhere: OidcStandin) -> None:
    first = provider.finish(ATTEMPT, BACK)
    assert (first.tenant_id, first.role, first.name) == ("demo", Role.EMPLOYEE, "A Person")
    elsewhere.claims = elsewhere.person("the-nonce", email="New.Name@example.com")
    again = provider.finish(ATTEMPT, BACK)
    assert (again.id, again.email) == (first.id, "new.name@example.com")
    assert elsewhere.forms[0]["code_verifier"] == [ATTEMPT.verifier]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"code": "the-code"}, id="no_state"),
        pytest.param({"code": "the-code", "state": "another"}, id="another_browsers_state"),
        pytest.param({"state": "the-state"}, id="no_code"),
        pytest.param({"state": "the-state", "error": "access_denied", "code": "x"}, id="refused_there"),
    ],
)
def test_an_answer_that_is_not_to_our_question_lets_nobody_in(provider: OpenIdProvider, answer: dict[str, str]) -> None:
    with pytest.raises(AccessError):
        provider.finish(ATTEMPT, answer)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"iss": "https://evil.example"}, id="another_issuer"),
        pytest.param({"aud": "another-client"}, id="another_client"),
        pytest.param({"aud": ["hr", "another"], "azp": "another"}, id="given_to_another"),
        pytest.param({"nonce": "an-older-one"}, id="replayed"),
        pytest.param({"exp": int(time.time()) - 3600}, id="expired"),
        pytest.param({"sub": ""}, id="nobody"),
        pytest.param({"email": ""}, id="no_address"),
        pytest.param({"email_verified": False}, id="address_not_verified"),
        pytest.param({"email_verified": None}, id="address_perhaps_verified"),
        pytest.param({"email": "person@elsewhere.example"}, id="another_domain"),
        pytest.param({"email": "person@example.com.evil.example"}, id="a_domain_that_begins_alike"),
        pytest.param({"email": "a@example.com@evil.example"}, id="two_at_signs"),
    ],
)
def test_a_token_that_says_something_else_lets_nobody_in(
    provider: OpenIdProvider, elsewhere: OidcStandin, changes: dict[str, Any]
) -> None:
    elsewhere.claims = elsewhere.person("the-nonce", **changes)
    with pytest.raises(AccessError):
        provider.finish(ATTEMPT, BACK)


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda s: s.sign(s.claims, RSAKey.generate_key(2048)), id="another_key"),
        pytest.param(
            lambda s: s.sign(s.claims, OctKey.import_key(json.dumps(s.key.as_dict(private=False))), "HS256"),
            id="the_public_key_as_a_secret",
        ),
        pytest.param(lambda s: s.sign(s.claims).rpartition(".")[0] + ".", id="no_signature"),
        pytest.param(lambda s: "eyJhbGciOiJub25lIn0." + s.sign(s.claims).split(".")[1] + ".", id="algorithm_none"),
        pytest.param(lambda s: "garbage", id="garbage"),
    ],
)
def test_a_forged_token_lets_nobody_in(
    provider: OpenIdProvider, elsewhere: OidcStandin, forge: Callable[[OidcStandin], str]
) -> None:
    elsewhere.id_token = forge(elsewhere)
    with pytest.raises(AccessError):
        provider.finish(ATTEMPT, BACK)


@pytest.mark.parametrize(
    ("path", "status", "body", "error"),
    [
        pytest.param("/.well-known/openid-configuration", 500, b"x", ProviderUnavailable, id="discovery_down"),
        pytest.param("/.well-known/openid-configuration", 200, b"<html>", ProviderAnswerInvalid, id="no_json"),
        pytest.param("/.well-known/openid-configuration", 200, b"[]", ProviderAnswerInvalid, id="no_object"),
        pytest.param(
            "/.well-known/openid-configuration", 200, b'{"issuer":"https://x"}', ProviderAnswerInvalid, id="not_itself"
        ),
        pytest.param("/token", 400, b'{"error":"invalid_grant"}', AccessError, id="code_used_up"),
        pytest.param("/token", 200, b"<html>", ProviderAnswerInvalid, id="token_no_json"),
        pytest.param("/token", 503, b"x", RagError, id="token_down"),
        pytest.param("/keys", 500, b"x", ProviderUnavailable, id="keys_down"),
        pytest.param("/keys", 200, b'{"keys":[{"kty":"?"}]}', ProviderAnswerInvalid, id="keys_unreadable"),
    ],
)
def test_every_fault_of_the_provider_is_an_error_of_ours(
    provider: OpenIdProvider, elsewhere: OidcStandin, path: str, status: int, body: bytes, error: type[RagError]
) -> None:
    elsewhere.answers[path] = status, body
    with pytest.raises(error) as caught:
        provider.finish(ATTEMPT, BACK)
    assert "secret" not in str(caught.value)


def test_an_endpoint_elsewhere_without_https_is_not_asked(provider: OpenIdProvider, elsewhere: OidcStandin) -> None:
    told = elsewhere.right_answer("/.well-known/openid-configuration") | {"token_endpoint": "http://169.254.169.254/x"}
    elsewhere.answers["/.well-known/openid-configuration"] = 200, json.dumps(told).encode()
    with pytest.raises(ProviderAnswerInvalid):
        provider.finish(ATTEMPT, BACK)


def test_a_key_that_was_changed_there_is_found(provider: OpenIdProvider, elsewhere: OidcStandin) -> None:
    provider.finish(ATTEMPT, BACK)
    elsewhere.key = RSAKey.generate_key(2048, {"kid": "two", "use": "sig", "alg": "RS256"})
    provider._cache = {path: (at - 61, kept) for path, (at, kept) in provider._cache.items()}
    assert provider.finish(ATTEMPT, BACK).email == "person@example.com"


def test_what_only_userinfo_tells_is_asked_for_and_believed_of_the_same_person_only(
    provider: OpenIdProvider, elsewhere: OidcStandin
) -> None:
    elsewhere.claims = {k: v for k, v in elsewhere.person("the-nonce").items() if not k.startswith("email")}
    elsewhere.userinfo = {"sub": "person-1", "email": "person@example.com", "email_verified": True}
    assert provider.finish(ATTEMPT, BACK).email == "person@example.com"
    elsewhere.userinfo["sub"] = "person-2"
    with pytest.raises(AccessError):
        provider.finish(ATTEMPT, BACK)


def test_an_address_given_to_somebody_else_does_not_open_the_old_account(
    provider: OpenIdProvider, elsewhere: OidcStandin
) -> None:
    provider.finish(ATTEMPT, BACK)
    elsewhere.claims = elsewhere.person("the-nonce", sub="person-2")
    with pytest.raises(AccessError, match="somebody else"):
        provider.finish(ATTEMPT, BACK)


def test_a_person_does_not_change_tenant_with_their_address(provider: OpenIdProvider, elsewhere: OidcStandin) -> None:
    provider.finish(ATTEMPT, BACK)
    elsewhere.claims = elsewhere.person("the-nonce", email="person@other.example")
    with pytest.raises(AccessError, match="another organisation"):
        provider.finish(ATTEMPT, BACK)


def test_a_disabled_account_stays_out(provider: OpenIdProvider, elsewhere: OidcStandin, database: Database) -> None:
    account = provider.finish(ATTEMPT, BACK)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE accounts SET is_active = false WHERE id = %s", (account.id,))
    with pytest.raises(AccessError, match="disabled"):
        provider.finish(ATTEMPT, BACK)


def test_a_sign_in_elsewhere_lasts_as_long_as_is_set(
    provider: OpenIdProvider, access: Access, database: Database
) -> None:
    access.sessions.start(provider.finish(ATTEMPT, BACK))
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT extract(epoch FROM expires_at - now()) FROM sessions").fetchone()
    assert row is not None
    assert 11.9 * 3600 < row[0] <= 12 * 3600


def logout_claims(elsewhere: OidcStandin, **changes: Any) -> dict[str, Any]:
    claims = {"iss": elsewhere.issuer, "aud": "hr", "iat": int(time.time()), "jti": "1", "sub": "person-1"}
    return {k: v for k, v in {**claims, "events": {LOGOUT: {}}, **changes}.items() if v is not None}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"iss": "https://evil.example"}, id="another_issuer"),
        pytest.param({"aud": "another"}, id="another_client"),
        pytest.param({"events": {}}, id="no_event"),
        pytest.param({"events": None}, id="an_identity_token"),
        pytest.param({"nonce": "x"}, id="a_nonce"),
        pytest.param({"iat": int(time.time()) - 7200}, id="old"),
        pytest.param({"sub": None}, id="nobody"),
        pytest.param({"jti": None}, id="no_name_of_its_own"),
    ],
)
def test_a_message_that_is_no_sign_out_ends_nothing(
    provider: OpenIdProvider, elsewhere: OidcStandin, changes: dict[str, Any]
) -> None:
    with pytest.raises(AccessError):
        provider.signed_out(elsewhere.sign(logout_claims(elsewhere, **changes)))


def test_a_sign_out_there_ends_the_sessions_here_and_nobody_elses(
    provider: OpenIdProvider, elsewhere: OidcStandin, access: Access
) -> None:
    elsewhere.claims = elsewhere.person("the-nonce", sid="s1")
    first = access.sessions.start(provider.finish(ATTEMPT, BACK))
    elsewhere.claims = elsewhere.person("the-nonce", sid="s2")
    second = access.sessions.start(provider.finish(ATTEMPT, BACK))
    elsewhere.claims = elsewhere.person("the-nonce", sub="person-2", email="b@example.com")
    other = access.sessions.start(provider.finish(ATTEMPT, BACK))
    for claims, left in (
        (logout_claims(elsewhere, sid="s1"), [False, True, True]),
        (logout_claims(elsewhere), [False, False, True]),
    ):
        for named in provider.signed_out(elsewhere.sign(claims)):
            access.sessions.end_of_origin(named)
        assert [access.sessions.find(token) is not None for token in (first, second, other)] == left


@pytest.mark.parametrize(
    ("groups", "default", "role"),
    [
        pytest.param(["HR-Admins", "staff"], "employee", Role.ADMIN, id="highest"),
        pytest.param(["/hr managers"], "employee", Role.MANAGER, id="path_of_keycloak_and_case"),
        pytest.param("hr managers", "employee", Role.MANAGER, id="one_as_text"),
        pytest.param(["staff"], "employee", Role.EMPLOYEE, id="default"),
        pytest.param(None, "employee", Role.EMPLOYEE, id="no_groups"),
        pytest.param(["staff"], "none", None, id="nobody_else"),
    ],
)
def test_groups_become_roles(settings: Settings, groups: Any, default: str, role: Role | None) -> None:
    mappings = Mappings.of(
        replace(
            settings,
            oidc_tenants="example.com=demo",
            oidc_roles="HR-Admins=admin, HR Managers=manager",
            oidc_default_role=default,
        )
    )
    claims = {"sub": "1", "email": "a@EXAMPLE.com", "email_verified": True, "groups": groups}
    if role is None:
        with pytest.raises(AccessError, match="groups"):
            mappings.person(claims, "i")
    else:
        assert mappings.person(claims, "i").role is role


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"oidc_tenants": ""}, "OIDC_TENANTS", id="nobody_is_let_in"),
        pytest.param({"oidc_tenants": "example.com"}, "OIDC_TENANTS", id="no_tenant"),
        pytest.param({"oidc_tenants": "example.com=Not A Tenant"}, "OIDC_TENANTS", id="no_such_tenant_name"),
        pytest.param({"oidc_roles": "x=owner"}, "OIDC_ROLES", id="unknown_role"),
        pytest.param({"oidc_issuer": "http://login.example.com"}, "OIDC_ISSUER", id="without_https"),
        pytest.param({"oidc_issuer": "https://169.254.169.254"}, "OIDC_ISSUER", id="metadata_of_a_cloud"),
        pytest.param({"oidc_client_secret": ""}, "OIDC_CLIENT_SECRET", id="no_secret"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    configured: Settings, database: Database, changes: dict[str, str], named: str
) -> None:
    with pytest.raises(SettingsError, match=named):
        OpenIdProvider(replace(configured, **cast("dict[str, Any]", changes)), ExternalAccounts(database))


# When somebody proved who they are


def test_somebody_who_is_asked_again_is_sent_there_to_be_asked(provider: OpenIdProvider) -> None:
    again = {"prompt=login", "max_age=0"}
    assert not again & set(provider.address_for(ATTEMPT).partition("?")[2].split("&"))
    address = provider.address_for(replace(ATTEMPT, asked_again_at=time.time()))
    assert again <= set(address.partition("?")[2].split("&"))


@pytest.mark.parametrize(("minutes", "is_asked"), [(0, True), (5, False), (600, False)])
def test_who_was_asked_again_and_came_back_without_proving_it_is_refused(
    provider: OpenIdProvider, elsewhere: OidcStandin, minutes: int, is_asked: bool
) -> None:
    now = time.time()
    elsewhere.claims = elsewhere.person("the-nonce", auth_time=int(now) - 60 * minutes)
    attempt = replace(ATTEMPT, asked_again_at=now)
    if is_asked:
        assert provider.finish(attempt, BACK).origin.proved_at is None
    else:
        with pytest.raises(AccessError, match="did not ask you to confirm who you are"):
            provider.finish(attempt, BACK)


@pytest.mark.parametrize("told", [{}, {"auth_time": 1_700_000_000}])
def test_being_let_in_without_a_question_is_no_recent_sign_in(
    provider: OpenIdProvider, elsewhere: OidcStandin, database: Database, told: dict[str, object]
) -> None:
    elsewhere.claims = elsewhere.person("the-nonce", **told)
    sessions = Sessions(database)
    identity = sessions.find(sessions.start(provider.finish(ATTEMPT, BACK)))
    assert identity is not None
    assert not sessions.is_recent(identity)


def test_having_signed_in_at_the_provider_just_now_is_a_recent_sign_in(
    provider: OpenIdProvider, elsewhere: OidcStandin, database: Database
) -> None:
    elsewhere.claims = elsewhere.person("the-nonce", auth_time=int(time.time()) - 60)
    sessions = Sessions(database)
    identity = sessions.find(sessions.start(provider.finish(ATTEMPT, BACK)))
    assert identity is not None
    assert sessions.is_recent(identity)
