"""Pictures as documents: photographs, screenshots and scans of one page or several."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import pytest
from PIL import ExifTags, Image

from rag.errors import FileDamaged, FileEmpty, FileNotAsNamed, FileTooLarge, NotFound, TooManyPages
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.format_table import CORE, is_followed, is_readable
from rag.ingestion.loaders.page_text import BLANK_PAGE
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits, LoadOptions
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.ingestion.sources.folder import files_in_archive
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.local_engines import worker_for
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, Document, DocumentStatus, Identity
from rag.ui.formats import has_pages
from rag.ui.page_view import has_pictures
from tests.ingestion.scans import png, scan_of
from tests.ingestion.uploads import confirmed
from tests.standins.providers import ProviderStandin

FORMATS = {
    ".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF", ".webp": "WEBP", ".bmp": "BMP",
}  # fmt: skip
LEAVE = "Employees receive twenty five days of paid leave every year."
SICK = "A sick note is due on the third day of an illness."
needs_rapidocr = pytest.mark.skipif(worker_for("recognition") is None, reason="RapidOCR is not installed")


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def pages_of_tiff(*pictures: Image.Image) -> bytes:
    return saved(pictures[0], "TIFF", save_all=True, append_images=pictures[1:], compression="tiff_lzw")


def bomb(width: int = 30_000, height: int = 30_000) -> bytes:
    """A PNG of some hundred bytes that says to have 900 million pixels."""

    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(b"\0" * 9)) + part(b"IEND", b"")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_picture_of_any_kind_is_taken_by_name_and_by_its_bytes(ending: str, sandbox: Sandbox) -> None:
    content = saved(scan_of(LEAVE), FORMATS[ending])
    checked = sandbox.check(content, file_name=f"scan{ending}")
    assert checked.page_count == 1
    assert kind_of(content, "") == checked.kind
    (page,) = sandbox.load(content, file_name=f"scan{ending}").pages
    assert (page.text, page.method, page.warnings) == ("", "none", ())
    with Image.open(io.BytesIO(sandbox.draw_page(content, 1, highlight="", scale=2.0))) as drawn:
        assert (drawn.format, drawn.height) == ("PNG", 1684)


def test_the_table_and_these_tests_know_the_same_kinds() -> None:
    assert {ending for loader in CORE if loader.pillow_format for ending in loader.endings} == {*FORMATS}


def test_a_picture_saved_under_the_name_of_another_kind_is_taken_and_a_text_is_not(sandbox: Sandbox) -> None:
    sandbox.check(saved(scan_of(LEAVE), "WEBP"), file_name="photo.jpg")
    with pytest.raises(FileNotAsNamed, match=r"Rename the file so that its name ends in \.png"):
        sandbox.check(png(scan_of(LEAVE)), file_name="notes.txt")


def test_pages_of_a_scan_are_counted_and_blank_ones_are_named(sandbox: Sandbox) -> None:
    blank = Image.new("L", (800, 1000), 250)
    content = pages_of_tiff(scan_of(LEAVE), blank, scan_of(SICK))
    assert sandbox.check(content, file_name="a.tif").page_count == 3
    pages = sandbox.load(content, file_name="a.tif").pages
    assert [page.warnings for page in pages] == [(), (BLANK_PAGE,), ()]
    few = LoadOptions(limits=replace(ExtractionLimits(), maximum_pages=2))
    with pytest.raises(TooManyPages, match="3 pages; the limit is 2"):
        check(content, "a.tif", options=few)


@pytest.mark.parametrize("content", [bomb(), bomb(12_000, 12_000)], ids=["refused_by_pillow", "within_its_bounds"])
def test_a_picture_made_to_fill_the_memory_is_refused_before_it_is_decoded(content: bytes) -> None:
    for read in (check, load):
        with pytest.raises(FileTooLarge, match="more than 80 million pixels"):
            read(content, "a.png")


def test_what_is_damaged_or_empty_says_so() -> None:
    whole = png(scan_of(LEAVE))
    for content in (whole[:2000], whole[:20], b"\x89PNG\r\n\x1a\nrest"):
        with pytest.raises(FileDamaged, match="picture is damaged"):
            check(content, "a.png")
    with pytest.raises(FileEmpty):
        check(b"", "a.png")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_a_photograph_is_put_upright_as_the_camera_says(kind: str, sandbox: Sandbox) -> None:
    picture = Image.new("RGB", (600, 400), "white")
    picture.paste("black", (0, 0, 600, 40))
    turned = picture.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    drawn = sandbox.draw_page(saved(turned, kind, exif=exif), 1, highlight="", scale=2.0)
    with Image.open(io.BytesIO(drawn)) as shown:
        assert shown.size == (600, 400)
        assert shown.convert("L").getpixel((300, 10)) < 60  # type: ignore[operator]
        assert shown.convert("L").getpixel((300, 380)) > 200  # type: ignore[operator]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16"])
def test_pictures_of_every_depth_are_drawn_on_white(mode: str, sandbox: Sandbox) -> None:
    kind = "TIFF" if mode in ("CMYK", "I;16") else "PNG"
    if mode == "I;16":
        picture = Image.new("I;16", (300, 200), 65_000)
    else:
        clear = Image.new("RGBA", (300, 200), (255, 255, 255, 0))
        picture = clear.convert(mode) if "A" in mode else Image.new("RGB", (300, 200), "white").convert(mode)
    with Image.open(io.BytesIO(sandbox.draw_page(saved(picture, kind), 1, highlight="", scale=2.0))) as drawn:
        assert drawn.getpixel((150, 100))[0] > 250  # type: ignore[index]


def test_pages_are_handed_to_a_provider_as_a_pdf(sandbox: Sandbox) -> None:
    content = pages_of_tiff(scan_of(LEAVE), scan_of(SICK), scan_of(LEAVE))
    part = sandbox.pages_of(content, [1, 3])
    assert sandbox.check_pdf(part).page_count == 2


def test_citations_of_a_scan_name_pages_and_those_of_a_photograph_do_not() -> None:
    assert has_pages("scan.tif")
    assert not has_pages("photo.jpg")


def test_pictures_of_an_archive_are_taken_and_those_of_a_followed_drive_are_not() -> None:
    assert is_readable(PurePath("a/scan.jpg"))
    assert not is_followed(PurePath("a/logo.png"))
    assert is_followed(PurePath("a/rules.pdf"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("scan.png", png(scan_of(LEAVE)))
    packed.seek(0)
    (found,) = files_in_archive(packed, ExtractionLimits())
    assert (found.name, found.refusal) == ("scan.png", "")


Product = tuple[DocumentLibrary, IngestionPipeline]


@pytest.fixture
def make(
    database: Database, files: FileStore, settings: Settings, sandbox: Sandbox
) -> Iterator[Callable[..., Product]]:
    """The product with other settings on the same database."""
    made: list[Providers] = []

    def parts(**changed: Any) -> Product:
        own = replace(settings, **changed)
        ledger, providers = Ledger(database), Providers(own)
        made.append(providers)
        pipeline = IngestionPipeline(database, files, providers, ledger, own, sandbox=sandbox)
        queue = Queue(database, pipeline)
        return DocumentLibrary(database, files, providers, own, queue, sandbox=sandbox), pipeline

    yield parts
    for providers in made:
        providers.close()


@pytest.fixture
def product(make: Callable[..., Product]) -> Product:
    """The product with nothing installed and no key."""
    return make(recognition="builtin")


def taken_in(parts: Product, admin: Identity, collection: Collection, content: bytes, name: str) -> Document:
    library, pipeline = parts
    document = confirmed(library, admin, collection, content, read=pipeline.run, file_name=name)
    pipeline.run("demo", document.id)
    return library.get("demo", document.id)


@needs_rapidocr
def test_a_scan_of_several_pages_becomes_searchable_and_is_shown(
    product: Product, admin: Identity, collection: Collection
) -> None:
    done = taken_in(product, admin, collection, pages_of_tiff(scan_of(LEAVE), scan_of(SICK)), "rules.tif")
    assert (done.status, done.page_count, done.mime_type) == (DocumentStatus.COMPLETED, 2, "image/tiff")
    first, second = product[0].pages("demo", done.id)
    assert "twenty five days" in first.text
    assert "third day" in second.text
    assert has_pictures(done)
    shown = product[0].page_image(admin, done.id, 2)
    assert shown.startswith(b"\x89PNG")
    with pytest.raises(NotFound):
        product[0].page_image(admin, done.id, 3)


@needs_rapidocr
def test_a_picture_without_text_says_so(product: Product, admin: Identity, collection: Collection) -> None:
    gradient = Image.linear_gradient("L").resize((900, 900))
    done = taken_in(product, admin, collection, png(gradient), "sky.png")
    assert done.status is DocumentStatus.FAILED
    assert done.message.startswith("Text recognition found no text on any page of this file.")
    blank = product[0].upload(admin, collection, "blank.png", png(Image.new("L", (300, 300), 255)))
    product[1].run("demo", blank.id)
    assert (
        product[0].get("demo", blank.id).message
        == "This file holds no text. Check it on your computer and upload it again."
    )


def test_without_recognition_a_picture_waits_for_it(
    make: Callable[..., Product], admin: Identity, collection: Collection
) -> None:
    library, pipeline = make()
    document = library.upload(admin, collection, "scan.png", png(scan_of(LEAVE)))
    pipeline.run("demo", document.id)
    waiting = library.get("demo", document.id)
    assert waiting.status is DocumentStatus.NEEDS_OCR
    assert waiting.message == "This file is a picture. Its text has to be recognised before it can be searched."


def test_a_provider_reads_a_picture_and_is_paid_by_the_page(
    make: Callable[..., Product], admin: Identity, collection: Collection, provider_standin: ProviderStandin
) -> None:
    parts = make(upstage_api_key="key", upstage_base_url=f"http://127.0.0.1:{provider_standin.port}")
    done = taken_in(parts, admin, collection, saved(scan_of(LEAVE), "JPEG"), "photo.jpg")
    assert done.status is DocumentStatus.COMPLETED
    assert parts[0].pages("demo", done.id)[0].text == "Recognised text 1 of 1."
    assert provider_standin.usages == [{"endpoint": "ocr", "model": "document-parse", "pages": 1}]
