"""Text recognition that needs nothing installed: RapidOCR with its own models, in a confined process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

import pytest
from PIL import Image, ImageFilter

from rag.errors import DocumentError
from rag.ingestion.loaders.ocr import (
    RAPIDOCR,
    TESSERACT,
    UNREADABLE,
    TextRecognition,
    engine_title,
    has_rapidocr,
    recognition_engine,
)
from rag.ingestion.loaders.sandbox import FoundText, Sandbox, recognition_sandbox_of
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.local_engines import worker_for
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.text.tables import row_in_words, tables_in
from rag.types import Collection, Document, DocumentStatus, Identity, Page
from tests import hostile
from tests.ingestion.scans import ARABIC, columns_of, grid_of, pdf_of, png, scan_of, table_of, worn
from tests.ingestion.uploads import confirmed
from tests.patience import patient

needs_rapidocr = pytest.mark.skipif(worker_for("recognition") is None, reason="RapidOCR is not installed")
LEAVE = (
    "Employees receive twenty five days of paid leave every year. Requests are made two weeks before the leave begins.",
    "A sick note is due on the third day of an illness; call your manager before nine.",
)
GERMAN = (
    "Überstunden werden nur bezahlt, wenn sie zuvor schriftlich angeordnet wurden. Für Beschäftigte über 50 Jahre "
    "beträgt der Jahresurlaub 30 Tage gemäß § 7 Abs. 2."
)
PLANS = (
    ("Plan", "Employee only", "Family"),
    ("Standard", "$45.00", "$78.00"),
    ("Plus", "$55.00", "$89.00"),
    ("Vision", "$4.10", "$9.75"),
)
Read = Callable[[Image.Image], FoundText]


@pytest.fixture(scope="module")
def reader() -> Iterator[Sandbox]:
    limits = replace(ExtractionLimits(), timeout_seconds=patient(120))
    yield recognition_sandbox_of(limits)
    recognition_sandbox_of(limits).close()


@pytest.fixture
def read(reader: Sandbox) -> Read:
    return lambda picture: reader.recognise(png(picture))


def words(text: str) -> list[str]:
    return text.split()


@needs_rapidocr
@pytest.mark.parametrize("degrees", [0.0, 2.0], ids=["straight", "skewed"])
def test_print_is_read_word_for_word(read: Read, degrees: float) -> None:
    found = read(worn(scan_of(*LEAVE), degrees))
    assert words(found.text) == words(" ".join(LEAVE))
    assert (found.unread, found.unsure) == (0, 0)


@needs_rapidocr
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_on_its_side_or_its_head_is_read(read: Read, degrees: int) -> None:
    found = read(scan_of(*LEAVE).rotate(degrees, expand=True))
    assert words(found.text) == words(" ".join(LEAVE))


def parts_with_ink(picture: Image.Image) -> tuple[float, ...]:
    """The box around everything that is printed, as parts of the picture."""
    box = picture.convert("L").point([255 if tone < 128 else 0 for tone in range(256)]).getbbox()
    assert box is not None
    return tuple(edge / size for edge, size in zip(box, picture.size * 2, strict=True))


@needs_rapidocr
@pytest.mark.parametrize("degrees", [0, 2, 90, 180, 270])
def test_each_line_is_marked_where_it_is_on_the_picture(read: Read, degrees: int) -> None:
    picture = scan_of(*LEAVE).rotate(degrees, expand=degrees >= 90, fillcolor=255)
    marks = read(picture).marks
    assert [mark.kind for mark in marks] == ["line"] * 3
    left, top, right, bottom = parts_with_ink(picture)
    assert min(mark.left for mark in marks) == pytest.approx(left, abs=0.01)
    assert min(mark.top for mark in marks) == pytest.approx(top, abs=0.01)
    assert max(mark.right for mark in marks) == pytest.approx(right, abs=0.01)
    assert max(mark.bottom for mark in marks) == pytest.approx(bottom, abs=0.01)


@needs_rapidocr
def test_a_recognised_table_has_one_mark(read: Read) -> None:
    picture = table_of(PLANS, border=0)
    marks = {mark.kind: mark for mark in read(picture).marks}
    assert marks.keys() == {"table", "line"}
    left, _, _, bottom = parts_with_ink(picture)
    assert (marks["table"].left, marks["table"].bottom) == pytest.approx((left, bottom), abs=0.01)
    assert marks["line"].bottom < marks["table"].top


@needs_rapidocr
def test_the_lines_of_a_page_that_cannot_be_read_are_marked_as_left_out(sandbox: Sandbox, reader: Sandbox) -> None:
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=None, rapidocr=reader)
    arabic = pdf_of(scan_of("يحصل الموظفون على خمسة وعشرين يوما من الإجازة المدفوعة كل عام", font=ARABIC))
    pages = sandbox.load(arabic, file_name="a.pdf").pages
    (page,) = recognition.recognise(arabic, pages, language="ar")
    assert page.text == ""
    assert {mark.kind for mark in page.marks or ()} == {"left out"}


@needs_rapidocr
def test_of_a_page_with_text_only_the_lines_in_its_pictures_are_marked(sandbox: Sandbox, reader: Sandbox) -> None:
    content = hostile.pictured_table()
    pages = sandbox.load(content, file_name="a.pdf").pages
    (picture,) = (mark for mark in pages[0].marks or () if mark.kind == "picture")
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=None, rapidocr=reader)
    (page,) = recognition.recognise(content, pages, language="en")
    added = [mark for mark in page.marks or () if mark.kind in ("table", "line", "unsure")]
    assert added
    assert all(picture.top - 0.01 <= mark.top and mark.bottom <= picture.bottom + 0.01 for mark in added)


@needs_rapidocr
def test_umlauts_are_kept(read: Read) -> None:
    assert words(read(worn(scan_of(GERMAN))).text) == words(GERMAN)


@needs_rapidocr
def test_two_columns_are_read_one_after_the_other(read: Read) -> None:
    left, right = " ".join(LEAVE) * 2, GERMAN * 2
    found = words(read(columns_of(left, right)).text)
    assert "".join(found) == "".join(words(left + right))


@needs_rapidocr
@pytest.mark.parametrize("border", [0, 1], ids=["bare", "lined"])
def test_rows_of_a_table_stay_rows(read: Read, border: Literal[0, 1]) -> None:
    (table,) = tables_in(read(worn(table_of(PLANS, border=border))).text)
    assert table.heads is not None
    assert [row_in_words(table.heads.cells, row.cells) for row in table.rows] == [
        "Standard — Employee only: $45.00; Family: $78.00",
        "Plus — Employee only: $55.00; Family: $89.00",
        "Vision — Employee only: $4.10; Family: $9.75",
    ]


WRAPPED = [
    ["Benefit", "Who may have it", "Share"],
    ["Job bike", "Everyone but apprentices, after the trial period of six months", "72"],
    ["Meal card", "", "9"],
    ["Home office", "Nobody who is paid by the hour, whatever the contract says", ""],
]


@needs_rapidocr
@pytest.mark.parametrize("degrees", [0.0, 1.5], ids=["straight", "skewed"])
def test_cells_of_several_lines_and_empty_cells_are_kept_apart_by_lines(read: Read, degrees: float) -> None:
    (table,) = tables_in(read(worn(grid_of(WRAPPED, widths=[30, 60, 20]), degrees)).text)
    assert table.heads is not None
    assert [list(row.cells) for row in (table.heads, *table.rows)] == WRAPPED


@needs_rapidocr
def test_merged_cells_of_a_scan_are_repeated_in_their_rows_and_columns(read: Read) -> None:
    rows = [["Staff", "Notice of", "Leave"], ["employee", "employer"]]
    rows += [["Office", "4 weeks", "8 weeks", "30"], ["2 weeks", "26"]]
    merged = {(0, 0): (1, 2), (0, 1): (2, 1), (0, 2): (1, 2), (2, 0): (1, 2), (2, 1): (1, 2)}
    (table,) = tables_in(read(worn(grid_of(rows, widths=[30, 35, 35, 30], merged=merged))).text)
    assert table.heads is not None
    assert table.heads.cells == ("Staff", "Notice of employee", "Notice of employer", "Leave")
    assert [row.cells for row in table.rows] == [
        ("Office", "4 weeks", "8 weeks", "30"),
        ("Office", "4 weeks", "2 weeks", "26"),
    ]


@needs_rapidocr
def test_narrow_gaps_between_the_columns_of_a_scan_are_kept(read: Read) -> None:
    rows = [["Band", *(f"Step {n}" for n in range(1, 6))]]
    rows += [[f"Band {n}", *(f"{n},{m}2{n}.50" for m in range(1, 6))] for n in range(1, 5)]
    (table,) = tables_in(read(worn(grid_of(rows, widths=[21] * 6, lined=False))).text)
    assert table.heads is not None
    assert [list(row.cells) for row in (table.heads, *table.rows)] == rows


@needs_rapidocr
def test_numbers_that_print_without_a_gap_are_counted_as_uncertain(read: Read) -> None:
    rows = [[f"Band {n}", *(f"{n},{m}2{n}.50" for m in range(1, 6))] for n in range(1, 4)]
    assert read(worn(grid_of(rows, widths=[18] * 6, lined=False))).unsure >= 1
    assert read(worn(grid_of(rows, widths=[30] * 6, lined=False))).unsure == 0


@needs_rapidocr
@pytest.mark.parametrize("picture", [Image.new("L", (800, 800), 255), Image.effect_noise((400, 400), 90)])
def test_a_picture_without_text_has_none(read: Read, picture: Image.Image) -> None:
    assert read(picture).text == ""


@needs_rapidocr
def test_what_is_no_picture_is_refused(reader: Sandbox) -> None:
    with pytest.raises(DocumentError):
        reader.recognise(b"no picture")


@needs_rapidocr
def test_the_process_is_confined_and_ends_when_it_is_not_used(reader: Sandbox) -> None:
    reader.recognise(png(scan_of(*LEAVE)))
    assert reader.known_means is not None
    assert set(reader.known_means) >= {"account", "files", "calls", "network"}
    (process,) = reader._idle
    reader._end_unused(process, process.tasks - 1)
    assert process.is_alive
    reader._end_unused(process, process.tasks)
    assert not process.is_alive
    assert words(reader.recognise(png(scan_of(*LEAVE))).text) == words(" ".join(LEAVE))


ARABIC_LEAVE = "يحق للموظف إجازة سنوية مدفوعة الأجر مدتها ثلاثون يوما في السنة ويقدم الطلب قبل أسبوعين"
RUSSIAN_LEAVE = "Работник имеет право на ежегодный оплачиваемый отпуск продолжительностью 28 календарных дней."
VIETNAMESE_LEAVE = (
    "Người lao động được nghỉ hằng năm mười hai ngày làm việc. Thời giờ làm việc bình thường không quá tám giờ trong "
    "một ngày và bốn mươi tám giờ trong một tuần."
)


#: Prints the files that reading a picture opens in a process that has loaded what it needs.
OPENS = """
import io, sys
from PIL import Image
from rag.integrations.engines.recognition.worker import Reader
reader = Reader()
reader.load()
opened = []
sys.addaudithook(lambda event, arguments: opened.append(arguments[0]) if event == "open" else None)
with Image.open(io.BytesIO(sys.stdin.buffer.read()), formats=("PNG",)) as picture:
    found = reader.read(picture)
