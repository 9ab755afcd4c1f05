"""Pictures from phones as documents."""

from __future__ import annotations

import io
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from rag.errors import FileDamaged, FileKindUnknown, FileTooLarge
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits
from rag.money.bill import Bill
from rag.providers import ChatModel
from rag.sandbox.confinement import READING
from rag.types import Collection, DocumentStatus, Identity
from rag.ui.document_pages import marks_of
from tests.ingestion.test_attachment import assert_described, bill, model
from tests.ingestion.test_picture_files import Product, make, needs_rapidocr, product, taken_in
from tests.integration_rows import needs
from tests.integrations.formats.heic.samples import TURNED
from tests.standins.providers import ProviderStandin

__all__ = ["bill", "make", "model", "product"]
pytestmark = needs("heic")
#: Made with pillow-heif, which encodes: scans of two sentences in one file.
TWO_PICTURES = (Path(__file__).parent / "two_pictures.heic").read_bytes()


def test_a_photograph_of_a_phone_has_a_page_for_each_picture_and_is_upright(sandbox: Sandbox) -> None:
    checked = sandbox.check(TWO_PICTURES, file_name="IMG_0042.HEIC")
    assert (checked.kind, checked.page_count) == ("heic", 2)
    assert kind_of(TWO_PICTURES, "") == "heic"
    assert sandbox.check(TWO_PICTURES, file_name="IMG_0042.jpg").page_count == 2
    assert [page.warnings for page in sandbox.load(TWO_PICTURES, file_name="a.heic").pages] == [(), ()]
    with Image.open(io.BytesIO(sandbox.draw_page(TURNED, 1, highlight="", scale=2.0))) as shown:
        assert shown.size == (600, 400)
        assert shown.convert("L").getpixel((300, 10)) < 60  # type: ignore[operator]
        assert shown.convert("L").getpixel((300, 380)) > 200  # type: ignore[operator]
    assert sandbox.check_pdf(sandbox.pages_of(TWO_PICTURES, [2])).page_count == 1


def test_a_damaged_or_huge_photograph_of_a_phone_says_so(sandbox: Sandbox) -> None:
    at = TURNED.index(b"ispe") + 8
    says_huge = TURNED[:at] + struct.pack(">II", 30_000, 30_000) + TURNED[at + 8 :]
    with pytest.raises(FileTooLarge, match="more than 80 million pixels"):
        sandbox.check(says_huge, file_name="a.heic")
    for content in (b"\0\0\0\x18ftypheic", TURNED[:300], TWO_PICTURES[:4000]):
        with pytest.raises(FileDamaged, match="picture is damaged"):
            sandbox.load(content, file_name="a.heic")
    assert sandbox.check(TURNED, file_name="a.heic").page_count == 1


def test_where_no_thread_can_start_a_photograph_of_a_phone_is_refused() -> None:
    # Without the filter of system calls a process that may start threads may start processes.
    with closing(Sandbox(ExtractionLimits(), rules=replace(READING, without=frozenset({"seccomp"})))) as sandbox:
        if sandbox.means().get("calls"):
            pytest.skip("here another means forbids processes")
        with pytest.raises(FileKindUnknown, match=r"HEIC.*Save it as JPEG"):
            sandbox.check(TURNED, file_name="a.heic")


@needs_rapidocr
def test_a_photograph_of_a_phone_becomes_searchable(product: Product, admin: Identity, collection: Collection) -> None:
    done = taken_in(product, admin, collection, TWO_PICTURES, "IMG_0042.HEIC")
    assert (done.status, done.page_count, done.mime_type) == (DocumentStatus.COMPLETED, 2, "image/heic")
    pages = product[0].pages("demo", done.id)
    texts = [page.text for page in pages]
    assert [[mark.kind for mark in marks_of(page) or ()] for page in pages] == [["line"], ["line"]]
    assert ("twenty five days" in texts[0], "third day" in texts[1]) == (True, True)
    assert product[0].page_image(admin, done.id, 2).startswith(b"\x89PNG")


def test_a_photograph_is_described_by_a_model(
    model: ChatModel, bill: Bill, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    assert_described("image.heic", TURNED, model, bill, sandbox, provider_standin)
