"""FastAPI routes which check caller and size before reading a body, and run handlers in separate threads.

Plain FastAPI reads the body before the dependencies check the caller, accepts "5" as a number, and stores files of any
size. Here, a body is read only for a caller with the scope, JSON is validated strictly, and each body has a size limit.
Handlers are plain functions, run in separate threads. Handlers which wait for long may be coroutines.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Annotated, Any, ClassVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Security, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from rag.access.api_keys import KeyUse, scopes_of
from rag.access.problems import problems, unexpected
from rag.api.bodies import ReadRequest, read_form, read_json
from rag.errors import NotAllowed, PackagesMissing, RagError, ScopeMissing, SignedOut
from rag.services import services
from rag.types import Identity

log = logging.getLogger("rag.api")
#: Open to everybody; a webhook brings a secret.
PUBLIC = "public"
#: Anybody who is signed in or has a key.
ANYBODY = "anybody"
#: The largest JSON body in bytes; a webhook's record with a long post stays far below.
MAXIMUM_BODY_BYTES = 1024 * 1024
#: The most concurrent handlers; more wait, so pages keep their threads and database connections.
HANDLERS_AT_ONCE = 16
#: The same for routes that call services elsewhere: they mostly wait, and hold no database connection meanwhile.
CALLERS_AT_ONCE = 400
NEEDS = {PUBLIC: "Open to everybody.", ANYBODY: "Needs a key or a session."}
RATE_HEADERS = {
    "RateLimit-Limit": ("integer", "Requests this key may send a minute."),
    "RateLimit-Remaining": ("integer", "How many are left of them."),
    "RateLimit-Reset": ("integer", "Seconds until the next minute begins."),
    "X-Request-Id": ("string", "Names this request, also in the log."),
}
Handler = Callable[..., Any]


class ApiModel(BaseModel):
    """A model with camelCase names in JSON and snake_case names here."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ApiBody(ApiModel):
    """A request body. Unknown fields are rejected by name, because a misspelt option must not be ignored."""

    model_config = ConfigDict(extra="forbid")


async def identity_of(request: Request) -> Identity:
    """Return the caller's identity. Raises `SignedOut` without a caller.

    For an API key, the scopes decide the role, and the e-mail address is `key:` with the key's name.
    """
    identity = request.scope.get("identity")
    if not isinstance(identity, Identity):
        raise SignedOut
    return identity


async def key_of(request: Request) -> KeyUse | None:
    """Return the request's API key; `None` for a session."""
    key: KeyUse | None = request.scope.get("api_key")
    return key


Caller = Annotated[Identity, Depends(identity_of)]
ApiKey = Annotated[KeyUse | None, Depends(key_of)]


def needs(scope: str) -> params.Security:
    """Return a route's dependency which declares the scope a caller needs.

    The scope is an API key's scope, `ANYBODY` or `PUBLIC`. `ApiRoute` checks the scope.
    """
    declared: params.Security = Security(_declare_scope, scopes=[scope])
    return declared


async def _declare_scope() -> None:
    """Do nothing: this dependency only declares the scope, which `ApiRoute` has already checked."""


def check_scope(scope: str, identity: Identity | None, key: KeyUse | None) -> None:
    """Check whether a caller has a scope.

    Raises `SignedOut` without a caller, `ScopeMissing` for a key without the scope, and `NotAllowed` for a person
    without the scope.
    """
    if scope == PUBLIC:
        return
    if not isinstance(identity, Identity):
        raise SignedOut
    if scope == ANYBODY:
        return
    if key is not None and scope not in key.scopes and "admin" not in key.scopes:
        raise ScopeMissing(f"This API key may not do this: it lacks the scope {scope}.", scope=scope)
    if key is None and scope not in scopes_of(identity.role):
        raise NotAllowed


