"""Sign in at an OpenID Connect provider, for example Google, Entra ID, Okta or Keycloak.

Implements the authorization code flow with PKCE, state and nonce (RFC 6749, RFC 7636, OpenID Connect Core 3.1), and
Back-Channel Logout 1.0. A verified token identifies the person; our settings decide the person's tenant and role.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from rag.access.account_rows import is_email, role_from
from rag.access.external import AccountFromElsewhere, ExternalAccounts, ExternalPerson, Origin, from_elsewhere
from rag.access.external import origin_hash as hash_of
from rag.access.identity import SignInAttempt
from rag.errors import AccessError, InvalidInput, ProviderAnswerInvalid, ProviderUnavailable, SettingsError
from rag.providers.addresses import require_safe_origin
from rag.providers.bounds import Bounds, bound
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import TENANT
from rag.types import Role

TIMEOUT_SECONDS = 10.0
#: The limit for an answer, such as a provider's keys.
BOUNDS = Bounds(most_bytes=2 * 2**20, longest_seconds=30.0)
#: How long the provider's metadata is kept, and how soon an unknown key is looked up again, in seconds.
FRESH_SECONDS, KEY_SECONDS = 3600.0, 60.0
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
LEEWAY_SECONDS = 60
#: A logout message older than this is not accepted.
LOGOUT_SECONDS = 600
NOT_VALID = "The sign-in could not be verified. Try again; if it happens again, tell your administrator."
NO_CONFIRMATION = (
    "The sign-in service did not ask you to confirm who you are, which this step requires. Sign out of that service, "
    "then try again."
)
UNREACHABLE = "The sign-in service cannot be reached at the moment. Try again in a moment."


class OpenIdProvider:
    """The configured provider. Thread-safe; sends no request before a person signs in."""

    def __init__(self, settings: Settings, people: ExternalAccounts) -> None:
        require_safe_origin("OIDC_ISSUER", settings.oidc_issuer)
        if not settings.oidc_client_id or not settings.oidc_client_secret:
            raise SettingsError("OIDC_ISSUER is set, so OIDC_CLIENT_ID and OIDC_CLIENT_SECRET have to be set as well.")
        self.issuer = settings.oidc_issuer
        self._settings = settings
        self._people = people
        self._mappings = Mappings.of(settings)
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[float, Any]] = {}

    @property
    def redirect_uri(self) -> str:
        """Return our address for the redirect back, which must be registered at the provider."""
        return f"{self._settings.own_address}/sso/callback"

    def address_for(self, attempt: SignInAttempt) -> str:
        """Return the provider's address for the redirect. Raises `ProviderUnavailable`, `ProviderAnswerInvalid`."""
        endpoint = self._endpoint("authorization_endpoint")
        again = {"prompt": "login", "max_age": "0"} if attempt.asked_again_at else {}
        with self._client() as client:
            url, _ = client.create_authorization_url(
                endpoint, state=attempt.state, nonce=attempt.nonce, code_verifier=attempt.verifier, **again
            )
            return str(url)

    def finish(self, attempt: SignInAttempt, answer: Mapping[str, str]) -> AccountFromElsewhere:
        """Check the provider's response to an attempt and return the account. Raises `AccessError`, `ProviderError`."""
        if answer.get("state", "") != attempt.state:
            raise AccessError(NOT_VALID)
        if "error" in answer or not answer.get("code"):
            raise AccessError("The sign-in service did not complete the sign-in. Try again.")
        token = self._exchange(answer["code"], attempt)
        claims = self._identity_claims(token, attempt)
        proved_at = _proved_at(claims, attempt)
        person = self._mappings.person(self._with_details(claims, token), self.issuer)
        account = self._people.admit(person)
        origin = Origin(
            issuer=self.issuer,
            subject_hash=person.subject_hash,
            session_hash=hash_of(self.issuer, f"sid {claims['sid']}") if claims.get("sid") else "",
            lasts_seconds=self._settings.oidc_session_hours * 3600,
            proved_at=proved_at,
        )
        return from_elsewhere(account, origin)

    def signed_out(self, logout_token: str) -> list[str]:
        """Read a logout token, and return the `origin_hash` for each session or person to sign out.

        Raises `AccessError` for an invalid token.
        """
        try:
            decoded = self._decode(logout_token)
        except JoseError as exc:
            raise AccessError(NOT_VALID) from exc
        claims = decoded.claims
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        issued_at, events = claims.get("iat"), claims.get("events")
        is_ours = claims.get("iss") == self.issuer and self._settings.oidc_client_id in audiences
        is_recent = isinstance(issued_at, int | float) and abs(time.time() - issued_at) < LOGOUT_SECONDS
        is_message = isinstance(events, dict) and LOGOUT_EVENT in events and "nonce" not in claims and "jti" in claims
        if not (is_ours and is_recent and is_message and (claims.get("sid") or claims.get("sub"))):
            raise AccessError(NOT_VALID)
        # A message with a session ends only the session.
        name = f"sid {claims['sid']}" if claims.get("sid") else str(claims["sub"])
        return [hash_of(self.issuer, name)]

    # Inside

    def _client(self) -> OAuth2Client:
        settings = self._settings
        return bound(
            OAuth2Client(
                settings.oidc_client_id,
                settings.oidc_client_secret,
                scope=settings.oidc_scopes,
                redirect_uri=self.redirect_uri,
                code_challenge_method="S256",
                timeout=TIMEOUT_SECONDS,
                follow_redirects=False,
            ),
            BOUNDS,
        )

    def _exchange(self, code: str, attempt: SignInAttempt) -> dict[str, Any]:
        endpoint = self._endpoint("token_endpoint")
        try:
            with self._client() as client:
                return dict(client.fetch_token(endpoint, code=code, code_verifier=attempt.verifier))
        except AuthlibBaseError as exc:
            raise AccessError(NOT_VALID) from exc
        except (httpx2.HTTPStatusError, ValueError, TypeError, KeyError) as exc:
            raise ProviderAnswerInvalid("The sign-in service sent an answer that cannot be read.") from exc
        except (httpx2.HTTPError, OSError) as exc:
            raise ProviderUnavailable(UNREACHABLE) from exc

    def _identity_claims(self, token: Mapping[str, Any], attempt: SignInAttempt) -> dict[str, Any]:
        try:
            decoded = self._decode(str(token.get("id_token", "")))
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                options={
                    "iss": {"essential": True, "value": self.issuer},
                    "aud": {"essential": True, "value": self._settings.oidc_client_id},
                },
                params={
                    "nonce": attempt.nonce,
                    "client_id": self._settings.oidc_client_id,
                    "access_token": token.get("access_token"),
                },
            )
            claims.validate(leeway=LEEWAY_SECONDS)
            if not isinstance(claims["sub"], str) or not claims["sub"]:
                raise ValueError("sub")
        except (JoseError, AuthlibBaseError, ValueError, TypeError) as exc:
            raise AccessError(NOT_VALID) from exc
        return dict(decoded.claims)

    def _with_details(self, claims: dict[str, Any], token: Mapping[str, Any]) -> dict[str, Any]:
        """Add claims which are missing in the token, from the userinfo endpoint.

        Okta, for example, leaves out e-mail address and groups.
        """
        has_groups = not self._mappings.roles or self._mappings.groups(claims) is not None
        if ("email" in claims and has_groups) or "userinfo_endpoint" not in self._discovery():
            return claims
        headers = {"Authorization": f"Bearer {token.get('access_token', '')}"}
        userinfo = self._get(self._endpoint("userinfo_endpoint"), headers)
        if userinfo.get("sub") != claims["sub"]:
            raise AccessError(NOT_VALID)
        return {**userinfo, **claims}

    def _decode(self, token: str) -> jwt.Token:
        """Verify and decode a token.

        If the token is signed with an unknown key, the provider's keys are fetched again, at most once a minute.
        """
        try:
            return jwt.decode(token, self._keys(FRESH_SECONDS), algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            return jwt.decode(token, self._keys(KEY_SECONDS), algorithms=ALGORITHMS)

    def _keys(self, fresh_seconds: float) -> KeySet:
        address = self._endpoint("jwks_uri")
        try:
            keys: Any = self._fetch(address, fresh_seconds)
            return KeySet.import_key_set(keys)
        except (JoseError, ValueError, TypeError, KeyError) as exc:
            raise ProviderAnswerInvalid("The sign-in service sent keys that cannot be read.") from exc

    def _endpoint(self, name: str) -> str:
        address = self._discovery().get(name)
        if not isinstance(address, str):
            raise ProviderAnswerInvalid(f"The sign-in service does not give the address of its {name}.")
        try:
            return require_safe_origin(f"The provider's {name}", address.partition("?")[0]) and address
        except SettingsError as exc:
            raise ProviderAnswerInvalid(exc.message) from exc

    def _discovery(self) -> dict[str, Any]:
        metadata = self._fetch(self.issuer.rstrip("/") + "/.well-known/openid-configuration", FRESH_SECONDS)
        if metadata.get("issuer") != self.issuer:
            raise ProviderAnswerInvalid(
                "The name that the sign-in service gives itself differs from OIDC_ISSUER. An administrator has to "
                "set OIDC_ISSUER to exactly the name that the service uses. With Entra ID, OIDC_ISSUER is the "
                "address of your own organisation, not the address for all organisations."
            )
        return metadata

    def _fetch(self, address: str, fresh_seconds: float) -> dict[str, Any]:
        with self._lock:
            at, cached = self._cache.get(address, (0.0, None))
        if cached is not None and time.monotonic() - at < fresh_seconds:
            return dict(cached)
        fetched = self._get(address, {})
        with self._lock:
            self._cache[address] = (time.monotonic(), fetched)
        return fetched

    def _get(self, address: str, headers: Mapping[str, str]) -> dict[str, Any]:
        try:
            with bound(httpx2.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False), BOUNDS) as client:
                answer = client.get(address, headers=dict(headers))
            answer.raise_for_status()
            content = answer.json()
        except httpx2.HTTPStatusError as exc:
            raise ProviderUnavailable(UNREACHABLE) from exc
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
            raise ProviderUnavailable(UNREACHABLE) from exc
        except (ValueError, RecursionError) as exc:
            raise ProviderAnswerInvalid("The sign-in service sent an answer that cannot be read.") from exc
        if not isinstance(content, dict):
            raise ProviderAnswerInvalid("The sign-in service sent an answer that cannot be read.")
        return content


