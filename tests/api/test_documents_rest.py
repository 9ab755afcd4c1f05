"""Documents of a collection over HTTP, and what describes it."""

from __future__ import annotations

import re

from rag.ingestion.loaders.format_table import file_formats
from rag.types import Role
from tests import hostile
from tests.api.callers import Api


def test_a_document_goes_in_is_confirmed_read_and_deleted(api: Api) -> None:
    caller = api.client(api.key("documents:read", "documents:write"))
    path = f"/api/collections/{api.collection.id}/documents"
    added = caller.post(path, files={"file": ("휴가.pdf", hostile.leave_policy())})
    assert added.status_code == 201
    document = added.json()
    assert (document["fileName"], document["status"]) == ("휴가.pdf", "reading")
    again = caller.post(path, files={"file": ("other.pdf", hostile.leave_policy())})
    assert again.status_code == 409
    assert again.json()["details"]["document_id"] == document["id"]
    one = f"/api/documents/{document['id']}"
    api.parts.pipeline.run("demo", api.parts.documents.list("demo")[0].id)
    assert caller.get(one).json()["status"] == "estimated"
    assert caller.post(f"{one}/confirm").json()["status"] == "processing"
    api.parts.pipeline.run("demo", api.parts.documents.list("demo")[0].id)
    listed = caller.get("/api/documents", params={"status": "completed", "limit": 1}).json()
    assert (listed["total"], listed["documents"][0]["id"]) == (1, document["id"])
    chunks = caller.get(f"{one}/chunks", params={"limit": 1}).json()
    assert len(chunks["chunks"]) == 1 <= chunks["total"]
    assert caller.get(f"{one}/pages").json()["pages"][0]["number"] == 1
    assert caller.get(f"{one}/versions").json()["total"] == 1
    assert caller.post(f"{one}/retry").status_code == 422
    # Into the bin and back, like on the page; for good only where that is asked for.
    assert caller.delete(one).status_code == 204
    assert (caller.get(one).status_code, caller.delete(one).status_code) == (404, 404)
    assert caller.post(f"{one}/restore").json()["status"] == "completed"
    assert caller.get(f"{one}/chunks").json()["total"] == chunks["total"]
    assert caller.delete(one).status_code == 204
    assert caller.delete(one, params={"forGood": "true"}).status_code == 204
    assert (caller.get(one).status_code, caller.post(f"{one}/restore").status_code) == (404, 404)
    assert api.parts.documents.bin.count("demo") == 0


def test_an_upload_says_how_it_is_read_and_what_it_may_be_narrowed_by(api: Api) -> None:
    caller = api.client(api.key("documents:read", "documents:write", "search"))
    library = api.parts.documents
    civil = library.create_collection(api.admin, "Civil", "civil", embedding_model="builtin/lexical@1536")
    path = f"/api/collections/{civil.id}/documents"
    file = {"file": ("leave.pdf", hostile.leave_policy())}
    form = {"pdfType": "digital", "chunkingMethod": "fixed", "metadata": '{"department": "HR"}'}
    for wrong in ({"pdfType": "paper"}, {"metadata": "{"}, {"metadata": "[1]"}, {"metadata": '{"colour": "red"}'}):
        assert caller.post(path, files=file, data={**form, **wrong}).status_code == 422, wrong
    assert library.list(api.admin, collection_id=civil.id) == []
    added = caller.post(path, files=file, data=form)
    assert added.status_code == 201, added.text
    assert (added.json()["chunkingMethod"], added.json()["metadata"]["department"]) == ("fixed", "HR")
    assert library.list(api.admin, collection_id=civil.id)[0].pdf_type == "digital"


