"""Where somebody signed in elsewhere belongs here: domain to tenant, group to role, from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag.access.account_fields import is_email, role_from
from rag.access.external import ExternalPerson
from rag.errors import AccessError, InvalidInput, SettingsError
from rag.settings import Settings
from rag.storage.files import TENANT
from rag.types import Role

NO_ADDRESS = "The sign-in service did not give an e-mail address. An administrator has to allow the scope email there."
NOT_VERIFIED = (
    "The sign-in service has not verified your e-mail address. An administrator can say that its addresses are its own "
    "with OIDC_EMAIL_IS_VERIFIED."
)
NOBODY_THERE = "Nobody with an address at {domain} is let in here. Ask an administrator."
NOT_OF_AN_ORGANISATION = (
    "This Google account is nobody's but yours: it only has an address at {domain}. Sign in with the account that your "
    "organisation gave you."
)
TOO_MANY_GROUPS = (
    "You are in so many groups that the sign-in service does not list them. An administrator there has to limit the "
    "groups in the token to those of this application, or give it roles."
)
NO_GROUP = "None of your groups is let in here. Ask an administrator."
#: Anybody can open a Google account with an address of their company; only where `hd` is told is it the company's own
#: (OpenID Connect, "Obtain user information from the ID token", developers.google.com).
GOOGLE = "https://accounts.google.com"
GOOGLES_OWN = frozenset({"gmail.com", "googlemail.com"})


@dataclass(frozen=True, kw_only=True)
class Mappings:
    """The settings, read once. Domains and groups are compared without regard to case."""

    tenants: Mapping[str, str]
    roles: Mapping[str, Role]
    #: None: nobody else is let in.
    default_role: Role | None
    groups_claim: str
    email_is_verified: bool

    @classmethod
    def of(cls, settings: Settings) -> Mappings:
        """Raises `SettingsError` naming the variable that cannot be used."""
        tenants = _pairs("OIDC_TENANTS", settings.oidc_tenants)
        if not tenants:
            raise SettingsError("OIDC_ISSUER is set, so OIDC_TENANTS has to say who is let in: example.com=demo.")
        for tenant in tenants.values():
            if not TENANT.fullmatch(tenant):
                raise SettingsError(f"OIDC_TENANTS names {tenant!r}, but tenants are lower case letters and digits.")
        try:
            roles = {group: role_from(role) for group, role in _pairs("OIDC_ROLES", settings.oidc_roles).items()}
            default = None if settings.oidc_default_role == "none" else role_from(settings.oidc_default_role)
        except InvalidInput as exc:
            raise SettingsError(f"OIDC_ROLES or OIDC_DEFAULT_ROLE: {exc.message}") from exc
        return cls(
            tenants=tenants,
            roles=roles,
            default_role=default,
            groups_claim=settings.oidc_groups_claim,
            email_is_verified=settings.oidc_email_is_verified,
        )

    def person(self, claims: Mapping[str, Any], issuer: str) -> ExternalPerson:
        """Who these verified claims name, and where they belong. Raises `AccessError` saying why nobody."""
        email = str(claims.get("email") or "").strip().lower()
        if not is_email(email):
            raise AccessError(NO_ADDRESS)
        if not self.email_is_verified and claims.get("email_verified") not in (True, "true"):
            raise AccessError(NOT_VERIFIED)
        domain = email.rpartition("@")[2]
        if (tenant := self.tenants.get(domain)) is None:
            raise AccessError(NOBODY_THERE.format(domain=domain))
        if issuer == GOOGLE and not claims.get("hd") and domain not in GOOGLES_OWN:
            raise AccessError(NOT_OF_AN_ORGANISATION.format(domain=domain))
        return ExternalPerson(
            issuer=issuer,
            subject=str(claims["sub"]),
            email=email,
            name=" ".join(str(claims.get("name") or "").split())[:120],
            tenant_id=tenant,
            role=self._role(claims),
            makes_tenant=True,
        )

    def groups(self, claims: Mapping[str, Any]) -> Any:
        """What these claims say of groups; None when they say nothing. A claim within another is named with a dot."""
        if self.groups_claim in claims:
            return claims[self.groups_claim]
        found: Any = claims
        for name in self.groups_claim.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def _role(self, claims: Mapping[str, Any]) -> Role | None:
        """The highest role of the groups; None, which leaves an account's role, when no group is mapped."""
        groups = self.groups(claims)
        if self.roles and groups is None and _has_too_many_groups(claims, self.groups_claim):
            raise AccessError(TOO_MANY_GROUPS)
        named = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        found = [role for group in named if (role := self.roles.get(str(group).strip("/").lower()))]
        if found:
            return max(found, key=list(Role).index)
        if self.default_role is None:
            raise AccessError(NO_GROUP)
        return self.default_role if self.roles else None


def _has_too_many_groups(claims: Mapping[str, Any], groups_claim: str) -> bool:
    """Entra ID's sign that somebody is in more than 200 groups: it says where to ask instead of naming them."""
    elsewhere = claims.get("_claim_names")
    return bool(claims.get("hasgroups")) or (isinstance(elsewhere, Mapping) and groups_claim in elsewhere)


def _pairs(name: str, text: str) -> dict[str, str]:
    pairs = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        left, equals, right = (piece.strip() for piece in part.rpartition("="))
        if not equals or not left or not right:
            raise SettingsError(f"{name} is {text!r}, but it has to look like: one=two, three=four.")
        pairs[left.strip("/").lower()] = right
    return pairs
