"""Tokens as Google, Entra ID, Okta and Keycloak shape them, from a provider that we did not write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from rag.access.external import ExternalAccounts
from rag.errors import AccessError
from rag.integrations.directory.oidc.provider import GOOGLE, Mappings, OpenIdProvider
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Role
from tests.access.front_door import Access, at_provider, come_back, tell

Claims = dict[str, Any]
GROUP_ID = "8f1c1b5e-6d43-4f0e-9a77-0c6f0c7e2d11"
WHO: Claims = {"email": "p@example.com", "email_verified": True, "name": "P"}
#: Entra ID says nothing of whether an address is verified.
ENTRA: Claims = {
    "email": "p@example.com", "preferred_username": "p@example.com", "name": "P", "ver": "2.0",
    "oid": "a1a1a1a1-0000-0000-0000-000000000001", "tid": "b2b2b2b2-0000-0000-0000-000000000002",
}  # fmt: skip
OVERAGE: Claims = {
    **ENTRA,
    "_claim_names": {"groups": "src1"},
    "_claim_sources": {"src1": {"endpoint": "https://graph.microsoft.com/v1.0/users/p/getMemberObjects"}},
}
KEYCLOAK: Claims = {
    **WHO,
    "preferred_username": "p",
    "realm_access": {"roles": ["offline_access", "hr-admin"]},
    "resource_access": {"account": {"roles": ["view-profile"]}},
    "groups": ["/people/hr"],
}
AT_ENTRA = {"oidc_email_is_verified": True, "oidc_roles": f"{GROUP_ID}=admin"}


@pytest.fixture
def base(settings: Settings, issuer: str) -> Settings:
    return at_provider(settings, issuer)


@pytest.fixture
def access(access: Access, base: Settings, database: Database, request: pytest.FixtureRequest) -> Access:
    given: Mapping[str, Any] = request.node.callspec.params["given"]
    return replace(access, single_sign_on=OpenIdProvider(replace(base, **given), ExternalAccounts(database)))


def signed_in(client: TestClient, issuer: str, person: str, claims: Claims) -> tuple[int, str]:
    """The status of coming back, and the role or the page's text."""
    tell(issuer, person, **claims)
    _, back = come_back(client, person)
    answer = client.get(back)
    return answer.status_code, client.get("/api/me").json()["role"] if answer.status_code == 303 else answer.text


@pytest.mark.parametrize(
    ("given", "claims", "role"),
    [
        pytest.param({}, {**WHO, "hd": "example.com"}, "employee", id="google_has_no_groups"),
        pytest.param(AT_ENTRA, {**ENTRA, "groups": [GROUP_ID]}, "admin", id="entra_groups_are_ids"),
        pytest.param(
            {"oidc_email_is_verified": True, "oidc_roles": "HR.Admin=admin", "oidc_groups_claim": "roles"},
            {**OVERAGE, "roles": ["HR.Admin"]},
            "admin",
            id="entra_roles_of_the_application",
        ),
        pytest.param({}, {**OVERAGE, "email_verified": True}, "employee", id="entra_groups_that_nobody_asked_for"),
        pytest.param({"oidc_roles": "HR=manager"}, {**WHO, "groups": ["Everyone", "HR"]}, "manager", id="okta_groups"),
        pytest.param({"oidc_roles": "people/hr=manager"}, KEYCLOAK, "manager", id="keycloak_group_paths"),
        pytest.param(
            {"oidc_roles": "hr-admin=admin", "oidc_groups_claim": "realm_access.roles"},
            KEYCLOAK,
            "admin",
            id="keycloak_realm_roles",
        ),
        pytest.param(
            {"oidc_roles": "view-profile=manager", "oidc_groups_claim": "resource_access.account.roles"},
            KEYCLOAK,
            "manager",
            id="keycloak_roles_of_a_client",
        ),
    ],
)
def test_each_providers_tokens_give_the_role_that_is_meant(
    client_of: Callable[..., TestClient], issuer: str, given: dict[str, Any], claims: Claims, role: str
) -> None:
    assert signed_in(client_of(), issuer, "p", claims) == (303, role)


@pytest.mark.parametrize(
    ("given", "claims", "sentence"),
    [
        pytest.param(AT_ENTRA, OVERAGE, "so many groups", id="entra_names_too_many_groups"),
        pytest.param(AT_ENTRA, {**ENTRA, "hasgroups": True}, "so many groups", id="entra_has_groups"),
        pytest.param({}, ENTRA, "has not verified", id="entra_without_the_setting"),
        pytest.param(
            {"oidc_roles": "HR=manager", "oidc_default_role": "none"},
            {**WHO, "groups": ["Everyone"]},
            "None of your groups",
            id="okta_group_not_named",
        ),
        pytest.param(
            {"oidc_roles": "hr-admin=admin", "oidc_default_role": "none", "oidc_groups_claim": "realm_access.roles"},
            {**KEYCLOAK, "realm_access": "no object"},
            "None of your groups",
            id="keycloak_claim_of_another_shape",
        ),
    ],
)
def test_who_would_get_less_than_is_meant_is_told_why(
    client_of: Callable[..., TestClient], issuer: str, given: dict[str, Any], claims: Claims, sentence: str
) -> None:
    status, text = signed_in(client_of(), issuer, "p", claims)
    assert status == 401
    assert sentence in text


@pytest.mark.parametrize(
    ("claims", "is_in"),
    [
        pytest.param({"hd": "example.com"}, True, id="account_of_the_organisation"),
        pytest.param({"hd": "primary.example"}, True, id="second_domain_of_the_organisation"),
        pytest.param({}, False, id="own_account_with_the_companys_address"),
        pytest.param({"email": "p@gmail.com"}, True, id="googles_own_address"),
    ],
)
def test_at_google_an_address_of_the_company_is_not_enough(base: Settings, claims: Claims, is_in: bool) -> None:
    mappings = Mappings.of(replace(base, oidc_tenants="example.com=demo, gmail.com=demo"))
    told = {"sub": "1", **WHO, **claims}
    if is_in:
        assert mappings.person(told, GOOGLE).role is None
    else:
        with pytest.raises(AccessError, match="your organisation gave you"):
            mappings.person(told, GOOGLE)
    assert mappings.person(told, "https://another.example").tenant_id == "demo"


def test_a_claim_whose_name_has_dots_is_found_by_its_name(base: Settings) -> None:
    name = "https://hr.example.com/groups"
    mappings = Mappings.of(replace(base, oidc_groups_claim=name, oidc_roles="hr=manager"))
    assert mappings.person({"sub": "1", **WHO, name: ["hr"]}, "i").role is Role.MANAGER