class ApiRoute(APIRoute):
    """A FastAPI route with a scope, a body limit, separate threads, and all responses described in OpenAPI."""

    at_once: ClassVar[int] = HANDLERS_AT_ONCE
    #: Describes refusals by their statuses.
    refusals: ClassVar[Callable[..., dict[int | str, dict[str, Any]]]] = problems

    def __init__(
        self, path: str, endpoint: Handler, *, max_body_size: int | None = None, summary: str | None = None, **rest: Any
    ) -> None:
        runs = endpoint if inspect.iscoroutinefunction(endpoint) else _in_threads(endpoint, self.at_once)
        options = {"summary": summary, "response_description": summary, "operation_id": endpoint.__name__}
        super().__init__(path, runs, **{**rest, **options})
        declared = [item for item in self.dependencies if isinstance(item, params.Security)]
        self.scope = str((declared[0].scopes or [""])[0]) if declared else ""
        if not self.scope:
            raise TypeError(f"The route {path} declares no scope.")
        self._maximum_bytes = max_body_size or MAXIMUM_BODY_BYTES
        self.description = f"{self.description}\n\n{NEEDS.get(self.scope, f'Needs the scope `{self.scope}`.')}"
        self.responses = self._describe_answers()
        if self.scope == PUBLIC:
            self.openapi_extra = {"security": [{}], **(self.openapi_extra or {})}

    @property
    def method(self) -> str:
        (method,) = self.methods or ("GET",)
        return method

    @property
    def has_form(self) -> bool:
        """Whether the body is a form with files, not JSON."""
        return self.body_field is not None and isinstance(self.body_field.field_info, params.Form)

    def maximum_bytes(self) -> int:
        """Return the largest allowed body in bytes; for a form, the largest allowed file."""
        return services().settings.maximum_upload_bytes if self.has_form else self._maximum_bytes

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                check_scope(self.scope, request.scope.get("identity"), request.scope.get("api_key"))
                if self.body_field is not None:
                    request = await self._read(request)
                response = await handle(request)
            except ClientDisconnect:
                return Response(status_code=499)  # the client is gone
            except (RagError, RequestValidationError, HTTPException):
                raise
            except Exception as exc:
                return unexpected(request.scope, exc)
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return answer

    async def _read(self, request: Request) -> Request:
        if self.has_form:
            return ReadRequest(request, await read_form(request, maximum_bytes=self.maximum_bytes()))
        assert self.body_field is not None  # noqa: S101
        model = self.body_field.field_info.annotation
        return ReadRequest(request, await read_json(request, model, maximum_bytes=self.maximum_bytes()))

    def _describe_answers(self) -> dict[int | str, dict[str, Any]]:
        refusals = {503}
        if self.scope != PUBLIC:
            refusals |= {401, 403, 429}
        if self.body_field is not None:
            refusals |= {400, 413, 415, 422}
        if self.dependant.query_params:
            refusals.add(422)
        if self.dependant.path_params:
            refusals.add(404)
        headers = {name: {"description": text, "schema": {"type": kind}} for name, (kind, text) in RATE_HEADERS.items()}
        responses: dict[int | str, dict[str, Any]] = {
            self.status_code or 200: {"headers": headers},
            **type(self).refusals(*refusals),
        }
        for status, answer in self.responses.items():
            responses[status] = {**responses.get(status, {}), **answer}
        return responses


class ProviderRoute(ApiRoute):
    """A route with a handler which waits for a provider or another service. These handlers have more threads."""

    at_once = CALLERS_AT_ONCE


def _in_threads(handler: Handler, at_once: int) -> Callable[..., Awaitable[Any]]:
    """Run a handler in separate threads, because slow routes must not use up the threads for other routes and pages."""
    limiter = CapacityLimiter(at_once)

    @functools.wraps(handler)
    async def run(**values: Any) -> Any:
        return await to_thread.run_sync(functools.partial(handler, **values), limiter=limiter)

    return run


class Later:
    """An endpoint in a module which is imported by `load` or, without a call to `load`, at the first request.

    `name` is a coroutine function which takes a request, or an ASGI application.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def load(self) -> ASGIApp:
        """Import and return the endpoint. Raises `PackagesMissing`."""
        try:
            endpoint = getattr(import_module(self._module), self._name)
        except ModuleNotFoundError as exc:
            if (exc.name or "").partition(".")[0] == "rag":
                raise
            log.warning("%s needs a package: %s", self._module, exc)
            raise PackagesMissing from exc
        return request_response(endpoint) if inspect.iscoroutinefunction(endpoint) else endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = await to_thread.run_sync(self.load)
        await endpoint(scope, receive, send)
