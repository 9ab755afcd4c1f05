"""Every call of the product to Supabase: it works, each error that is documented becomes one of ours, and so do a
timeout, a reset and an answer that makes no sense; after each the next try works and the server's own client is itself.

The calls are collected from the source: a new one without a line in the table fails.
"""

from __future__ import annotations

import ast
import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag.access.sessions import Sessions
from rag.access.supabase import SupabaseAccounts
from rag.errors import (
    AccessError,
    FileTooLarge,
    InvalidInput,
    LinkExpired,
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    RagError,
    WeakPassword,
    WrongPassword,
)
from rag.providers.supabase import SupabaseFiles, SupabaseProject
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Account, Identity, Role
from tests.standins.supabase import SERVICE, SupabaseStandin

RAG = Path(__file__).resolve().parents[2] / "rag"
PASSWORD, NEW = "correct horse battery", "another good password"
#: Calls to the project that a notice board is read from: tests/profiles/notices/test_posts_by_rest.py.
OF_ANOTHER_PROJECT = {"postgrest"}
NO_TRAFFIC = {"storage.from_"}
numbers = itertools.count(1)


class World:
    """Somebody at Supabase and here, an administrator, and a file; each act is done by somebody new."""

    def __init__(self, accounts: SupabaseAccounts, project: SupabaseProject, standin: SupabaseStandin) -> None:
        self.accounts, self.project, self.standin = accounts, project, standin
        token = accounts.first_admin_link()
        assert token is not None
        self.admin = identity_of(accounts.create_first_admin(token, "admin@example.com", "Admin", PASSWORD))
        self.key = SupabaseFiles(project, "documents").put("demo", b"content")

    def somebody(self) -> Account:
        """Signed in, with a session at Supabase of their own."""
        address = f"person{next(numbers)}@example.com"
        self.standin.add_user(address, PASSWORD, tenant="demo")
        return self.accounts.sign_in(address, PASSWORD)

    def invited(self, *, is_at_supabase: bool = False) -> str:
        """The token of a link that sets a password."""
        address = f"person{next(numbers)}@example.com"
        if is_at_supabase:
            self.standin.add_user(address, "an older password")
        return self.accounts.invite(self.admin, address)[1].partition("token=")[2]

    def files(self) -> SupabaseFiles:
        """Not knowing yet whether the bucket is there."""
        return SupabaseFiles(self.project, "documents")


def identity_of(account: Account) -> Identity:
    return Identity(
        account_id=account.id, tenant_id=account.tenant_id, email=account.email, name=account.name, role=account.role
    )


def origin_of(account: Account) -> bytes:
    secret = account.origin.secret  # type: ignore[attr-defined]
    assert isinstance(secret, bytes)
    return secret


Act = Callable[[], object]
Fault = tuple[int | str, dict[str, Any], type[RagError] | None]


@dataclass(frozen=True)
class Case:
    """How the product makes a call: `prepare` makes the act; `request` is what goes wrong on the wire."""

    request: str
    prepare: Callable[[World], Act]
    #: What Supabase documents for this call, beside `COMMON`. None: it is survived.
    faults: list[Fault] = field(default_factory=list)
    #: What becomes of an answer that makes no sense; None: nothing of it is read.
    garbage: type[RagError] | None = ProviderAnswerInvalid
    #: Whatever happens there is survived and logged.
    is_survived: bool = False
    is_legacy: bool = False


def auth(status: int, code: str, error: type[RagError], **more: Any) -> Fault:
    return status, {"code": code, "message": "why", **more}, error


def storage(status: str, error: str, becomes: type[RagError] | None) -> Fault:
    return 400, {"statusCode": status, "error": error, "message": "why"}, becomes


UNREACHABLE: list[Fault] = [
    ("timeout", {}, ProviderUnavailable),
    ("reset", {}, ProviderUnavailable),
    (502, {}, ProviderUnavailable),
    (503, {}, ProviderUnavailable),
]
AUTH_COMMON = [
    *UNREACHABLE,
    auth(500, "unexpected_failure", ProviderUnavailable),
    auth(429, "over_request_rate_limit", ProviderQuotaExhausted),
    auth(401, "no_authorization", ProviderKeyRejected),
]
STORAGE_COMMON = [
    *UNREACHABLE,
    storage("500", "internal", ProviderUnavailable),
    storage("429", "TooMany", ProviderQuotaExhausted),
    storage("403", "Unauthorized", ProviderKeyRejected),
]
#: Of a token that Supabase no longer takes.
TOKEN_OVER = [
    auth(403, code, AccessError) for code in ("bad_jwt", "session_not_found", "user_not_found", "user_banned")
]
OLDER_FORM: Fault = (403, {"error_code": "user_banned", "msg": "older form"}, AccessError)