def _proved_at(claims: Mapping[str, Any], attempt: SignInAttempt) -> float | None:
    """Return when the person last signed in at the provider, in seconds since 1970.

    `None` means just now; 0 means an unknown time. Raises `AccessError` if we asked for a new sign-in and the provider
    reports an older sign-in.
    """
    auth_time = claims.get("auth_time")
    if not isinstance(auth_time, int | float) or isinstance(auth_time, bool):
        return None if attempt.asked_again_at else 0.0
    if auth_time < attempt.asked_again_at - LEEWAY_SECONDS and attempt.asked_again_at:
        raise AccessError(NO_CONFIRMATION)
    return None if attempt.asked_again_at else float(auth_time)


NO_ADDRESS = (
    "The sign-in service did not give an e-mail address. In that service, an administrator has to allow the "
    "scope “email”."
)
NOT_VERIFIED = (
    "The sign-in service has not verified your e-mail address. If every address in that service belongs to your "
    "organisation, an administrator can set OIDC_EMAIL_IS_VERIFIED to true."
)
NOBODY_THERE = "People with an address at {domain} may not sign in here. Ask an administrator."
NOT_OF_AN_ORGANISATION = (
    "This is a private Google account that only uses an address at {domain}. Sign in with the account that "
    "your organisation gave you."
)
TOO_MANY_GROUPS = (
    "You are in so many groups that the sign-in service does not list them. In that service, an administrator has to "
    "limit the listed groups to those of this application, or define roles for this application."
)
NO_GROUP = "None of your groups may sign in here. Ask an administrator."
#: Anybody can open a Google account with their company's address; only with the claim `hd` is it the company's own
#: (OpenID Connect, "Obtain user information from the ID token", developers.google.com).
GOOGLE = "https://accounts.google.com"
GOOGLES_OWN = frozenset({"gmail.com", "googlemail.com"})


