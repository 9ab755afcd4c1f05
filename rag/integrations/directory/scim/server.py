"""Serve SCIM 2.0 at `/scim/v2` for people and groups from a company's directory (RFC 7643, RFC 7644).

A directory needs an API key with the scope `scim`; the scope `admin` is not enough. The models are from scim2-models,
reduced to the attributes which we store; further attributes are ignored. A `userName` is an e-mail address.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from anyio import CapacityLimiter, to_thread
from pydantic import RootModel, ValidationError
from scim2_models import (
    AuthenticationScheme,
    Bulk,
    ChangePassword,
    Context,
    Error,
    ETag,
    Filter,
    ListResponse,
    Meta,
    NotImplementedException,
    Patch,
    PatchOp,
    Required,
    Resource,
    ResourceType,
    ResponseParameters,
    Schema,
    SCIMException,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)
from scim2_models.annotations import Mutability
from scim2_models.resources.group import GroupMember
from scim2_models.resources.user import GroupMembership, Name
from scim2_models.urn import URN
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag.access.problems import SCIM, refusal, unexpected
from rag.api.bodies import read_json
from rag.api.routing import HANDLERS_AT_ONCE, MAXIMUM_BODY_BYTES
from rag.errors import InvalidInput, MethodNotAllowed, NotFound, RagError, ScopeMissing, SignedOut
from rag.integrations.directory.scim.provisioning import (
    SCOPE,
    DirectoryGroup,
    DirectoryPerson,
    DirectoryQuery,
    Provisioning,
)
from rag.services import services
from rag.types import Identity

MEDIA_TYPE = "application/scim+json"
#: People or groups in one answer.
MOST_RESULTS = 200
FILTER = re.compile(r'\s*(\w+)\s+eq\s+"((?:[^"\\]|\\.)*)"\s*', re.IGNORECASE)
#: Attributes by which a directory may look for a person or a group.
FILTERS = {"username": "name", "displayname": "name", "externalid": "external_id", "id": "id"}
#: Microsoft Entra and Okta send attributes without a place here, and members to remove as a value.
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


class User(Resource[Any]):
    """A person, with the stored attributes from SCIM's user."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    display_name: str | None = None
    active: bool | None = None
    groups: Annotated[list[GroupMembership] | None, Mutability.read_only] = None


class Member(GroupMember):
    """A group's member: the id, and a name which requests cannot change."""

    display: Annotated[str | None, Mutability.read_only] = None


