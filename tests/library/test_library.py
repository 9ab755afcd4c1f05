from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from rag.errors import (
    DocumentAlreadyStored,
    InvalidInput,
    NotAllowed,
    NotAPdf,
    NotFound,
    PasswordNeeded,
    PasswordWrong,
)
from rag.ingestion.uploads import display_name
from rag.library.documents import DocumentLibrary
from rag.storage.files import FileStore
from rag.types import Collection, Document, DocumentStatus, Identity, UploadOptions
from tests import hostile

DocumentJob = Callable[[str, UUID], None]


@pytest.fixture
def published(library: DocumentLibrary, admin: Identity, collection: Collection, work: DocumentJob) -> Document:
    """A document that has gone all the way."""
    document = library.upload(admin, collection, "leave_policy.pdf", hostile.leave_policy())
    work("demo", document.id)
    library.confirm(admin, document.id)
    work("demo", document.id)
    return library.get("demo", document.id)


def test_an_upload_is_read_estimated_confirmed_and_published(
    library: DocumentLibrary, admin: Identity, collection: Collection, work: DocumentJob
) -> None:
    document = library.upload(admin, collection, "leave_policy.pdf", hostile.long_document(3))
    assert (document.status, document.title, document.page_count) == (DocumentStatus.READING, "Leave policy", 3)
    work("demo", document.id)
    estimated = library.get("demo", document.id)
    assert estimated.status is DocumentStatus.ESTIMATED
    assert estimated.estimate is not None
    assert estimated.estimate["pages"] == 3
    assert estimated.estimate["total"] == "0"
    assert library.chunks("demo", document.id) == []
    library.confirm(admin, document.id)
    work("demo", document.id)
    done = library.get("demo", document.id)
    chunks = library.chunks("demo", document.id)
    assert done.status is DocumentStatus.COMPLETED
    assert done.chunk_count == len(chunks) == estimated.estimate["chunks"]
    assert all(chunk.has_embedding and chunk.embedding_model == "builtin/lexical@1536" for chunk in chunks)
    assert done.costs == {"parsing": "0", "chunking": "0", "embedding": "0", "metadata": "0", "total": "0"}
    assert "sections" not in done.metadata
    assert done.processing_ms > 0
    assert done.language == "en"


