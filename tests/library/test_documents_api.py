from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from rag.api import documents
from rag.api.app import Api
from rag.api.documents import content_disposition
from rag.library.documents import DocumentLibrary
from rag.types import Collection, Document, Identity
from tests import hostile

DocumentJob = Callable[[str, UUID], None]


class SignedIn:
    """Stands where the guard stands."""

    def __init__(self, app: ASGIApp, identity: Identity | None) -> None:
        self.app = app
        self.identity = identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.identity is not None:
            scope["identity"] = self.identity
        await self.app(scope, receive, send)


def client(library: DocumentLibrary, identity: Identity | None) -> TestClient:
    app = Api([documents.router])
    app.dependency_overrides[documents.library] = lambda: library
    return TestClient(SignedIn(app, identity))


@pytest.fixture
def document(library: DocumentLibrary, admin: Identity, collection: Collection, work: DocumentJob) -> Document:
    added = library.upload(admin, collection, "휴가 <b>.pdf", hostile.leave_policy())
    work("demo", added.id)
    library.confirm(admin, added.id)
    work("demo", added.id)
    return library.get("demo", added.id)


def test_the_file_is_shown_inline_under_its_name(
    library: DocumentLibrary, employee: Identity, document: Document
) -> None:
    answer = client(library, employee).get(f"/api/documents/{document.id}/file")
    assert answer.content == hostile.leave_policy()
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("inline; filename=\"__ _b_.pdf\"; filename*=UTF-8''%ED")


def test_an_unchanged_file_is_not_sent_again_but_a_deleted_one_is_gone(
    library: DocumentLibrary, admin: Identity, document: Document
) -> None:
    browser = client(library, admin)
    path = f"/api/documents/{document.id}/file"
    headers = {"if-none-match": browser.get(path).headers["etag"]}
    assert browser.get(path, headers=headers).status_code == 304
    library.delete(admin, document.id)
    assert browser.get(path, headers=headers).status_code == 404


def test_a_page_is_drawn_with_the_passage_of_a_chunk(
    library: DocumentLibrary, employee: Identity, document: Document
) -> None:
    browser = client(library, employee)
    chunk = library.chunks("demo", document.id)[0]
    plain = browser.get(f"/api/documents/{document.id}/pages/1.png")
    marked = browser.get(f"/api/documents/{document.id}/pages/1.png?highlight={chunk.id}")
    assert plain.headers["content-type"] == "image/png"
    assert plain.content != marked.content
    assert plain.headers["etag"] != marked.headers["etag"]
    assert browser.get(f"/api/documents/{document.id}/pages/9.png").status_code == 404


def test_nobody_without_a_session_and_no_other_tenant_gets_anything(
    library: DocumentLibrary, stranger: Identity, document: Document
) -> None:
    for path in (f"/api/documents/{document.id}/file", f"/api/documents/{document.id}/pages/1.png"):
        assert client(library, None).get(path).status_code == 401
        assert client(library, stranger).get(path).status_code == 404


@pytest.mark.parametrize("name", ["nothing", "..%2f..%2fetc", "11111111-2222-4333-8444-555555555555"])
def test_an_id_that_is_none_is_not_found(library: DocumentLibrary, employee: Identity, name: str) -> None:
    assert client(library, employee).get(f"/api/documents/{name}/file").status_code == 404


def test_a_name_cannot_break_out_of_its_header() -> None:
    header = content_disposition('a"\r\nSet-Cookie: x=1.pdf')
    assert "\r" not in header
    assert header.count('"') == 2


@pytest.mark.parametrize(
    ("name", "content", "disposition", "media_type", "shown"),
    [
        ("a.html", b"<h1>Rules</h1><script>alert(1)</script>", "attachment", "application/octet-stream", None),
        ("a.txt", "휴가는 25일입니다.".encode("cp949"), "inline", "text/plain; charset=utf-8", "휴가는 25일입니다."),
        ("a.md", b"# Rules\n\n<script>alert(1)</script>", "inline", "text/plain; charset=utf-8", None),
    ],
)
def test_what_is_no_pdf_is_never_a_page_of_ours(
    name: str,
    content: bytes,
    disposition: str,
    media_type: str,
    shown: str | None,
    library: DocumentLibrary,
    admin: Identity,
    collection: Collection,
) -> None:
    document = library.upload(admin, collection, name, content)
    browser = client(library, admin)
    answer = browser.get(f"/api/documents/{document.id}/file")
    assert answer.headers["content-disposition"].startswith(disposition)
    assert answer.headers["content-type"] == media_type
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.content == (shown.encode() if shown else content)
    saved = browser.get(f"/api/documents/{document.id}/file?download=1")
    assert saved.content == content
    assert saved.headers["content-disposition"].startswith("attachment")
    assert browser.get(f"/api/documents/{document.id}/pages/1.png").status_code == 404