class Group(Resource[Any]):
    """A group: people who may read the same collections."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true] = None
    members: list[Member] | None = None


CONFIG = ServiceProviderConfig(
    documentation_uri=None,
    patch=Patch(supported=True),
    bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
    filter=Filter(supported=True, max_results=MOST_RESULTS),
    change_password=ChangePassword(supported=False),
    sort=Sort(supported=False),
    etag=ETag(supported=False),
    authentication_schemes=[
        AuthenticationScheme(
            type=AuthenticationScheme.Type.oauthbearertoken,
            name="API key",
            description="A key with the scope scim, made by an administrator on the page People.",
            primary=True,
        )
    ],
)
PROVIDER = ScimProvider(models=[User, Group], config=CONFIG, policy=POLICY)
_limiter = CapacityLimiter(HANDLERS_AT_ONCE)
Body = dict[str, Any]


async def serve(request: Request) -> Response:
    try:
        identity = _require_directory(request)
        path = [part for part in request.path_params["path"].split("/") if part]
        if path[:1] and path[0] in DISCOVERED and request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed
        body: Body = {}
        if request.method in ("POST", "PUT", "PATCH"):
            read = await read_json(request, RootModel[Body], maximum_bytes=MAXIMUM_BODY_BYTES)
            body = read.model_dump()
        answer = partial(_answer, identity, request, path, body)
        return await to_thread.run_sync(answer, limiter=_limiter)
    except SCIMException as exc:
        return _error(exc.to_error())
    except ValidationError as exc:
        return _error(Error.from_validation_errors(exc)[0])
    except RagError as exc:
        return refusal(request.scope, exc)
    except Exception as exc:
        return unexpected(request.scope, exc)


def _require_directory(request: Request) -> Identity:
    identity, key = request.scope.get("identity"), request.scope.get("api_key")
    if not isinstance(identity, Identity):
        raise SignedOut
    if key is None or SCOPE not in key.scopes:
        raise ScopeMissing("This needs an API key with the scope scim.", scope=SCOPE)
    return identity


def _answer(identity: Identity, request: Request, path: list[str], body: Body) -> Response:
    base = f"{str(request.base_url).rstrip('/')}{SCIM.rstrip('/')}"
    if len(path) in (1, 2) and path[0] in DISCOVERED:
        return _describe(path, base)
    if path == [".search"]:
        raise NotImplementedException(detail="People and groups are searched each at its own address.")
    if len(path) not in (1, 2) or path[0] not in KINDS:
        raise NotFound
    kind = KINDS[path[0]](identity, base)
    if len(path) == 1:
        if request.method in ("GET", "HEAD"):
            return kind.query(request.query_params)
        if request.method == "POST":
            return kind.create(body)
        raise MethodNotAllowed
    if path[1] == ".search" and request.method == "POST":
        return kind.query(body)
    if request.method in ("GET", "HEAD"):
        return kind.read(path[1], request.query_params)
    if request.method == "DELETE":
        kind.remove(path[1])
        return Response(status_code=204, headers={"Cache-Control": "no-store"})
    if request.method in ("PUT", "PATCH"):
        return kind.replace(path[1], body) if request.method == "PUT" else kind.patch(path[1], body)
    raise MethodNotAllowed


class People:
    """Handles SCIM requests for people; also the base class for `Groups`."""

    model: Any = User
    endpoint = "Users"

    def __init__(self, identity: Identity, base: str) -> None:
        self.identity, self.base = identity, base
        self.directory = Provisioning(services().database, services().sessions)

    def query(self, parameters: Any) -> Response:
        """Return a page of matching people or groups."""
        start, count = (
            max(_number(parameters, "startIndex", 1), 1),
            min(_number(parameters, "count", 100), MOST_RESULTS),
        )
        query = DirectoryQuery(**parse_filter(parameters.get("filter")), offset=start - 1, limit=max(count, 0))
        resources, total = self.find(query)
        listed = ListResponse[self.model](  # type: ignore[name-defined]
            total_results=total, start_index=start, items_per_page=len(resources), resources=resources
        )
        chosen = _read_attributes(parameters, self.model)
        return _json(listed.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=chosen))

    def find(self, query: DirectoryQuery) -> tuple[list[Any], int]:
        people, total = self.directory.people(self.identity, query)
        return [self.to_resource(person) for person in people], total

    def read(self, resource_id: str, parameters: Any) -> Response:
        resource = self.to_resource(self.current(resource_id))
        chosen = _read_attributes(parameters, self.model)
        return _json(resource.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=chosen))

    def create(self, body: Body) -> Response:
        """Add a person or group."""
        resource = self.model.model_validate(
            _convert_booleans(body), scim_ctx=Context.RESOURCE_CREATION_REQUEST, scim_policy=POLICY
        )
        created = self.to_resource(self.add(resource))
        content = created.model_dump(scim_ctx=Context.RESOURCE_CREATION_RESPONSE)
        return _json(content, status=201, headers={"Location": str(created.meta.location)})

    def replace(self, resource_id: str, body: Body) -> Response:
        """Replace all attributes; attributes missing in the body are removed. Without `active`, a person
        stays active.
        """
        resource = self.model.model_validate(
            _convert_booleans(body), scim_ctx=Context.RESOURCE_REPLACEMENT_REQUEST, scim_policy=POLICY
        )
        replaced = self.to_resource(self.change(resource_id, lambda _now: resource))
        return _json(replaced.model_dump(scim_ctx=Context.RESOURCE_REPLACEMENT_RESPONSE))

    def patch(self, resource_id: str, body: Body) -> Response:
        """Apply all operations, or raise and apply none."""
        model = self.model
        operations = PatchOp[model].model_validate(  # type: ignore[valid-type]
            _convert_booleans(body), scim_ctx=Context.RESOURCE_PATCH_REQUEST, scim_policy=POLICY
        )

        def apply_patch(now: Any) -> Any:
            operations.patch(now, scim_policy=POLICY)
            return now

        patched_resource = self.to_resource(self.change(resource_id, apply_patch))
        return _json(patched_resource.model_dump(scim_ctx=Context.RESOURCE_PATCH_RESPONSE))

    def current(self, resource_id: str) -> Any:
        return self.directory.person(self.identity, resource_id)

    def add(self, resource: Any) -> Any:
        return self.directory.add_person(self.identity, _person_from(resource))

    def change(self, resource_id: str, to: Callable[[Any], Any]) -> Any:
        def apply(now: DirectoryPerson) -> DirectoryPerson:
            resource = to(self.to_resource(now))
            return _person_from(resource, is_active=now.is_active if resource.active is None else resource.active)

        return self.directory.change_person(self.identity, resource_id, apply)

    def remove(self, resource_id: str) -> None:
        self.directory.remove_person(self.identity, resource_id)

    def to_resource(self, person: DirectoryPerson) -> Any:
        fields = {"displayName": person.name} if person.directory_fields is None else person.directory_fields
        groups = None
        if person.group_id:
            ref = f"{self.base}/Groups/{person.group_id}"
            groups = [{"value": str(person.group_id), "$ref": ref, "display": person.group_name, "type": "direct"}]
        values = {**fields, "userName": person.email, "active": person.is_active, "groups": groups}
        return self._build_resource(person.id, person.created_at, values)

    def _build_resource(self, resource_id: UUID, created_at: Any, values: Body) -> Any:
        resource = self.model.model_validate({"schemas": [str(self.model.__schema__)], **values})
        resource.id = str(resource_id)
        location = f"{self.base}/{self.endpoint}/{resource_id}"
        resource.meta = Meta(resource_type=self.model.__name__, created=created_at, location=location)
        return resource


class Groups(People):
    """Handles SCIM requests for groups."""

    model: Any = Group
    endpoint = "Groups"

    def find(self, query: DirectoryQuery) -> tuple[list[Any], int]:
        groups, total = self.directory.groups(self.identity, query)
        return [self.to_resource(group) for group in groups], total

    def current(self, resource_id: str) -> Any:
        return self.directory.group(self.identity, resource_id)

    def add(self, resource: Any) -> Any:
        return self.directory.add_group(self.identity, _group_from(resource))

    def change(self, resource_id: str, to: Callable[[Any], Any]) -> Any:
        return self.directory.change_group(
            self.identity, resource_id, lambda now: _group_from(to(self.to_resource(now)))
        )

    def remove(self, resource_id: str) -> None:
        self.directory.remove_group(self.identity, resource_id)

    def to_resource(self, group: Any) -> Any:
        record: DirectoryGroup = group
        members = [
            {"value": member, "$ref": f"{self.base}/Users/{member}", "type": "User"} for member, _name in record.members
        ]
        values = {
            "displayName": record.name,
            "externalId": record.external_id,
            "members": members or None,
        }
        return self._build_resource(record.id, record.created_at, values)


KINDS: dict[str, type[People]] = {"Users": People, "Groups": Groups}
DISCOVERED = ("ServiceProviderConfig", "ResourceTypes", "Schemas")


def _describe(path: list[str], base: str) -> Response:
    if path[0] == "ServiceProviderConfig":
        if len(path) > 1:
            raise NotFound
        return _json(_with_location(CONFIG, f"{base}/ServiceProviderConfig"))
    described: tuple[Any, ...] = PROVIDER.resource_types if path[0] == "ResourceTypes" else PROVIDER.schemas
    descriptions = [_with_location(resource, f"{base}/{path[0]}/{resource.id}") for resource in described]
    if len(path) == 1:
        urn = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
        many = {
            "totalResults": len(descriptions),
            "startIndex": 1,
            "itemsPerPage": len(descriptions),
            "Resources": descriptions,
        }
        return _json({"schemas": [urn], **many})
    matching = [resource for resource in descriptions if resource["id"] == path[1]]
    if not matching:
        raise NotFound
    return _json(matching[0])


def _with_location(resource: ServiceProviderConfig | ResourceType | Schema, location: str) -> Body:
    content: Body = resource.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE)
    return {**content, "meta": {"resourceType": type(resource).__name__, "location": location}}


def _person_from(resource: Any, *, is_active: bool | None = None) -> DirectoryPerson:
    name = resource.name.model_dump(scim_ctx=None, by_alias=True, exclude_none=True) if resource.name else {}
    values = {"externalId": resource.external_id, "name": name, "displayName": resource.display_name}
    fields = {field: value for field, value in values.items() if value}
    parts = " ".join(filter(None, [name.get("givenName"), name.get("familyName")]))
    address = resource.user_name or ""
    full_name = fields.get("displayName") or name.get("formatted") or parts or address.partition("@")[0]
    active = resource.active is not False if is_active is None else is_active
    return DirectoryPerson(email=address, name=full_name[:120], is_active=active, directory_fields=fields)


def _group_from(resource: Any) -> DirectoryGroup:
    members = resource.members or []
    if any(member.type == "Group" for member in members):
        raise InvalidInput("Groups within groups are not kept here. Send the people of the inner group.")
    return DirectoryGroup(
        name=resource.display_name or "",
        external_id=resource.external_id,
        members=[(member.value or "", member.display or "") for member in members],
    )


def _convert_booleans(body: Body) -> Body:
    """Convert "true" and "false" in `active` from strings to booleans, because Microsoft Entra sends strings."""

    def read(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {inner: read(inner, item) for inner, item in value.items()}
        if name.lower() == "active" and isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        return value

    converted = {name: read(name, value) for name, value in body.items()}
    if isinstance(operations := converted.get("Operations"), list):
        converted["Operations"] = [
            {**operation, "value": read(str(operation.get("path", "")), operation["value"])}
            if isinstance(operation, dict) and "value" in operation
            else operation
            for operation in operations
        ]
    return converted


def parse_filter(text: str | None) -> dict[str, str]:
    if not text:
        return {}
    match = FILTER.fullmatch(text)
    if match is None or match[1].lower() not in FILTERS:
        raise InvalidFilter
    return {FILTERS[match[1].lower()]: re.sub(r"\\(.)", r"\1", match[2])}


class InvalidFilter(SCIMException):
    """This service does not support the filter."""

    scim_type = "invalidFilter"
    _default_detail = 'A filter is one comparison: userName, displayName, externalId or id, then eq "…".'


def _number(parameters: Any, name: str, otherwise: int) -> int:
    try:
        return min(int(parameters.get(name) or otherwise) if str(parameters.get(name)) != "0" else 0, 2**31 - 1)
    except (TypeError, ValueError) as exc:
        raise InvalidInput(f"{name} is a whole number.") from exc


def _read_attributes(parameters: Any, model: Any) -> ResponseParameters[Any]:
    named = {name: parameters.get(name) for name in ("attributes", "excludedAttributes") if parameters.get(name)}
    return ResponseParameters[model].model_validate(named)


def _json(content: Body, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    return JSONResponse(content, status_code=status, media_type=MEDIA_TYPE, headers=all_headers)


def _error(error: Error) -> Response:
    return _json(error.model_dump(), status=int(error.status or 400))