def sign_in(world: World) -> Act:
    address = world.somebody().email
    return lambda: world.accounts.sign_in(address, PASSWORD)


def renew(world: World) -> Act:
    secret = origin_of(world.somebody())
    return lambda: world.accounts.renew(secret)


def sign_out(world: World) -> Act:
    secret = origin_of(world.somebody())
    return lambda: world.accounts.sign_out(secret)


def change_password(world: World) -> Act:
    identity = identity_of(world.somebody())
    return lambda: world.accounts.change_password(identity, PASSWORD, NEW)


def come_by_mail(world: World) -> Act:
    address = world.somebody().email
    world.accounts.ask_for_password(address)
    tokens = dict(part.split("=", 1) for part in world.standin.mails[address][1].split("&"))
    return lambda: world.accounts.set_password_by_mail(tokens["access_token"], tokens["refresh_token"], NEW)


def set_password(world: World, *, is_at_supabase: bool = False) -> Act:
    token = world.invited(is_at_supabase=is_at_supabase)
    return lambda: world.accounts.set_password_by_link(token, PASSWORD)


def change_role(world: World) -> Act:
    account = world.somebody()
    return lambda: world.accounts.change(world.admin, account.id, role=Role.MANAGER)


def make_bucket(world: World) -> Act:
    world.standin.buckets.clear()
    return world.files().require_private_bucket


def remove_what_is_gone(world: World) -> Act:
    world.files().delete("demo", world.key)
    return lambda: world.files().delete("demo", world.key)


CASES = {
    "auth.sign_in_with_password": Case(
        "POST /auth/v1/token",
        sign_in,
        [
            auth(400, "invalid_credentials", WrongPassword),
            auth(400, "email_not_confirmed", AccessError),
            auth(400, "user_banned", AccessError),
            OLDER_FORM,
        ],
    ),
    "auth.refresh_session": Case(
        "POST /auth/v1/token",
        renew,
        [
            auth(400, "refresh_token_not_found", AccessError),
            auth(400, "refresh_token_already_used", AccessError),
            auth(400, "validation_failed", AccessError),
            auth(400, "session_not_found", AccessError),
            OLDER_FORM,
        ],
    ),
    "auth.get_claims": Case("GET /auth/v1/.well-known/jwks.json", sign_in),
    "auth.get_claims of a project with a shared secret": Case(
        "GET /auth/v1/user", sign_in, [*TOKEN_OVER, OLDER_FORM], is_legacy=True
    ),
    "auth.set_session": Case(
        "GET /auth/v1/user",
        come_by_mail,
        [(status, body, LinkExpired) for status, body, _ in [*TOKEN_OVER, OLDER_FORM]],
    ),
    "auth.update_user": Case(
        "PUT /auth/v1/user",
        change_password,
        [
            auth(422, "same_password", InvalidInput),
            auth(422, "weak_password", WeakPassword, weak_password={"reasons": ["length"]}),
            *TOKEN_OVER,
        ],
    ),
    "auth.update_user after a mail": Case(
        "PUT /auth/v1/user", come_by_mail, [auth(422, "same_password", InvalidInput), *TOKEN_OVER]
    ),
    "auth.sign_out": Case(
        "POST /auth/v1/logout", sign_out, [auth(403, "session_not_found", AccessError)], is_survived=True
    ),
    "auth.reset_password_for_email": Case(
        "POST /auth/v1/recover",
        lambda world: lambda: world.accounts.ask_for_password("admin@example.com"),
        [auth(429, "over_email_send_rate_limit", ProviderError), auth(400, "validation_failed", InvalidInput)],
        is_survived=True,
    ),
    "auth.admin.create_user": Case(
        "POST /auth/v1/admin/users",
        set_password,
        [
            auth(422, "email_exists", InvalidInput),
            auth(422, "weak_password", WeakPassword, weak_password={"reasons": ["pwned"]}),
            auth(403, "not_admin", ProviderKeyRejected),
        ],
    ),
    "auth.admin.list_users": Case(
        "GET /auth/v1/admin/users",
        lambda world: set_password(world, is_at_supabase=True),
        [auth(403, "not_admin", ProviderKeyRejected)],
    ),
    "auth.admin.update_user_by_id": Case(
        "PUT /auth/v1/admin/users/",
        change_role,
        [auth(403, "not_admin", ProviderKeyRejected), auth(404, "user_not_found", AccessError)],
    ),
    "storage.get_bucket": Case("GET /storage/v1/bucket/", lambda world: world.files().require_private_bucket),
    "storage.create_bucket": Case(
        "POST /storage/v1/bucket", make_bucket, [storage("400", "InvalidBucketName", ProviderError)]
    ),
    "storage.upload": Case(
        "POST /storage/v1/object/documents",
        lambda world: lambda: world.files().put("demo", b"content %d" % next(numbers)),
        [
            storage("409", "Duplicate", None),
            storage("413", "Payload too large", FileTooLarge),
            storage("415", "invalid_mime_type", ProviderError),
            storage("400", "InvalidKey", ProviderError),
        ],
    ),
    "storage.download": Case(
        "GET /storage/v1/object/documents",
        lambda world: lambda: world.files().get("demo", world.key),
        [storage("404", "not_found", NotFound)],
        garbage=None,  # An original may be anything; the reader of documents says what it cannot read.
    ),
    "storage.remove": Case(
        "DELETE /storage/v1/object/documents",
        lambda world: lambda: world.files().delete("demo", world.files().put("demo", b"%d" % next(numbers))),
        [storage("404", "Bucket not found", None)],
        garbage=None,
    ),
    "storage.exists": Case("GET /storage/v1/object/info/", remove_what_is_gone, garbage=ProviderError),
    "storage.list": Case(
        "POST /storage/v1/object/list/documents",
        lambda world: lambda: world.files().keys("demo"),
        [storage("404", "Bucket not found", None)],
    ),
}


