"""SCIM 2.0: what a company's directory does with people and groups, by a public client and its checks of servers."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import httpx2
import pytest

from rag.types import Role
from tests.api.callers import Api
from tests.patience import patient

USER, GROUP = "urn:ietf:params:scim:schemas:core:2.0:User", "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
#: An account is active or it is not: a directory that removes the attribute leaves it as it is.
DIFFERENT = ("check_remove_attribute User: PATCH modify() did not remove attribute 'active'",)


class Addresses(list[str]):
    """Endless addresses: a person's userName is one, and no two have the same."""

    def __getitem__(self, index: Any) -> Any:
        return f"{uuid4().hex}@example.com"


@pytest.fixture
def directory(api: Api) -> httpx.Client:
    client = api.client(api.key("scim"))
    client.base_url = f"{api.url}/scim/v2"
    return client


def person(who: str, **more: Any) -> dict[str, Any]:
    return {"schemas": [USER], "userName": f"{who}@example.com", **more}


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"schemas": [PATCH], "Operations": list(operations)}


def test_a_public_checker_finds_nothing_wrong(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # Here, for making the models takes seconds, which each process that lists the tests would spend.
    from scim2_client.engines.httpx2 import SyncSCIMClient
    from scim2_models import ScimProvider
    from scim2_tester import Status, check_server

    from rag.integrations.directory.scim.server import CONFIG, Group, User

    monkeypatch.setattr(User.model_fields["user_name"], "examples", Addresses(["one@example.com"]))
    headers = {"Authorization": f"Bearer {api.key('scim')}"}
    with httpx2.Client(base_url=f"{api.url}/scim/v2", headers=headers, timeout=patient(20)) as http:
        provider = ScimProvider(models=[User, Group], config=CONFIG)
        results = check_server(SyncSCIMClient(http, provider=provider))
    # A check of what the service says it does not do is left out.
    okay = {Status.SUCCESS, Status.SKIPPED}
    found = [f"{r.title} {r.resource_type}: {r.reason}" for r in results if r.status not in okay]
    wrong = [one for one in found if one not in DIFFERENT]
    assert not wrong, "\n".join(wrong)
    assert len([r for r in results if r.status is Status.SUCCESS]) > 30


def test_no_answer_holds_more_people_than_the_service_says(api: Api, directory: httpx.Client) -> None:
    with api.parts.database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "SELECT 'demo', number || '@example.com', 'Somebody', 'employee', '' FROM generate_series(1, 205) AS number"
        )
    most = directory.get("/ServiceProviderConfig").json()["filter"]["maxResults"]
    first = directory.get("/Users", params={"count": 100_000}).json()
    assert (len(first["Resources"]), first["itemsPerPage"], most) == (200, 200, 200)
    rest = directory.get("/Users", params={"startIndex": 201, "count": 100_000}).json()
    assert len(rest["Resources"]) == rest["totalResults"] - 200 >= 5
    assert {one["id"] for one in rest["Resources"]}.isdisjoint(one["id"] for one in first["Resources"])


def test_a_directory_keeps_people_and_groups(api: Api, directory: httpx.Client) -> None:
    names = {"givenName": "Ada", "familyName": "Lovelace"}
    added = directory.post("/Users", json=person("ada", name=names, externalId="e1", title="Countess"))
    assert added.status_code == 201, added.text
    ada = added.json()
    assert ada["active"] is True
    assert added.headers["location"] == f"{api.url}/scim/v2/Users/{ada['id']}"
    assert "title" not in ada  # nobody keeps it
    account = next(one for one in api.parts.accounts.list(api.admin) if str(one.id) == ada["id"])
    assert (account.email, account.name, account.role) == ("ada@example.com", "Ada Lovelace", Role.EMPLOYEE)
    refused = directory.post("/Users", json=person("ADA"))
    assert (refused.status_code, refused.json()["scimType"]) == (409, "uniqueness")

    # Groups, with members as Microsoft Entra removes them, and renamed for the collections that they may read.
    made = directory.post("/Groups", json={"schemas": [GROUP], "displayName": "Sales"}).json()
    group = f"/Groups/{made['id']}"
    members = {"op": "Add", "path": "members", "value": [{"value": ada["id"]}]}
    assert directory.patch(group, json=patch(members)).json()["members"][0]["value"] == ada["id"]
    assert directory.get(f"/Users/{ada['id']}").json()["groups"][0]["display"] == "Sales"
    api.parts.documents.change_collection(api.admin, api.collection.id, groups=["Sales"])
    directory.patch(group, json=patch({"op": "replace", "value": {"displayName": "Field"}}))
    assert api.parts.documents.collection(api.admin, api.collection.id).groups == ["Field"]
    assert {one.user_group for one in api.parts.accounts.list(api.admin)} == {"", "Field"}
    nested = patch({"op": "add", "path": "members", "value": [{"value": made["id"], "type": "Group"}]})
    assert directory.patch(group, json=nested).json()["scimType"] == "invalidValue"
    directory.patch(group, json=patch({"op": "Remove", "path": "members", "value": [{"value": ada["id"]}]}))
    assert "members" not in directory.get(group).json()

    # Looked for, and page by page.
    found = directory.get("/Users", params={"filter": 'userName eq "Ada@Example.com"'}).json()
    assert [one["id"] for one in found["Resources"]] == [ada["id"]]
    assert directory.get("/Users", params={"filter": 'externalId eq "none"'}).json()["totalResults"] == 0
    pages = [directory.get("/Users", params={"startIndex": n, "count": 1}).json() for n in (1, 2)]
    assert {page["totalResults"] for page in pages} == {2}
    assert len({page["Resources"][0]["id"] for page in pages}) == 2
    refused = directory.get("/Users", params={"filter": 'userName sw "a"'})
    assert (refused.status_code, refused.json()["scimType"]) == (400, "invalidFilter")
    assert directory.delete(group).status_code == 204


