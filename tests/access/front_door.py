"""What the tests of access share: people with a cheap hasher, and a tiny application behind the guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import httpx
from argon2 import PasswordHasher
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from rag.access.accounts import Accounts
from rag.access.api_keys import ApiKeys
from rag.access.connected_apps import ConnectedApps
from rag.access.identity import SingleSignOn
from rag.access.limits import Limits
from rag.access.sessions import Sessions
from rag.api import service
from rag.api.app import routes_to
from rag.api.sign_in import routes
from rag.integrations import registry
from rag.library.collections import CollectionLibrary
from rag.server import API
from rag.settings import Settings
from rag.types import Account, Identity

AddPerson = Callable[..., Account]
PASSWORD = "correct horse battery"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@dataclass(frozen=True)
class Access:
    """What the guard and the sign-in pages need."""

    settings: Settings
    accounts: Accounts
    sessions: Sessions
    api_keys: ApiKeys
    connected_apps: ConnectedApps
    documents: CollectionLibrary
    single_sign_on: SingleSignOn | None = None
    limits: Limits = field(default_factory=lambda: Limits(Settings()))


def at_provider(settings: Settings, issuer: str) -> Settings:
    """Settings with sign-in at a provider, whose people of example.com belong to tenant `demo`."""
    return replace(
        settings,
        public_url="http://testserver",
        oidc_issuer=issuer,
        oidc_client_id="hr",
        oidc_client_secret="the client's secret",
        oidc_tenants="example.com=demo",
    )


def identity_of(account: Account, session_id: str = "") -> Identity:
    return Identity(
        account_id=account.id,
        tenant_id=account.tenant_id,
        email=account.email,
        name=account.name,
        role=account.role,
        user_group=account.user_group,
        session_id=session_id,
    )


def seen(request: Request) -> Response:
    """What the inner application is told of its caller."""
    headers = [(k.decode(), v.decode()) for k, v in request.scope["headers"] if k.lower().startswith(b"x-hr-")]
    identity = request.scope.get("identity")
    return JSONResponse({"headers": headers, "email": identity.email if identity else None})


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_json({"role": websocket.headers.get("x-hr-role"), "sid": websocket.headers.get("x-hr-sid")})
    try:
        while True:
            await websocket.send_text(await websocket.receive_text())
    except WebSocketDisconnect:
        return


def inner_routes(access: Access) -> list[BaseRoute]:
    return [
        *routes(lambda: access),
        *registry.routes(),
        service.METRICS,
        Route("/", seen),
        Route("/api/seen", seen, methods=["GET", "POST"]),
        *routes_to(API),
        Route("/_stcore/health", lambda request: PlainTextResponse("ok")),
        Route("/_stcore/upload_file/{session}/{file}", seen, methods=["GET", "PUT", "DELETE"]),
        WebSocketRoute("/_stcore/stream", echo),
    ]


def tell(issuer: str, person: str, **claims: object) -> None:
    """Have the provider know somebody by these claims."""
    httpx.put(f"{issuer}/users/{person}", json=claims).raise_for_status()


def come_back(client: TestClient, person: str, start: str = "/sso/start?next=/analytics") -> tuple[str, str]:
    """Sent away, signed in there; the path and query the provider sends the browser back to."""
    away = client.get(start)
    assert away.status_code == 303
    there = httpx.post(away.headers["location"], data={"sub": person})
    assert there.status_code == 302, there.text
    back = urlsplit(there.headers["location"])
    assert (back.netloc, back.path) == ("testserver", "/sso/callback")
    return away.headers["location"], f"{back.path}?{back.query}"
