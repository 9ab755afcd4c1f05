"""One way to write a route of the API: who may call it, what it takes and what it answers, said once.

The same words check each request and make the OpenAPI file. Handlers are plain functions in threads; those that wait
long for something else may be coroutines.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from rag.access.api_keys import KeyUse, scopes_of
from rag.api.bodies import read_form, read_json, read_parameters
from rag.api.problems import problem, unexpected
from rag.errors import NotAllowed, NotFound, RagError, ScopeMissing, SignedOut
from rag.types import Identity

Body = TypeVar("Body")
Handler = Callable[["Call[Any]"], "Answer | Awaitable[Answer | None] | None"]

#: Anybody may call it, such as a webhook that proves itself otherwise.
PUBLIC = "public"
#: Anybody who is signed in or has a key.
ANYBODY = "anybody"
#: Bytes of a body of JSON; a webhook's record with a long post stays far below.
MAXIMUM_BODY_BYTES = 1024 * 1024
#: Handlers at work at once; more wait, so that pages keep their threads and their database connections.
HANDLERS_AT_ONCE = 16
#: The same for endpoints that call services elsewhere: they mostly wait, and hold no database connection meanwhile.
CALLERS_AT_ONCE = 400


class ApiModel(BaseModel):
    """A value of the API: camelCase on the wire, snake_case here."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ApiBody(ApiModel):
    """What a caller sends. A field nobody knows is refused by name: a misspelt option must not be ignored."""

    model_config = ConfigDict(extra="forbid")


Answer = BaseModel | Response


@dataclass(frozen=True)
class Call(Generic[Body]):
    """One request that was allowed and understood."""

    request: Request
    #: Who calls; None only where the scope is `PUBLIC`.
    caller: Identity | None
    body: Body
    #: The query string as the endpoint's `parameters`.
    parameters: Any = None
    #: The key it came with, None for a session.
    api_key: KeyUse | None = None

    @property
    def identity(self) -> Identity:
        """Who calls. For an API key: its tenant, the role its scopes need, and `key:` with its name as e-mail."""
        if self.caller is None:
            raise SignedOut
        return self.caller

    @property
    def tenant_id(self) -> str:
        return self.identity.tenant_id

    def uuid(self, name: str) -> UUID:
        """An id of the path. One that is none is not found."""
        try:
            return UUID(str(self.request.path_params[name]))
        except ValueError as exc:
            raise NotFound from exc


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What an endpoint says of itself."""

    path: str
    method: str
    scope: str
    summary: str
    name: str
    body: type[BaseModel] | None = None
    parameters: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    description: str = ""
    tags: tuple[str, ...] = ()
    #: The body is a form with files (multipart/form-data) instead of JSON.
    multipart: bool = False
    #: Its handler waits for a provider, a file store or another service over the network.
    calls_elsewhere: bool = False
    maximum_bytes: Callable[[], int] = field(default=lambda: MAXIMUM_BODY_BYTES)
    #: Media types of the answer beside or instead of JSON, with a schema where there is one.
    media: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Example bodies by name, shown in the documentation.
    examples: dict[str, Any] = field(default_factory=dict)


class ApiRoute(Route):
    """A route that knows its `spec`."""

    def __init__(self, spec: Spec, handler: Handler) -> None:
        self.spec = spec
        self.handler = handler
        super().__init__(spec.path, _checked(spec, handler), methods=[spec.method], name=spec.name)


def endpoint(
    path: str,
    *,
    method: str = "GET",
    scope: str,
    summary: str,
    body: type[BaseModel] | None = None,
    parameters: type[BaseModel] | None = None,
    answer: type[BaseModel] | None = None,
    status: int = 200,
    errors: Sequence[int] = (),
    description: str = "",
    tags: Sequence[str] = (),
    multipart: bool = False,
    calls_elsewhere: bool = False,
    maximum_bytes: int | Callable[[], int] = MAXIMUM_BODY_BYTES,
    media: dict[str, dict[str, Any]] | None = None,
    examples: dict[str, Any] | None = None,
) -> Callable[[Handler], ApiRoute]:
    """Make a handler a route of the API. It returns a value of `answer`, or a response of its own.

    `scope` is what a key needs: "chat", "search", "documents:read", "documents:write", "sync", "admin", or `ANYBODY`,
    or `PUBLIC`. `errors` are statuses beside those every call may get. A `RagError` raised becomes a problem+json.
    """

    def made(handler: Handler) -> ApiRoute:
        spec = Spec(
            path=path,
            method=method,
            scope=scope,
            summary=summary,
            name=getattr(handler, "__name__", summary),
            body=body,
            parameters=parameters,
            answer=answer,
            status=status,
            errors=tuple(errors),
            description=description or inspect.cleandoc(handler.__doc__ or ""),
            tags=tuple(tags),
            multipart=multipart,
            calls_elsewhere=calls_elsewhere,
            maximum_bytes=maximum_bytes if callable(maximum_bytes) else lambda: maximum_bytes,
            media=media or {},
            examples=examples or {},
        )
        return ApiRoute(spec, handler)

    return made


def _checked(spec: Spec, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    is_coroutine = inspect.iscoroutinefunction(handler)
    limiter = CapacityLimiter(CALLERS_AT_ONCE if spec.calls_elsewhere else HANDLERS_AT_ONCE)

    async def run(request: Request) -> Response:
        try:
            call = await _understood(spec, request)
            if is_coroutine:
                found = await cast("Awaitable[Answer | None]", handler(call))
            else:
                found = cast("Answer | None", await to_thread.run_sync(handler, call, limiter=limiter))
            return _response(spec, found)
        except RagError as exc:
            if exc.status == 500:
                return unexpected(request.scope, exc)
            return problem(request.scope, exc)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody is there to read it
        except Exception as exc:
            return unexpected(request.scope, exc)

    return run


async def _understood(spec: Spec, request: Request) -> Call[Any]:
    """The call, once it is allowed and well-formed. In this order: nothing is read for somebody who may not call."""
    identity = request.scope.get("identity")
    key = request.scope.get("api_key")
    check_scope(spec.scope, identity, key)
    parameters = read_parameters(request, spec.parameters) if spec.parameters else None
    body: Any = None
    if spec.body is not None:
        read = read_form if spec.multipart else read_json
        body = await read(request, spec.body, maximum_bytes=spec.maximum_bytes())
    return Call(request=request, caller=identity, body=body, parameters=parameters, api_key=key)


def check_scope(scope: str, identity: Identity | None, key: KeyUse | None) -> None:
    """Raises `SignedOut`, `ScopeMissing` for a key, `NotAllowed` for a person's role."""
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


def _response(spec: Spec, found: Answer | None) -> Response:
    if isinstance(found, Response):
        return found
    if found is None:
        return Response(status_code=204 if spec.status == 200 else spec.status, headers={"Cache-Control": "no-store"})
    return Response(
        found.model_dump_json(by_alias=True),
        status_code=spec.status,
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


__all__ = ["ANYBODY", "PUBLIC", "ApiBody", "ApiModel", "ApiRoute", "Call", "Spec", "endpoint"]