@pytest.mark.parametrize("value", [{"path": "active", "value": "False"}, {"value": {"active": False}}])
def test_who_is_deactivated_is_out_at_once(api: Api, directory: httpx.Client, value: dict[str, Any]) -> None:
    account, _ = api.parts.accounts.invite(api.admin, "boss@example.com", "Boss", Role.ADMIN)
    token = api.parts.sessions.start(account)
    session = api.client(Cookie=f"hr_session={token}")
    assert session.get("/api/me").status_code == 200
    changed = directory.patch(f"/Users/{account.id}", json=patch({"op": "Replace", **value}))
    assert changed.json()["active"] is False
    assert session.get("/api/me").status_code == 401
    # Nothing but a directory's word brings them back; left out, it stays as it is.
    kept = directory.put(f"/Users/{account.id}", json=person("boss", displayName="The Boss")).json()
    assert (kept["active"], kept["displayName"]) == (False, "The Boss")
    # Nobody is left to let the others in again.
    last = directory.delete(f"/Users/{api.admin.account_id}")
    assert last.status_code == 403
    assert "only active administrator" in last.json()["detail"]
    # Deleted, the account stays for the logs, and the same address is the same person.
    assert directory.delete(f"/Users/{account.id}").status_code == 204
    assert directory.get(f"/Users/{account.id}").status_code == 404
    again = directory.post("/Users", json=person("boss")).json()
    assert again["id"] == str(account.id)
    assert again["active"] is True


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MANAGER])
def test_a_directory_gives_nobody_the_rights_of_an_administrator_by_another_address(
    api: Api, directory: httpx.Client, role: Role
) -> None:
    account, _ = api.parts.accounts.invite(api.admin, "boss@example.com", "Boss", role)
    address = f"/Users/{account.id}"
    evil = patch({"op": "Replace", "path": "userName", "value": "evil@example.com"})
    for refused in (directory.patch(address, json=evil), directory.put(address, json=person("evil"))):
        assert refused.status_code == 403
        assert "that person's rights" in refused.json()["detail"]
    assert api.parts.accounts.list(api.admin)[0].email != "evil@example.com"
    assert {one.email for one in api.parts.accounts.list(api.admin)} >= {"boss@example.com"}
    # The name is the directory's, and so is the address of an employee.
    named = directory.put(address, json=person("boss", displayName="The Boss"))
    assert named.json()["displayName"] == "The Boss"
    api.parts.accounts.change(api.admin, account.id, role=Role.EMPLOYEE)
    assert directory.patch(address, json=evil).json()["userName"] == "evil@example.com"


def test_only_a_key_for_it_of_the_same_company(api: Api, directory: httpx.Client) -> None:
    for secret, status in (("", 401), ("rag_" + "x" * 43, 401), (api.key("admin"), 403), (api.key("chat"), 403)):
        refused = api.client(secret).get("/scim/v2/Users")
        assert refused.status_code == status
        assert refused.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        assert refused.json()["status"] == str(status)
    session = api.client(Cookie=f"hr_session={api.session(Role.ADMIN)}")
    assert session.get("/scim/v2/Users").status_code == 403
    # Its key is for this alone.
    assert directory.get(f"{api.url}/api/collections").status_code == 403
    # Another company's people are nobody.
    with api.parts.database.transaction("other") as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES ('other', 'other@example.com', 'Other', 'employee', '!') RETURNING id"
        ).fetchone()
    assert row is not None
    assert directory.get(f"/Users/{row[0]}").status_code == 404
    assert directory.patch(f"/Users/{row[0]}", json=patch({"op": "replace", "value": {"active": False}})).is_error
    members = {"schemas": [GROUP], "displayName": "Ours", "members": [{"value": str(row[0])}]}
    assert directory.post("/Groups", json=members).status_code == 400
    # Bodies are bounded, and read as JSON alone.
    large = directory.post("/Users", json=person("x", title="x" * 1_100_000))
    assert (large.status_code, large.json()["status"]) == (413, "413")
    assert directory.post("/Users", content=b"{", headers={"Content-Type": "application/scim+json"}).status_code == 400
    assert directory.post("/Users", json=person("no", userName="no address")).json()["scimType"] == "invalidValue"
    assert directory.post("/Schemas", json={}).status_code == 405
    few = api.client(api.key("scim", requests_per_minute=1))
    assert [few.get("/scim/v2/Users").status_code for _ in range(2)] == [200, 429]