@dataclass(frozen=True, kw_only=True)
class Mappings:
    """Maps e-mail domains to tenants and groups to roles, from the settings. Case is ignored."""

    tenants: Mapping[str, str]
    roles: Mapping[str, Role]
    #: None: other people are refused.
    default_role: Role | None
    groups_claim: str
    email_is_verified: bool

    @classmethod
    def of(cls, settings: Settings) -> Mappings:
        """Read the settings. Raises `SettingsError` naming the invalid variable."""
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
        """Convert verified claims to a person with tenant and role. Raises `AccessError` with the reason."""
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
        """Return the groups in the claims, or `None`.

        Dots in the claim's name lead to nested claims: `realm_access.roles`.
        """
        if self.groups_claim in claims:
            return claims[self.groups_claim]
        value: Any = claims
        for name in self.groups_claim.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def _role(self, claims: Mapping[str, Any]) -> Role | None:
        """Return the highest role mapped to the person's groups, else the default role; `None` if no mapping is
        configured.

        Raises `AccessError` if no role fits.
        """
        groups = self.groups(claims)
        if self.roles and groups is None and _has_too_many_groups(claims, self.groups_claim):
            raise AccessError(TOO_MANY_GROUPS)
        named = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        roles = [role for group in named if (role := self.roles.get(str(group).strip("/").lower()))]
        if roles:
            return max(roles, key=list(Role).index)
        if self.default_role is None:
            raise AccessError(NO_GROUP)
        return self.default_role if self.roles else None


def _has_too_many_groups(claims: Mapping[str, Any], groups_claim: str) -> bool:
    """Whether Entra ID left the groups out, which happens above 200 groups."""
    elsewhere = claims.get("_claim_names")
    return bool(claims.get("hasgroups")) or (isinstance(elsewhere, Mapping) and groups_claim in elsewhere)


def _pairs(name: str, text: str) -> dict[str, str]:
    pairs = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.rpartition("="))
        if not equals or not key or not value:
            raise SettingsError(f"{name} is {text!r}, but it has to look like: one=two, three=four.")
        pairs[key.strip("/").lower()] = value
    return pairs


def provider_of(settings: Settings, database: Database) -> OpenIdProvider | None:
    """Return the configured provider, or `None`. Raises `SettingsError`."""
    return OpenIdProvider(settings, ExternalAccounts(database)) if settings.oidc_issuer else None
