"""What PDFs say of themselves, and what they say wrongly."""

from __future__ import annotations

import io

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, NameObject, TextStringObject

from rag.ingestion.loaders.pdf_structure import iso_date
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.documents import DocumentLibrary
from rag.storage.database import Database
from rag.types import Collection
from rag.ui.document_details import file_facts
from rag.ui.text import plain
from tests import hostile

XMP = """<?xpacket begin=""?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><rdf:Description xmp:ModifyDate="2024-02-29">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Leave &amp; absence</rdf:li></rdf:Alt></dc:title>
<dc:creator><rdf:Seq><rdf:li>Human resources</rdf:li></rdf:Seq></dc:creator>
<dc:language><rdf:Bag><rdf:li>nl-NL</rdf:li></rdf:Bag></dc:language>
<xmp:CreateDate>2023-11-30T09:15:00+01:00</xmp:CreateDate></rdf:Description></rdf:RDF></x:xmpmeta>"""


def written(information: dict[str, str], xmp: str = "") -> bytes:
    """A small PDF with this information dictionary and this XMP."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(hostile.leave_policy())))
    writer.metadata = None
    writer.add_metadata({name: TextStringObject(value) for name, value in information.items()})
    if xmp:
        stream = DecodedStreamObject()
        stream.set_data(xmp.encode())
        writer.root_object[NameObject("/Metadata")] = writer._add_object(stream)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "D:", "D:20241301", "D:20240230120000", "2024-13-01", "31/01/2024", "D:0001", "\x00\ufffd"],
)
def test_what_is_no_date_is_left_out(text: str) -> None:
    assert iso_date(text) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("D:20240131094500+09'00'", "2024-01-31T09:45:00+09:00"),
        ("D:20240131094500-05'30", "2024-01-31T09:45:00-05:30"),
        ("D:20240131094500Z00'00'", "2024-01-31T09:45:00+00:00"),
        ("D:20240131094500+99'99'", "2024-01-31T09:45:00"),
        ("D:20240131094560", "2024-01-31T09:45:59"),
        (" 20240131 ", "2024-01-31"),
        ("D:202401", "2024-01-01"),
        ("D:1999", "1999-01-01"),
        ("2024-01", "2024-01-01"),
        ("2024-01-31T09:45:00.123Z", "2024-01-31T09:45:00.123000+00:00"),
    ],
)
def test_dates_are_read_as_programs_write_them(text: str, expected: str) -> None:
    assert iso_date(text) == expected


@pytest.mark.parametrize("written_by", ["D:20000101000000+00'00'", "D:19700101000000Z", "D:19800101"])
def test_a_date_that_a_program_writes_for_none_is_none(sandbox: Sandbox, written_by: str) -> None:
    dates = {"/CreationDate": written_by, "/ModDate": "D:20240229"}
    assert sandbox.extract_pages(written(dates, "")).metadata == {"file_modified_at": "2024-02-29"}


def test_what_the_dictionary_does_not_say_the_xmp_does(sandbox: Sandbox) -> None:
    read = sandbox.extract_pages(written({"/Title": "Leave", "/CreationDate": "D:garbage"}, XMP))
    assert (read.title, read.author, read.language) == ("Leave", "Human resources", "nl")
    assert read.metadata == {"file_created_at": "2023-11-30T09:15:00+01:00", "file_modified_at": "2024-02-29"}
    assert sandbox.extract_pages(written({}, XMP)).title == "Leave & absence"


@pytest.mark.parametrize("xmp", ["<dc:title", "<dc:title>" * 20_000, "<!ENTITY a 'b'><dc:title>&a;</dc:title>", "\x00"])
def test_a_broken_xmp_costs_nothing_but_itself(sandbox: Sandbox, xmp: str) -> None:
    read = sandbox.extract_pages(written({"/Author": "Office"}, xmp))
    assert read.author == "Office"
    assert read.pages[0].text
    assert read.metadata == {}


def test_author_and_dates_are_kept_with_the_document_and_shown_as_text(
    pipeline: IngestionPipeline, library: DocumentLibrary, collection: Collection, database: Database
) -> None:
    content = written({"/Author": "<b>The office</b>", "/CreationDate": "D:20240131094500+09'00'"})
    result = pipeline.process_document(file=content, file_name="a.pdf", tenant_id="demo", collection=collection)
    metadata = library.get("demo", result.document_id).metadata
    assert metadata["file_created_at"] == "2024-01-31T09:45:00+09:00"
    shown = file_facts(metadata)
    assert shown == {"Author": plain("<b>The office</b>"), "File created": plain("31 Jan 2024, 09:45 UTC+09:00")}
    assert "<b>" not in shown["Author"]
    assert file_facts({"file_modified_at": "2024-02-29"}) == {"Last changed": "29 Feb 2024"}
    assert file_facts({}) == {}