print([name for name in opened if isinstance(name, str)], [line.text for line in found.lines])
"""


@needs_rapidocr
def test_nothing_is_loaded_once_the_doors_are_closed() -> None:
    picture = png(scan_of(*LEAVE))
    done = subprocess.run([sys.executable, "-c", OPENS], input=picture, capture_output=True, check=True)
    opened, _, read = done.stdout.decode().partition("] ")
    assert opened == "["
    assert "twenty five days" in read


@needs_rapidocr
@pytest.mark.parametrize(
    ("text", "font"),
    [(ARABIC_LEAVE, {"font": ARABIC}), (RUSSIAN_LEAVE, {}), (VIETNAMESE_LEAVE, {})],
    ids=["arabic", "russian", "vietnamese"],
)
def test_a_script_that_the_models_do_not_know_gives_a_sentence_and_no_rubbish(
    reader: Sandbox, sandbox: Sandbox, text: str, font: dict[str, object]
) -> None:
    content = pdf_of(scan_of(text, **font))  # type: ignore[arg-type]
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=None, rapidocr=reader)
    (page,) = recognition.recognise(content, sandbox.load(content, file_name="a.pdf").pages)
    assert (page.text, page.method) == ("", "none")
    assert page.warnings[-1] == UNREADABLE.format(engine="RapidOCR", providers="Upstage")


@needs_rapidocr
def test_lines_of_another_script_on_a_page_are_counted(reader: Sandbox, sandbox: Sandbox) -> None:
    content = pdf_of(scan_of(*LEAVE, RUSSIAN_LEAVE[:40]))
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=None, rapidocr=reader)
    (page,) = recognition.recognise(content, sandbox.load(content, file_name="a.pdf").pages)
    assert "twenty five days" in page.text
    assert page.warnings[-1].startswith("RapidOCR is not certain about 1 of the 4 lines of this page.")


@needs_rapidocr
def test_a_table_on_a_coloured_ground_is_added_to_the_text_of_its_page(reader: Sandbox, sandbox: Sandbox) -> None:
    content = hostile.pictured_table()
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=None, rapidocr=reader)
    (page,) = recognition.recognise(content, sandbox.load(content, file_name="a.pdf").pages, language="en")
    (table,) = tables_in(page.text)
    assert table.heads is not None
    assert [row_in_words(table.heads.cells, row.cells) for row in table.rows] == [
        "Single — Standard: $45.00; Plus: $55.00",
        "Family — Standard: $78.00; Plus: $89.00",
    ]


@pytest.fixture
def product(
    database: Database, files: FileStore, settings: Settings, sandbox: Sandbox
) -> Iterator[tuple[DocumentLibrary, IngestionPipeline]]:
    """The product with nothing installed and no key."""
    own = replace(settings, recognition="builtin")
    ledger, providers = Ledger(database), Providers(own)
    pipeline = IngestionPipeline(database, files, providers, ledger, own, sandbox=sandbox)
    queue = Queue(database, pipeline)
    yield DocumentLibrary(database, files, providers, own, queue, sandbox=sandbox), pipeline
    providers.close()


def taken_in(
    parts: tuple[DocumentLibrary, IngestionPipeline], admin: Identity, collection: Collection, content: bytes
) -> Document:
    library, pipeline = parts
    document = confirmed(library, admin, collection, content, read=pipeline.run)
    pipeline.run("demo", document.id)
    return library.get("demo", document.id)


@needs_rapidocr
def test_a_newcomers_scan_is_read_without_key_or_program(
    product: tuple[DocumentLibrary, IngestionPipeline], admin: Identity, collection: Collection
) -> None:
    done = taken_in(product, admin, collection, pdf_of(scan_of(*LEAVE), scan_of(GERMAN)))
    assert done.status is DocumentStatus.COMPLETED
    assert float(done.costs["total"]) == 0
    first, second = product[0].pages("demo", done.id)
    assert "twenty five days" in first.text
    assert "Überstunden" in second.text
    assert list(first.warnings) == ["Read by text recognition (RapidOCR)."]


@needs_rapidocr
def test_a_scan_in_a_script_that_is_not_known_says_what_reads_it_and_is_read_again_after(
    product: tuple[DocumentLibrary, IngestionPipeline], admin: Identity, collection: Collection
) -> None:
    library, pipeline = product
    done = taken_in(product, admin, collection, pdf_of(scan_of(RUSSIAN_LEAVE)))
    assert done.status is DocumentStatus.FAILED
    assert "Tesseract with the document's language" in done.message
    assert done.chunk_count == 0
    library.retry(admin, done.id)
    pipeline.run("demo", done.id)
    again = library.get("demo", done.id)
    assert (again.status, again.ocr_pages) == (DocumentStatus.ESTIMATED, [1])


@needs_rapidocr
def test_the_engine_is_chosen_by_key_then_by_what_is_there(settings: Settings) -> None:
    builtin = replace(settings, recognition="builtin")
    assert recognition_engine(replace(builtin, upstage_api_key="key")) == "upstage"
    assert recognition_engine(builtin) == RAPIDOCR
    assert recognition_engine(replace(settings, tesseract="true")) == TESSERACT
    assert recognition_engine(settings) is None
    assert not has_rapidocr(settings)
    assert engine_title(RAPIDOCR) == "RapidOCR"


@needs_rapidocr
def test_faint_print_is_named_rather_than_guessed(reader: Sandbox, sandbox: Sandbox) -> None:
    content = pdf_of(scan_of(*LEAVE).filter(ImageFilter.GaussianBlur(9)))
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=None, rapidocr=reader)
    (page,) = recognition.recognise(content, [Page(number=1, text="", method="none")])
    assert (page.text, page.method) == ("", "none")
    assert page.warnings
