"""Collections over HTTP: made, configured and deleted by administrators, with every refusal in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from rag.types import Role
from tests.api.callers import Api


def test_a_collection_is_made_configured_and_deleted(api: Api) -> None:
    caller = api.client(api.key("admin"))
    made = caller.post("/api/collections", json={"name": "Bindery", "profile": "civil", "language": "nl"})
    assert made.status_code == 201
    collection = made.json()
    assert (collection["profile"], collection["language"], collection["settings"]) == ("civil", "nl", {})
    one = f"/api/collections/{collection['id']}"
    changed = caller.patch(one, json={"name": "Bindery rules", "groups": ["Mill"]}).json()
    assert (changed["name"], changed["language"], changed["groups"]) == ("Bindery rules", "nl", ["Mill"])
    changed = caller.patch(f"{one}/settings", json={"change": {"top_k": 20, "rerank_top_n": 4}}).json()
    assert changed["settings"] == {"top_k": 20, "rerank_top_n": 4}
    assert caller.patch(f"{one}/settings", json={"reset": ["rerank_top_n"]}).json()["settings"] == {"top_k": 20}
    assert caller.get(one).json()["settings"] == {"top_k": 20}
    # Into the bin and back, like on the page; for good only where that is asked for, with its name.
    assert caller.delete(one).status_code == 204
    assert (caller.get(one).status_code, caller.delete(one).status_code) == (404, 404)
    assert caller.post(f"{one}/restore").json() == {"id": collection["id"], "problems": []}
    assert caller.get(one).json()["settings"] == {"top_k": 20}
    for name in ({}, {"name": "Bindery"}):
        refused = caller.delete(one, params={"forGood": "true", **name})
        assert (refused.status_code, refused.json()["detail"]) == (
            422, "To delete the collection, type its name, Bindery rules."
        )  # fmt: skip
    assert caller.delete(one).status_code == 204
    assert caller.delete(one, params={"forGood": "true", "name": "Bindery rules"}).status_code == 204
    assert (caller.get(one).status_code, caller.post(f"{one}/restore").status_code) == (404, 404)


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "", {"name": " "}, "needs a name"),
        ("POST", "", {"name": "Leave"}, "already"),
        ("POST", "", {"name": "A", "profile": "paper"}, "choose one of hr"),
        ("POST", "", {"name": "A", "language": "xx"}, "is not available"),
        ("POST", "", {"name": "A", "embeddingModel": "paper/model@3"}, "There is no provider"),
        ("POST", "", {"name": "A", "embeddingModel": "builtin/other@3"}, "no built-in embedder"),
        ("PATCH", "/{id}/settings", {"change": {"top_q": 1}}, "top_q"),
        ("PATCH", "/{id}/settings", {"change": {"top_k": "many"}}, ""),
        ("PATCH", "/{id}/settings", {"change": {"embedding_model": "openai/x@3"}}, "cannot be changed"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    api: Api, method: str, path: str, body: dict[str, Any], words: str
) -> None:
    caller = api.client(api.key("admin"))
    api.parts.documents.create_collection(api.admin, "Leave", "hr")
    before = caller.get("/api/collections").json()
    answer = caller.request(method, "/api/collections" + path.format(id=api.collection.id), json=body)
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["detail"]
    assert answer.json()["detail"].endswith(".")
    assert caller.get("/api/collections").json() == before


def test_only_administrators_change_collections(api: Api) -> None:
    key = api.client(api.key("documents:write"))
    assert key.post("/api/collections", json={"name": "A"}).json()["code"] == "scope_missing"
    manager = api.client(Cookie=f"hr_session={api.session(Role.MANAGER)}", Origin=api.url)
    assert manager.patch(f"/api/collections/{api.collection.id}", json={"name": "A"}).status_code == 403
