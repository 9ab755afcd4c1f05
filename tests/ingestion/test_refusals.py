"""What is said about files that cannot be read: of every kind, in words that fit that kind."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import docx
import pytest
from PIL import Image

from rag.errors import DocumentError, FileDamaged, FileProtected, PasswordNeeded
from rag.ingestion.loaders.format_table import CORE, file_formats
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.signatures import COMPOUND
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.documents import DocumentLibrary
from rag.types import Collection, DocumentStatus, Identity
from tests import hostile, payload_worker
from tests.ingestion.sheet_files import xlsx_file
from tests.ingestion.slide_files import pptx_file
from tests.ingestion.test_loaders import sample_files
from tests.integration_rows import modules
from tests.patience import patient

KINDS = [loader.kind for loader in file_formats().installed]
DRAWN = {loader.kind for loader in file_formats().pictures}
CONTRIBUTED = set(KINDS) - {loader.kind for loader in CORE}
#: Words that a sentence says of some kinds of file only. "Save it as a PDF" is advice.
WORDS = {
    r"(?:This|the|this) PDF\b|\bpassword does not open": {"pdf"},
    r"\bpictures?\b": DRAWN,
    r"\bscan": {"pdf", *DRAWN},
    r"\bmails?\b": {"eml", "msg"},
    r"\bslides?\b|\bpresentation\b": {"pptx"},
    r"\bsheets?\b|\bworkbook\b": {"xlsx", "xls", "ods"},
    r"\bchapters?\b|\bbook\b": {"epub"},
    r"\bWord\b": {"docx"},
    r"\bEnter it\b": {"pdf"},
}


def assert_fits(kind: str, sentence: str) -> None:
    """Fail where a sentence speaks of another kind of file, or does not say what to do."""
    strange = [
        found[0] for words, kinds in WORDS.items() if kind not in kinds and (found := re.search(words, sentence))
    ]
    assert not strange, (kind, sentence)
    assert re.search(r"\. (?:Check|Export|Save|Split|Upload|Open|Enter|Call|Scan|It needs)\b", sentence), (
        kind,
        sentence,
    )


def picture(kind: str, tone: int = 255) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (300, 300), (tone, tone, tone)).save(buffer, "PNG" if kind in CONTRIBUTED else kind.upper())
    return buffer.getvalue()


def sample(kind: str) -> bytes:
    return picture(kind) if kind in DRAWN else sample_files().get(kind, b"Kind,Days\nPaid leave,25\n")


def blank_word() -> bytes:
    buffer = io.BytesIO()
    docx.Document().save(buffer)
    return buffer.getvalue()


def of_integrations(name: str) -> dict[str, bytes]:
    """Files of the integrations' formats, by kind."""
    named = (getattr(module, name, {}) for module in modules("samples", "formats").values())
    return {kind: content for files in named for kind, content in files.items() if kind in CONTRIBUTED}


#: Sound files with nothing in them, by kind. Those of plain text and markup are empty, and refused as such.
BLANK = {
    "pdf": hostile.blank_pages(2),
    "docx": blank_word(),
    "xlsx": xlsx_file({"Leave": ""}),
    "pptx": pptx_file(""),
    "rtf": b"{\\rtf1 }",
    "text": b"\f",
    "markdown": b"<!-- -->",
    "html": b"<html><body><p> </p></body></html>",
    **{kind: picture(kind) for kind in KINDS if kind in DRAWN - CONTRIBUTED},
    **of_integrations("BLANK"),
}
PROTECTED = {
    "pdf": hostile.encrypted(),
    **dict.fromkeys(("docx", "xlsx", "pptx"), COMPOUND + "EncryptedPackage".encode("utf-16-le")),
    "eml": b"From: a@example.com\nSubject: Leave\nContent-Type: application/pkcs7-mime\n\nAAAA\n",
    **of_integrations("PROTECTED"),
}


@pytest.fixture(scope="module")
def broken() -> Iterator[Sandbox]:
    """A sandbox whose processes crash on every file, or raise what no loader raises."""
    running = Sandbox(ExtractionLimits(timeout_seconds=patient(20)), processes=1, worker=payload_worker.CRASHING)
    yield running
    running.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_crashes_its_reader_is_damaged_whatever_its_kind(kind: str, broken: Sandbox) -> None:
    name = f"a{file_formats().by_kind[kind].endings[0]}"
    for task in (broken.check, broken.load, broken.attached):
        with pytest.raises(FileDamaged) as refused:
            task(sample(kind), file_name=name)
        assert_fits(kind, str(refused.value))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_of_a_damaged_file_fits_its_kind(kind: str, sandbox: Sandbox) -> None:
    whole, name = sample(kind), f"a{file_formats().by_kind[kind].endings[0]}"
    half, scrambled = whole[: len(whole) // 2], whole[:24] + bytes(reversed(whole[24:]))
    for content in (half, scrambled, whole[:9] + b"\0" * 400, b"", b" \n", b"\x00\x01\x02 other bytes" * 9):
        try:
            sandbox.check(content, file_name=name)
            sandbox.load(content, file_name=name)
        except DocumentError as refused:
            # A file that is only called a PDF is none.
            assert_fits(kind, str(refused))


@pytest.mark.parametrize("kind", PROTECTED)
def test_a_password_is_asked_for_only_where_it_opens_the_file(kind: str, sandbox: Sandbox) -> None:
    with pytest.raises(FileProtected) as refused:
        sandbox.load(PROTECTED[kind], file_name=f"a{file_formats().by_kind[kind].endings[0]}")
    assert_fits(kind, str(refused.value))
    assert isinstance(refused.value, PasswordNeeded) == (kind == "pdf")


@pytest.mark.parametrize("kind", BLANK)
def test_what_is_said_of_a_file_with_nothing_in_it_fits_its_kind(
    kind: str, library: DocumentLibrary, pipeline: IngestionPipeline, admin: Identity, collection: Collection
) -> None:
    try:
        added = library.upload(admin, collection, f"a{file_formats().by_kind[kind].endings[0]}", BLANK[kind])
        pipeline.run("demo", added.id)
    except DocumentError as refused:
        assert_fits(kind, str(refused))
        return
    read = library.get("demo", added.id)
    assert read.status is DocumentStatus.FAILED
    assert_fits(kind, read.message)


@pytest.mark.parametrize("kind", [kind for kind in ("xlsx", "pptx", "epub", "eml") if kind in KINDS])
def test_a_file_of_too_many_parts_is_not_called_a_pdf(kind: str) -> None:
    small = Sandbox(ExtractionLimits(maximum_pages=0, timeout_seconds=patient(20)), processes=1)
    try:
        with pytest.raises(DocumentError, match="longer than the limit") as refused:
            small.load(sample(kind), file_name=f"a{file_formats().by_kind[kind].endings[0]}")
        assert_fits(kind, str(refused.value))
    finally:
        small.close()
