"""Files attached to mails and PDFs become documents of their own, and what stays unread is named."""

from __future__ import annotations

import io
from email.message import EmailMessage

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    StreamObject,
    TextStringObject,
)

from rag.ingestion.document_rows import find_documents
from rag.ingestion.loaders import MOST_ATTACHED, attached
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits, LoadOptions
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.documents import DocumentLibrary
from rag.storage.database import Database
from rag.types import Collection, DocumentStatus, Identity, UploadOptions
from tests import hostile
from tests.ingestion.conftest import Worker
from tests.integration_rows import modules

POLICY = hostile.leave_policy("The jubilee payment is 1,250 euros.")
TABLE = b"Office,Allowance\nUtrecht,900\n"


def mail(*files: tuple[str, bytes], inner: EmailMessage | None = None) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["Subject"] = "hr@example.com", "Jubilee"
    made.set_content("Please read the attached files.")
    for name, content in files:
        made.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    if inner is not None:
        made.add_attachment(inner)
    return made


def portfolio(*files: tuple[str, bytes], pinned: tuple[str, bytes] | None = None, password: str = "") -> bytes:
    """A PDF with a cover, attached files, and one pinned to the page."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(hostile.leave_policy("This is the cover."))))
    for name, content in files:
        writer.add_attachment(name, content)
    if pinned is not None:
        stream = DecodedStreamObject()
        stream.set_data(pinned[1])
        file = DictionaryObject(
            {
                NameObject("/F"): TextStringObject(pinned[0]),
                NameObject("/EF"): DictionaryObject({NameObject("/F"): writer._add_object(stream)}),
            }
        )
        pin = DictionaryObject(
            {
                NameObject("/Subtype"): NameObject("/FileAttachment"),
                NameObject("/Rect"): ArrayObject(map(NumberObject, (50, 50, 70, 70))),
                NameObject("/FS"): file,
            }
        )
        writer.pages[0][NameObject("/Annots")] = ArrayObject([writer._add_object(pin)])
    for embedded in [each for each in writer._objects if isinstance(each, StreamObject)]:
        if embedded.get("/Type") == "/EmbeddedFile":
            assert embedded.indirect_reference is not None
            writer._replace_object(embedded.indirect_reference, embedded.flate_encode())
    if password:
        writer.encrypt(password)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def names_in(content: bytes, name: str, options: LoadOptions = LoadOptions()) -> list[str]:  # noqa: B008
    return [file.name for file in attached(content, name, options)]


FILES = (("jubilee.pdf", POLICY), ("table.csv", TABLE))
HOSTS = {
    "jubilee.eml": mail(*FILES).as_bytes(),
    "jubilee portfolio.pdf": portfolio(*FILES),
    **{
        name: content
        for samples in modules("samples", "formats").values()
        if hasattr(samples, "with_attached")
        for name, content in samples.with_attached(FILES).items()
    },
}


@pytest.mark.parametrize("name", HOSTS)
def test_attached_files_are_taken_out_whole(sandbox: Sandbox, name: str) -> None:
    found = sandbox.attached(HOSTS[name], file_name=name)
    assert [(file.name, file.content) for file in found] == list(FILES)


def test_files_within_mails_and_on_pages_are_attached_too() -> None:
    inner = mail(("pay.csv", TABLE))
    assert names_in(mail(*FILES, inner=inner).as_bytes(), "a.eml") == ["jubilee.pdf", "table.csv", "pay.csv"]
    assert names_in(portfolio(("a.csv", TABLE), pinned=("b.csv", TABLE)), "a.pdf") == ["a.csv", "b.csv"]


def test_what_nothing_reads_is_no_document() -> None:
    others = (
        ("setup.exe", b"MZ"),
        ("logo.png", b"\x89PNG"),
        ("empty.csv", b""),
        (".hidden.csv", TABLE),
        ("a.zip", b"PK"),
    )
    assert names_in(mail(*others, ("table.csv", TABLE)).as_bytes(), "a.eml") == ["table.csv"]
    many = mail(*((f"{number}.csv", TABLE) for number in range(MOST_ATTACHED + 1)))
    assert len(names_in(many.as_bytes(), "a.eml")) == MOST_ATTACHED
    small = LoadOptions(limits=ExtractionLimits(maximum_bytes=20_000))
    packed = portfolio(("a.csv", TABLE * 1000), ("b.csv", TABLE * 500), ("c.csv", TABLE))
    assert names_in(packed, "a.pdf", small) == ["b.csv", "c.csv"]
    assert names_in(TABLE, "a.csv") == []


@pytest.mark.parametrize("name", HOSTS)
def test_each_becomes_a_document_that_answers_and_the_host_says_so(
    library: DocumentLibrary,
    admin: Identity,
    collection: Collection,
    database: Database,
    work: Worker,
    name: str,
) -> None:
    host = library.upload(admin, collection, f"Germany/{name}", HOSTS[name])
    found = find_documents(database, admin.tenant_id, collection.id)
    assert {(d.upload_folder, d.file_name) for d in found} == {
        ("Germany", name), (f"Germany/{name}", "jubilee.pdf"), (f"Germany/{name}", "table.csv"),
    }  # fmt: skip
    for document in found:
        work(admin.tenant_id, document.id)
    assert {d.status for d in find_documents(database, admin.tenant_id)} == {DocumentStatus.ESTIMATED}
    (said,) = (page.warnings for page in library.pages(admin, host.id) if page.number == 1)
    assert said[-1] == "2 attached files were added as separate documents: jubilee.pdf, table.csv."


def test_a_file_that_is_stored_already_is_not_stored_twice_and_a_damaged_one_is_named(
    library: DocumentLibrary, admin: Identity, collection: Collection, database: Database, work: Worker
) -> None:
    library.upload(admin, collection, "jubilee.pdf", POLICY)
    host = library.upload(
        admin, collection, "a.eml", mail(*FILES, ("broken.docx", b"PK\x03\x04"), ("x.exe", b"MZ")).as_bytes()
    )
    names = sorted(d.file_name for d in find_documents(database, admin.tenant_id))
    assert names == ["a.eml", "jubilee.pdf", "table.csv"]
    work(admin.tenant_id, host.id)
    (said,) = (page.warnings for page in library.pages(admin, host.id))
    assert list(said)[-2:] == [
        "This file has 2 attachments that were not read: broken.docx, x.exe.",
        "2 attached files were added as separate documents: jubilee.pdf, table.csv.",
    ]


def test_files_of_one_name_are_no_versions_of_each_other_and_those_of_a_newer_mail_are(
    library: DocumentLibrary, admin: Identity, collection: Collection, database: Database, work: Worker
) -> None:
    two = mail(("plan.csv", TABLE), ("plan.csv", TABLE + b"Busan,700\n")).as_bytes()
    library.upload(admin, collection, "a.eml", two)
    found = find_documents(database, admin.tenant_id, collection.id)
    assert sorted(d.file_name for d in found) == ["a.eml", "plan (2).csv", "plan.csv"]
    newer = mail(("plan.csv", TABLE + b"Seoul,800\n")).as_bytes()
    library.upload(admin, collection, "a.eml", newer)
    versions = [d for d in find_documents(database, admin.tenant_id) if d.file_name == "plan.csv"]
    assert sorted(d.version for d in versions) == [1, 2]


def test_a_locked_portfolio_gives_its_files_with_its_password(
    library: DocumentLibrary, admin: Identity, collection: Collection, database: Database
) -> None:
    library.upload(
        admin, collection, "a.pdf", portfolio(("table.csv", TABLE), password="open"), UploadOptions(password="open")
    )
    names = sorted(d.file_name for d in find_documents(database, admin.tenant_id))
    assert names == ["a.pdf", "table.csv"]


def test_processing_a_file_at_once_takes_its_attached_files_along(
    pipeline: IngestionPipeline, collection: Collection, database: Database
) -> None:
    hosts = mail(*FILES, ("broken.csv", b"\0\1\2" * 50)).as_bytes()
    result = pipeline.process_document(
        file=hosts,
        file_name="a.eml",
        tenant_id=collection.tenant_id,
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    found = find_documents(database, collection.tenant_id, collection.id)
    done = {d.file_name for d in found if d.status is DocumentStatus.COMPLETED}
    assert done == {"a.eml", "jubilee.pdf", "table.csv"}
    assert next(d.id for d in found if d.file_name == "a.eml") == result.document_id