def test_a_bad_file_is_refused_and_not_stored(
    library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    with pytest.raises(NotAPdf):
        library.upload(admin, collection, "page.pdf", hostile.html_named_pdf())
    assert library.list("demo") == []


def test_a_password_is_asked_for_used_and_kept_nowhere(
    library: DocumentLibrary, admin: Identity, collection: Collection, files: FileStore, work: DocumentJob
) -> None:
    locked = hostile.encrypted("tr0ub4dor")
    with pytest.raises(PasswordNeeded):
        library.upload(admin, collection, "locked.pdf", locked)
    with pytest.raises(PasswordWrong):
        library.upload(admin, collection, "locked.pdf", locked, UploadOptions(password="wrong"))
    document = library.upload(admin, collection, "locked.pdf", locked, UploadOptions(password="tr0ub4dor"))
    work("demo", document.id)
    assert library.get("demo", document.id).status is DocumentStatus.ESTIMATED
    assert b"/Encrypt" not in library.original("demo", document.id)
    assert library.page_image("demo", document.id, 1)[:4] == b"\x89PNG"
    with pytest.raises(DocumentAlreadyStored):
        library.upload(admin, collection, "again.pdf", locked, UploadOptions(password="tr0ub4dor"))


def test_the_same_content_is_refused_with_the_name_of_the_document_that_has_it(
    library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    first = library.upload(admin, collection, "leave_policy.pdf", hostile.leave_policy())
    with pytest.raises(DocumentAlreadyStored, match="Leave policy") as refused:
        library.upload(admin, collection, "copy.pdf", hostile.leave_policy())
    assert refused.value.details["document_id"] == first.id


def test_the_same_content_uploaded_by_many_at_once_is_stored_once(
    library: DocumentLibrary, admin: Identity, collection: Collection
) -> None:
    refused: list[DocumentAlreadyStored] = []

    def upload() -> None:
        try:
            library.upload(admin, collection, "leave.pdf", hostile.leave_policy())
        except DocumentAlreadyStored as exc:
            refused.append(exc)

    threads = [threading.Thread(target=upload) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(library.list("demo")) == 1
    assert len(refused) == 5


def test_a_scanned_pdf_needs_recognition_and_is_never_completed(
    library: DocumentLibrary, admin: Identity, collection: Collection, work: DocumentJob
) -> None:
    document = library.upload(admin, collection, "scan.pdf", hostile.image_only())
    work("demo", document.id)
    scanned = library.get("demo", document.id)
    assert scanned.status is DocumentStatus.NEEDS_OCR
    assert scanned.empty_pages == [1]
    assert "scanned" in scanned.message
    assert library.confirm(admin, document.id).status is DocumentStatus.NEEDS_OCR


def test_pages_without_text_are_named_beside_the_rest(
    library: DocumentLibrary, admin: Identity, collection: Collection, work: DocumentJob
) -> None:
    document = library.upload(admin, collection, "mixed.pdf", hostile.partly_scanned())
    work("demo", document.id)
    library.confirm(admin, document.id)
    work("demo", document.id)
    mixed = library.get("demo", document.id)
    assert mixed.status is DocumentStatus.COMPLETED
    assert mixed.empty_pages == [2]
    assert mixed.message.startswith("Page 2 has no text")


def test_deleting_removes_everything_and_the_file(
    library: DocumentLibrary, admin: Identity, published: Document, files: FileStore
) -> None:
    library.page_image("demo", published.id, 1)
    assert library._images._kept
    library.delete(admin, published.id)
    assert not library._images._kept, "the picture is forgotten too"
    assert library.list("demo") == []
    assert library.chunks("demo", published.id) == []
    assert library.pages("demo", published.id) == []
    assert not files.path("demo", published.file_path).exists()
    assert library.suggested_questions("demo", published.collection_id) == []
    for look in (library.original, library.get):
        with pytest.raises(NotFound):
            look("demo", published.id)
    with pytest.raises(NotFound):
        library.page_image("demo", published.id, 1)
    with pytest.raises(NotFound):
        library.delete(admin, published.id)


def test_a_file_stays_while_another_collection_has_it(
    library: DocumentLibrary, admin: Identity, collection: Collection, files: FileStore
) -> None:
    other = library.ensure_collection("demo", "Second", "hr", "builtin/lexical@1536", "en")
    first = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    second = library.upload(admin, other, "a.pdf", hostile.leave_policy())
    library.delete(admin, first.id)
    assert library.original("demo", second.id) == hostile.leave_policy()


def test_only_administrators_change_documents(
    library: DocumentLibrary, employee: Identity, collection: Collection, published: Document
) -> None:
    with pytest.raises(NotAllowed):
        library.upload(employee, collection, "a.pdf", hostile.leave_policy("x"))
    for change in (library.confirm, library.retry, library.delete, library.discard):
        with pytest.raises(NotAllowed):
            change(employee, published.id)


def test_another_tenant_sees_and_touches_nothing(
    library: DocumentLibrary, stranger: Identity, collection: Collection, published: Document
) -> None:
    assert library.list("other") == []
    assert library.pages("other", published.id) == []
    assert library.collections("other") == []
    assert library.suggested_questions("other", collection.id) == []
    for change in (library.confirm, library.delete):
        with pytest.raises(NotFound):
            change(stranger, published.id)
    with pytest.raises(NotFound):
        library.upload(stranger, collection, "a.pdf", hostile.leave_policy("x"))
    with pytest.raises(NotFound):
        library.page_image("other", published.id, 1)
    assert library.get("demo", published.id).status is DocumentStatus.COMPLETED


def test_only_what_failed_can_be_tried_again(library: DocumentLibrary, admin: Identity, published: Document) -> None:
    with pytest.raises(InvalidInput):
        library.retry(admin, published.id)
    with pytest.raises(InvalidInput):
        library.retry(admin, uuid4())


def test_a_page_that_is_not_there_is_not_found(library: DocumentLibrary, published: Document) -> None:
    for page in (0, 2, -1):
        with pytest.raises(NotFound):
            library.page_image("demo", published.id, page)


def test_a_collection_is_made_once(library: DocumentLibrary, collection: Collection) -> None:
    again = library.ensure_collection("demo", collection.name, "hr", "openai/text-embedding-3-small@1536", "nl")
    assert again == collection
    with pytest.raises(InvalidInput):
        library.ensure_collection("demo", "x", "nothing", "builtin/lexical@1536", "en")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd.pdf", "passwd.pdf"),
        ("C:\\Users\\a\\휴가 규정.pdf", "휴가 규정.pdf"),
        ("<b>bold</b>.pdf", "<b>bold</b>.pdf"),
        ("a\0b\n\u202egpj.pdf", "abgpj.pdf"),
        ("..", "document.pdf"),
        ("", "document.pdf"),
        ("x" * 300 + ".pdf", "x" * 195 + "….pdf"),
    ],
    ids=["folders", "windows-hangul", "html", "controls", "dots", "empty", "long"],
)
def test_names_are_shown_and_never_paths(given: str, shown: str) -> None:
    assert display_name(given) == shown


def test_a_name_with_folders_is_stored_inside_the_tenants_folder(
    library: DocumentLibrary, admin: Identity, collection: Collection, files: FileStore
) -> None:
    document = library.upload(admin, collection, "../../../<script>휴가</script>.pdf", hostile.leave_policy())
    path = files.path("demo", document.file_path)
    assert path.is_file()
    assert path.resolve().is_relative_to((files.folder / "demo").resolve())
    assert document.file_name == "<script>휴가</script>.pdf"