def test_the_text_of_a_page_is_corrected_and_put_back(api: Api) -> None:
    caller = api.client(api.key("documents:read", "documents:write"))
    path = f"/api/collections/{api.collection.id}/documents"
    document = caller.post(path, files={"file": ("leave.pdf", hostile.leave_policy())}).json()
    added = api.parts.documents.list("demo")[0].id
    api.parts.pipeline.run("demo", added)
    caller.post(f"/api/documents/{added}/confirm")
    page = f"/api/documents/{document['id']}/pages/1/correction"
    early = caller.get(page).json()
    refused = caller.put(page, json={"text": "Twenty-six days.", "fingerprint": early["fingerprint"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "step_not_possible")
    api.parts.pipeline.run("demo", added)

    before = caller.get(page).json()
    assert (before["isCorrected"], before["corrections"], before["text"]) == (False, [], before["textAsRead"])
    body = {"text": before["text"].replace("25 days", "26 days"), "fingerprint": before["fingerprint"]}
    planned = caller.put(page, json={**body, "dryRun": True}).json()
    assert (planned["passages"], planned["document"]) == (1, None)
    made = caller.put(page, json=body).json()["document"]
    assert (made["status"], made["version"]) == ("processing", 2)
    api.parts.pipeline.run("demo", api.parts.documents.versions.of("demo", api.parts.documents.list("demo")[0])[0].id)
    page = f"/api/documents/{made['id']}/pages/1/correction"
    now = caller.get(page).json()
    assert "26 days" in now["text"]
    assert "25 days" in now["textAsRead"]
    assert [(c["isApplied"], c["textAfter"]) for c in now["corrections"]] == [(True, now["text"])]
    assert caller.get(f"/api/documents/{made['id']}/pages").json()["pages"][0]["isCorrected"]

    asked = {"query": "How many days of paid leave does everyone have?", "collection": str(api.collection.id)}
    found = api.client(api.key("search")).post("/api/rag/search", json=asked).json()["results"][0]
    assert "26 days" in found["content"]
    assert found["metadata"]["isCorrected"] is True

    late = caller.put(page, json={**body, "text": "Mine."})
    assert (late.status_code, late.json()["code"], late.json()["details"]["text"]) == (409, "text_changed", now["text"])
    assert caller.put(page, json={**body, "text": ""}).status_code == 422
    assert caller.put(page.replace("/1/", "/7/"), json=body).status_code == 404
    assert caller.delete(page, params={"fingerprint": "old"}).status_code == 409
    back = caller.delete(page, params={"fingerprint": now["fingerprint"]}).json()
    assert back["version"] == 3
    assert caller.get(f"/api/documents/{back['id']}/pages/1/correction").json()["text"] == before["text"]
    reader = api.client(api.key("documents:read"))
    assert [reader.get(page).status_code, reader.put(page, json=body).status_code] == [403, 403]


def test_an_estimate_that_is_discarded_leaves_nothing(api: Api) -> None:
    caller = api.client(api.key("documents:read", "documents:write"))
    path = f"/api/collections/{api.collection.id}/documents"
    one = f"/api/documents/{caller.post(path, files={'file': ('a.pdf', hostile.leave_policy())}).json()['id']}"
    api.parts.pipeline.run("demo", api.parts.documents.list("demo")[0].id)
    assert caller.get(one).json()["status"] == "estimated"
    assert caller.post(f"{one}/discard").status_code == 204
    assert caller.get(one).status_code == 404
    assert caller.get("/api/documents").json()["total"] == 0
    assert caller.post(path, files={"file": ("a.pdf", hostile.leave_policy())}).status_code == 201


def test_lists_come_in_parts_that_together_are_the_whole(api: Api) -> None:
    first = api.ready_document(hostile.long_document(7))
    caller = api.client(api.key("documents:read", "documents:write"))
    path = f"/api/collections/{api.collection.id}/documents"
    for number in range(3):
        added = caller.post(path, files={"file": (f"{number}.txt", f"Rule {number} of the house".encode())})
        assert added.status_code == 201, added.text

    def parts(address: str, name: str, **wanted: str) -> list[str]:
        found: list[str] = []
        while True:
            answer = caller.get(address, params={"limit": 2, "offset": len(found), **wanted}).json()
            if not answer[name]:
                assert answer["total"] == len(found)
                return found
            assert len(answer[name]) <= 2
            found += [str(item.get("id", item.get("number"))) for item in answer[name]]

    every = parts("/api/documents", "documents")
    assert every == [str(document.id) for document in api.parts.documents.list("demo")]
    assert parts("/api/documents", "documents", status="completed") == [str(first.id)]
    assert parts("/api/documents", "documents", collectionId=str(first.id)) == []
    assert parts(f"/api/documents/{first.id}/pages", "pages") == [str(number) for number in range(1, 8)]
    chunks = api.parts.documents.chunks("demo", first.id)
    assert parts(f"/api/documents/{first.id}/chunks", "chunks") == [str(chunk.id) for chunk in chunks]


def test_each_kind_of_original_is_served_as_it_is_described(api: Api) -> None:
    caller = api.client(api.key("documents:read", "documents:write"))
    described = caller.get("/api/openapi.json").json()["paths"]["/api/documents/{document_id}/file"]["get"]
    media = set(described["responses"]["200"]["content"])
    path = f"/api/collections/{api.collection.id}/documents"
    kinds = {"a.pdf": hostile.leave_policy(), "b.txt": b"The rules of the house", "c.html": b"<p>The rules</p>"}
    for name, content in kinds.items():
        added = caller.post(path, files={"file": (name, content)}).json()
        served = caller.get(f"/api/documents/{added['id']}/file")
        assert served.content == content
        assert served.headers["content-type"].partition(";")[0] in media
    assert media >= {loader.media_type for loader in file_formats().loaders if not loader.is_text}


def test_files_that_cannot_be_taken_are_refused_as_callers_expect(api: Api) -> None:
    caller = api.client(api.key("documents:write"))
    path = f"/api/collections/{api.collection.id}/documents"
    assert caller.post(path, files={"file": ("big.pdf", b"x" * 3_000_000)}).status_code == 413
    assert caller.post(path, json={"file": "x"}).status_code == 415
    assert caller.post(path, files={"other": b"x"}).status_code == 422
    assert caller.post(path, files={"file": ("empty.pdf", b"")}).json()["code"] == "file_empty"
    nowhere = path.replace(str(api.collection.id), str(api.admin.account_id))
    assert caller.post(nowhere, files={"file": ("a.pdf", hostile.leave_policy())}).status_code == 404


def test_addresses_and_methods_that_are_none_are_said_so(api: Api) -> None:
    caller = api.client(api.key())
    assert caller.get("/api/nothing").json()["code"] == "route_unknown"
    wrong = caller.put("/api/rag/chat", json={})
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json()["code"] == "method_not_allowed"


def test_the_description_is_whole_and_readable(api: Api) -> None:
    caller = api.client(api.key())
    described = caller.get("/api/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    page = caller.get("/api/docs").text
    assert "https://" not in page
    assert '<html lang="en">' in page
    assert '<main id="swagger-ui">' in page
    assert page.count("</main>") == 1
    loaded = re.findall(r'(?:src|href|url)[=:] ?["\']([^"\']+)', page)
    assert "/api/openapi.json" in loaded
    assert len(loaded) == 4
    assert {caller.get(path).status_code for path in loaded} == {200}
    assert caller.get("/api/docs/redoc.standalone.js").status_code == 404
    assert api.client().get("/api/openapi.json").status_code == 401


def test_health_is_open_and_its_details_are_not(api: Api) -> None:
    seen = api.client().get("/api/health")
    live = {"ok": True, "live": True, "ready": True, "database": {"state": "up"}}
    assert (seen.status_code, seen.json()) == (200, live)
    browser = api.client()
    browser.cookies.set("hr_session", api.session(Role.ADMIN))
    assert browser.get("/api/health").json()["checks"]


def test_a_browser_left_open_deletes_nothing(api: Api) -> None:
    document = api.ready_document()
    token = api.session(Role.ADMIN)
    program = api.client(api.key("documents:read", "documents:write"))
    with api.parts.database.transaction("demo") as connection:
        connection.execute("UPDATE sessions SET proved_at = now() - interval '1 hour'")
    browser = api.client(Cookie=f"hr_session={token}", Origin=api.url)
    refused = browser.delete(f"/api/documents/{document.id}")
    assert refused.status_code == 403
    problem = refused.json()
    assert (problem["code"], problem["details"]) == ("sign_in_again", {"link": "/account/confirm"})
    assert "Confirm that it is you" in problem["detail"]
    assert browser.get("/api/me").status_code == 200, "it is signed in still"
    assert program.delete(f"/api/documents/{document.id}").status_code == 204, "a key is its own proof"


def test_prices_are_listed_and_set_by_administrators(api: Api) -> None:
    caller = api.client(api.key("admin"))
    assert caller.get("/api/prices").json() == {"prices": [], "total": 0}
    body = {"model": "gpt-4o", "unit": "input_mtok", "price": "2.00"}
    answer = caller.post("/api/prices", json=body)
    assert answer.status_code == 201, answer.text
    (shown,) = answer.json()["prices"]
    assert (shown["model"], shown["ownPrice"], shown["planned"]) == ("gpt-4o", "2", [])
    later = caller.post("/api/prices", json={**body, "price": None, "validFrom": "2999-01-01"}).json()["prices"][0]
    assert (later["ownPrice"], later["planned"]) == ("2", [{"price": None, "validFrom": "2999-01-01"}])
    for wrong in ({"price": "-1"}, {"price": 2}, {"unit": "word"}, {"validFrom": "2020-01-01"}, {"model": " "}):
        refused = caller.post("/api/prices", json={**body, **wrong})
        assert refused.status_code == 422, wrong
    assert api.client(api.key("chat", "documents:write")).get("/api/prices").status_code == 403
    assert api.client(api.key("chat", "documents:write")).post("/api/prices", json=body).status_code == 403


def test_a_browser_left_open_changes_no_price(api: Api) -> None:
    token = api.session(Role.ADMIN)
    with api.parts.database.transaction("demo") as connection:
        connection.execute("UPDATE sessions SET proved_at = now() - interval '1 hour'")
    browser = api.client(Cookie=f"hr_session={token}", Origin=api.url)
    body = {"model": "gpt-4o", "unit": "input_mtok", "price": "0"}
    refused = browser.post("/api/prices", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "sign_in_again")
    assert browser.get("/api/prices").json()["total"] == 0
