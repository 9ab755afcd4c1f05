"""Manage accounts with passwords at Supabase Auth.

Supabase's token has tenant and role in `app_metadata`. A sign-in at Supabase starts a session here, which we can end at
once. Whenever the Supabase token would expire, Supabase is asked again: a person banned, deleted or signed out there is
signed out here as well.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from typing import Any, TypeVar
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken
from supabase_auth.types import AdminUserAttributes

from rag.access.account_rows import role_from
from rag.access.accounts import Accounts, most_telling
from rag.access.external import (
    AccountFromElsewhere,
    ExternalAccounts,
    ExternalPerson,
    Origin,
    from_elsewhere,
    origin_hash,
    renew_origin,
)
from rag.access.limits import Browser
from rag.access.passwords import NOT_CHOSEN, require_good_password
from rag.access.sessions import Sessions
from rag.errors import (
    AccessError,
    InvalidInput,
    LinkExpired,
    ProviderAnswerInvalid,
    RagError,
    TooManyAttempts,
    WrongPassword,
)
from rag.providers.supabase import UNREADABLE, SupabaseProject, call
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.types import Account, Identity, Role
from supabase import Client

log = logging.getLogger("rag.access")
Value = TypeVar("Value")
NO_TENANT = (
    "Your account at Supabase belongs to no organisation. An administrator can invite you on the page People, "
    "or set tenant and role in its app_metadata."
)
ADDRESS_REFUSED = "Supabase does not accept this address. Ask the operator of this installation."
#: About a hundred years, meaning forever.
BANNED = "876000h"
USERS_PER_PAGE = 200
MOST_PAGES = 500


class SupabaseAccounts(Accounts):
    """`Accounts` with passwords at Supabase. The `accounts` table keeps name, role and group."""

    sends_mail = True
    hashes_passwords = False

    def __init__(self, database: Database, sessions: Sessions, settings: Settings, project: SupabaseProject) -> None:
        super().__init__(database, sessions, settings)
        self._project = project
        self._people = ExternalAccounts(database)
        self.issuer = f"{project.url}/auth/v1"
        self._landing = f"{settings.own_address}/new-password"
        key = hashlib.sha256(b"refresh tokens\x00" + settings.supabase_service_role_key.encode()).digest()
        self._locker = Fernet(base64.urlsafe_b64encode(key))
        sessions.ask_elsewhere(self)

    # Passwords

    def sign_in(self, email: str, password: str, browser: Browser | None = None) -> Account:
        """Sign in like `Accounts.sign_in`, checked at Supabase. Also raises `ProviderError`."""
        address = email.strip().lower()
        browser = browser or Browser()
        refused: list[AccessError] = []
        counted: dict[UUID, str] = {}
        candidates = self._find_by_email(address)
        for account_id, tenant_id in candidates:
            try:
                stored, counted[account_id] = self._count_attempt(tenant_id, account_id, browser)
                if stored is None:
                    self._unknown_sign_ins.count(address[:254], browser)
            except TooManyAttempts as exc:
                refused.append(exc)
        if not counted:
            raise most_telling(refused)
        try:
            account = self._enter(address, password)
            if refused and account.id not in counted:
                raise most_telling(refused)
        except AccessError as exc:
            tried = [candidate for candidate in candidates if candidate[0] in counted]
            self._note_refused(tried, [exc] * len(tried))
            raise
        self._record_sign_in(account.tenant_id, account.id, browser=counted.get(account.id, ""))
        return account

    def create_first_admin(self, token: str, email: str, name: str, password: str) -> Account:
        """Create the first administrator like `Accounts.create_first_admin`, with the password at Supabase."""
        return self._enter(super().create_first_admin(token, email, name, password).email, password)

    def set_password_by_link(self, token: str, password: str) -> Account:
        """Set the password at Supabase like `Accounts.set_password_by_link`. Invited people are signed up first."""
        return self._enter(super().set_password_by_link(token, password).email, password)

    def change_password(self, identity: Identity, old: str, new: str) -> None:
        """Change the password at Supabase in the person's session. All else is like in `Accounts.change_password`."""
        require_good_password(new, email=identity.email)
        self._count_attempt(identity.tenant_id, identity.account_id, Browser(mark=identity.session_id))
        with self._project.visitor() as client:
            try:
                signed_in = self._ask(client, identity.email, old)
            except WrongPassword as exc:
                raise WrongPassword("Your current password is not right.") from exc
            call(client.auth.update_user, {"password": new})
            # Supabase then ends the person's other sessions, including the session this browser began with.
            origin = self._origin(signed_in)
        with self._database.transaction(identity.tenant_id) as connection:
            renew_origin(connection, identity.session_id, origin)
            connection.execute(queries["disconnect_apps_of_account"], {"account_id": identity.account_id})
        self._record_sign_in(identity.tenant_id, identity.account_id, browser="")
        self._sessions.end_all(identity.tenant_id, identity.account_id, except_session_id=identity.session_id)

    def require_password(self, identity: Identity, password: str, browser: Browser | None = None) -> None:
        """Check the password with a short sign-in at Supabase. All else is like in `Accounts.require_password`."""
        browser = browser or Browser(mark=identity.session_id)
        _, browser_hash = self._count_attempt(identity.tenant_id, identity.account_id, browser)
        with self._project.visitor() as client:
            try:
                self._ask(client, identity.email, password)
            except WrongPassword as exc:
                raise WrongPassword("Your current password is not right.") from exc
            call(client.auth.sign_out, {"scope": "local"})
        self._record_sign_in(identity.tenant_id, identity.account_id, browser=browser_hash)

    # Lost passwords

    def ask_for_password(self, email: str) -> None:
        """Ask Supabase to e-mail a link for a new password to this address.

        Supabase's errors are only logged, because they would reveal whether the address has an account.
        """
        try:
            with self._project.visitor() as client:
                call(client.auth.reset_password_for_email, email.strip().lower(), {"redirect_to": self._landing})
        except RagError as exc:
            log.warning("Supabase did not take the request for a new password: %s", exc)

    def set_password_by_mail(self, access_token: str, refresh_token: str, password: str) -> Account:
        """Set the password of the person who opened the link in Supabase's e-mail, and end all their sessions.

        Raises `LinkExpired`, `WeakPassword`, `InvalidInput`, `ProviderError`, and `AccessError` if the person has no
        account here.
        """
        if access_token.count(".") != 2 or not refresh_token:
            raise LinkExpired
        with self._project.visitor() as client:
            try:
                session = _require_value(call(client.auth.set_session, access_token, refresh_token).session)
            except (AccessError, InvalidInput) as exc:
                raise LinkExpired from exc
            account = self._admit(client, session)
            require_good_password(password, email=account.email)
            call(client.auth.update_user, {"password": password})
        with self._database.transaction(account.tenant_id) as connection:
            connection.execute(queries["drop_unused_links"], {"purpose": "set_password", "account_id": account.id})
            connection.execute(queries["disconnect_apps_of_account"], {"account_id": account.id})
        self._sessions.end_all(account.tenant_id, account.id)
        return account

    # What administrators do

    def change(
        self,
        identity: Identity,
        account_id: UUID,
        *,
        role: Role | str | None = None,
        name: str | None = None,
        user_group: str | None = None,
        is_active: bool | None = None,
    ) -> Account:
        """Change an account like `Accounts.change`; role and activity change at Supabase first."""
        if account_id != identity.account_id and (role is not None or is_active is not None):
            attributes: AdminUserAttributes = {}
            if role is not None:
                attributes["app_metadata"] = {"tenant": identity.tenant_id, "role": role_from(role).value}
            if is_active is not None:
                attributes["ban_duration"] = "none" if is_active else BANNED
            with self._administration(identity):
                subject = self._people.subject_of(identity.tenant_id, account_id, self.issuer)
            if subject is not None:
                call(self._project.server.auth.admin.update_user_by_id, subject, attributes)
        return super().change(identity, account_id, role=role, name=name, user_group=user_group, is_active=is_active)

    # What sessions ask

    def renew(self, secret: bytes) -> AccountFromElsewhere:
        """Refresh a session at Supabase with its encrypted refresh token.

        Returns the account, with the next refresh token. Raises `AccessError` if the session is over and
        `ProviderError` if Supabase fails.
        """
        try:
            refresh_token = self._locker.decrypt(secret).decode()
        except InvalidToken as exc:
            raise AccessError("The key of the sign-in service was changed. Sign in again.") from exc
        with self._project.visitor() as client:
            try:
                answer = call(client.auth.refresh_session, refresh_token)
            except InvalidInput as exc:  # A malformed refresh token.
                raise AccessError("Your sign-in at Supabase has ended. Sign in again.") from exc
            return self._admit(client, _require_value(answer.session))

    def sign_out(self, secret: bytes) -> None:
        """End a session at Supabase. Errors are only logged, because our own session has ended already."""
        try:
            with self._project.visitor() as client:
                call(client.auth.refresh_session, self._locker.decrypt(secret).decode())
                call(client.auth.sign_out, {"scope": "local"})
        except (RagError, InvalidToken) as exc:
            log.warning("A session at Supabase could not be ended: %s", exc)

    # Inside

    def _record_sign_in(self, tenant_id: str, account_id: UUID, *, browser: str) -> None:
        self._database.fetch_value(tenant_id, "record_sign_in", account_id=account_id, browser=browser)

    def _keep_password(self, email: str, tenant_id: str, role: Role, password: str) -> str:
        """Save the password at Supabase, and return `NOT_CHOSEN` for the `accounts` table.

        The address counts as confirmed, because the person has followed our link.
        """
        attributes: AdminUserAttributes = {
            "password": password,
            "email_confirm": True,
            "app_metadata": {"tenant": tenant_id, "role": role.value},
        }
        try:
            call(self._project.server.auth.admin.create_user, AdminUserAttributes(email=email, **attributes))
        except InvalidInput:
            subject, tenant = self._subject_at_supabase(email)
            if subject is None:
                raise
            if tenant not in (None, "", tenant_id):
                # Supabase has a single user per address for all companies; the first company keeps it.
                raise InvalidInput(ADDRESS_REFUSED) from None
            call(self._project.server.auth.admin.update_user_by_id, subject, attributes)
        return NOT_CHOSEN

    def _subject_at_supabase(self, email: str) -> tuple[str | None, str | None]:
        """Find the Supabase user with this address, and return (user id, tenant). An unknown id or tenant is `None`."""
        for number in range(1, MOST_PAGES + 1):
            users = call(self._project.server.auth.admin.list_users, page=number, per_page=USERS_PER_PAGE)
            for user in users:
                if (user.email or "").lower() == email:
                    tenant = (user.app_metadata or {}).get("tenant")
                    return str(user.id), None if tenant is None else str(tenant)
            if len(users) < USERS_PER_PAGE:
                break
        return None, None

    def _enter(self, address: str, password: str) -> AccountFromElsewhere:
        with self._project.visitor() as client:
            return self._admit(client, self._ask(client, address, password))

    def _ask(self, client: Client, address: str, password: str) -> Any:
        if not password:
            raise WrongPassword
        answer = call(client.auth.sign_in_with_password, {"email": address, "password": password})
        return _require_value(answer.session)

    def _admit(self, client: Client, session: Any) -> AccountFromElsewhere:
        claims = _require_value(call(client.auth.get_claims, session.access_token))["claims"]
        account = self._people.admit(person_from(dict(claims), self.issuer))
        return from_elsewhere(account, self._origin(session))

    def _origin(self, session: Any) -> Origin:
        return Origin(
            issuer=self.issuer,
            subject_hash=origin_hash(self.issuer, session.user.id),
            secret=self._locker.encrypt(session.refresh_token.encode()),
            check_after_seconds=float(session.expires_in),
        )


def person_from(claims: dict[str, Any], issuer: str) -> ExternalPerson:
    """Read a person from a Supabase token's verified claims.

    Raises `ProviderAnswerInvalid` for a token from another project, and `AccessError` if the tenant, the address or a
    known role is missing.
    """
    audience = claims.get("aud")
    if claims.get("iss") != issuer or "authenticated" not in (audience if isinstance(audience, list) else [audience]):
        raise ProviderAnswerInvalid("Supabase sent sign-in data that was not made for this project.")
    stored = claims.get("app_metadata") or {}
    tenant, role = stored.get("tenant"), stored.get("role") or Role.EMPLOYEE
    if not isinstance(tenant, str) or not tenant:
        raise AccessError(NO_TENANT)
    try:
        return ExternalPerson(
            issuer=issuer,
            subject=str(claims["sub"]),
            email=str(claims["email"]),
            tenant_id=tenant,
            role=role_from(str(role)),
        )
    except (KeyError, InvalidInput) as exc:
        raise AccessError("Your account at Supabase has no address, or it has a role that is not known here.") from exc


def _require_value(value: Value | None) -> Value:
    if value is None:
        raise ProviderAnswerInvalid(UNREADABLE)
    return value