def calls_of_the_product() -> tuple[set[str], list[str]]:
    """The calls by name, and where a part of a client is kept under a name, so that calls of it could not be seen."""
    found, kept = set(), []
    for path in RAG.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute):
                continue
            text = ast.unparse(node)
            if match := re.search(r"(?:client|server)\.(auth|storage)((?:\.admin)?)\.(\w+)$", text):
                if match[3] != "admin":
                    found.add(f"{match[1]}{match[2]}.{match[3]}")
            elif match := re.search(r"_objects\(\)\.(\w+)$", text):
                found.add(f"storage.{match[1]}")
            elif match := re.search(r"(?:client|server)\.(rpc|table|schema|functions|realtime|postgrest)$", text):
                found.add(match[1])
            if re.search(r"(?:client|server)\.(auth|storage|auth\.admin)$", text) and id(node) not in inner:
                kept.append(f"{path.name}: {text}")
    return found, kept


def test_every_call_of_the_product_is_in_the_table() -> None:
    found, kept = calls_of_the_product()
    assert kept == []
    assert found - NO_TRAFFIC - OF_ANOTHER_PROJECT == {name.partition(" ")[0] for name in CASES}


@pytest.fixture
def world(
    database: Database, at_supabase: Settings, supabase_project: SupabaseProject, standin: SupabaseStandin
) -> World:
    sessions = Sessions(database, at_supabase, clock=lambda: time.monotonic() * 1e9)
    return World(SupabaseAccounts(database, sessions, at_supabase, supabase_project), supabase_project, standin)


@pytest.mark.parametrize("name", CASES)
def test_every_outcome_of_a_call_is_one_of_ours(name: str, world: World) -> None:
    case, standin = CASES[name], world.standin
    standin.is_legacy = case.is_legacy
    common = AUTH_COMMON if name.startswith("auth") else STORAGE_COMMON
    faults = [*common, *case.faults, ("garbage", {}, case.garbage)]
    wrong: list[tuple[object, ...]] = []
    for kind, body, expected in faults:
        act = case.prepare(world)
        standin.fail(case.request, kind, body)
        came = outcome(act)
        wanted = None if case.is_survived else expected
        if not matches(came, wanted) or standin.faults[-1].times:
            wrong.append((kind, body, came, "never met" if standin.faults[-1].times else ""))
        standin.faults.clear()
        if (kind, body, wanted) in UNREACHABLE and (again := outcome(case.prepare(world))) is not None:
            wrong.append(("and again after", kind, body, again))
        if sent_by_the_server(world) != {SERVICE}:
            wrong.append(("the server's own client is somebody else after", kind, body))
    assert wrong == []


def outcome(act: Act) -> BaseException | None:
    try:
        act()
    except Exception as exc:  # Whatever it is, it is compared.
        return exc
    return None


def matches(came: BaseException | None, wanted: type[RagError] | None) -> bool:
    if wanted is None or came is None:
        return came is None and wanted is None
    return isinstance(came, wanted) and not any(word in str(came) for word in (SERVICE, PASSWORD, NEW))


def sent_by_the_server(world: World) -> set[str]:
    """The bearers of the server's own client, asked to do something of each kind."""
    world.standin.bearers.clear()
    world.project.server.auth.admin.list_users(page=1, per_page=1)
    world.files().keys("demo")
    return {bearer for _, bearer in world.standin.bearers}
