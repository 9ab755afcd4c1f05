from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path

import httpx
import pytest

from rag.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    SettingsError,
)
from rag.ingestion.loaders.ocr import (
    TextRecognition,
    moved_sections,
    pages_to_recognise,
    recognised,
    run_tesseract,
    text_of,
    with_recognised,
)
from rag.ingestion.loaders.page_text import PICTURED_PAGE
from rag.ingestion.loaders.sandbox import Sandbox
from rag.money.price_list import charge
from rag.providers import ParsedPages, TextRecogniser
from rag.providers.retry import retry_after
from rag.providers.upstage import UpstageParser
from rag.text.tables import row_in_words, tables_in
from rag.types import Page, Section, Usage
from tests import hostile
from tests.patience import patient
from tests.standins.providers import ProviderStandin


@pytest.fixture
def upstage(provider_standin: ProviderStandin) -> Iterator[UpstageParser]:
    parser = UpstageParser(
        api_key="key", base_url=f"http://127.0.0.1:{provider_standin.port}", client=httpx.Client(timeout=patient(5))
    )
    yield parser
    parser.close()


class CountingRecogniser:
    """Recognises with another, and keeps what each call used."""

    def __init__(self, inner: TextRecogniser) -> None:
        self.provider, self.model, self.pages_per_request = inner.provider, inner.model, inner.pages_per_request
        self.usages: list[Usage] = []
        self._inner = inner

    def parse(self, content: bytes, page_count: int) -> ParsedPages:
        parsed = self._inner.parse(content, page_count)
        self.usages.append(parsed.usage)
        return parsed


def test_only_the_pages_without_text_of_a_mixed_pdf_are_recognised_and_paid(
    upstage: UpstageParser, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    content = hostile.partly_scanned()
    pages = sandbox.load(content, file_name="a.pdf").pages
    counting = CountingRecogniser(upstage)
    recognition = TextRecognition(sandbox, provider=lambda: counting, tesseract=None)
    wanted = pages_to_recognise(pages)
    read = recognition.recognise(content, [page for page in pages if page.number in wanted])
    whole = with_recognised(pages, read)
    assert [page.method for page in whole] == ["text", "ocr", "text"]
    assert whole[1].text == "Recognised text 1 of 1."
    assert "Upstage" in whole[1].warnings[-1]
    (usage,) = counting.usages
    assert usage.pages == 1
    assert charge("ocr", usage).cost == Decimal("0.01")
    assert provider_standin.usages == [{"endpoint": "ocr", "model": "document-parse", "pages": 1}]


def test_the_kind_of_pdf_decides_which_pages_are_recognised() -> None:
    pages = [Page(number=1, text="text"), Page(number=2, text=" ", method="none")]
    assert pages_to_recognise(pages) == [2]
    assert pages_to_recognise(pages, "scanned") == [1, 2]
    assert pages_to_recognise(pages, "digital") == []


def test_a_page_that_shows_nothing_is_not_paid_for(sandbox: Sandbox) -> None:
    pages = sandbox.load(hostile.blank_pages(2), file_name="a.pdf").pages
    assert [page.warnings for page in pages] == [("This page is blank.",)] * 2
    assert pages_to_recognise(pages, "scanned") == []
    scanned = sandbox.load(hostile.image_only(), file_name="a.pdf").pages
    assert pages_to_recognise(scanned) == [1]


def test_a_page_with_text_and_a_table_drawn_as_a_picture_is_recognised_and_keeps_its_own_text(
    upstage: UpstageParser, sandbox: Sandbox
) -> None:
    content = hostile.pictured_table()
    pages = sandbox.load(content, file_name="a.pdf").pages
    assert pages_to_recognise(pages) == [1]
    assert pages_to_recognise(pages, "digital") == []
    counting = CountingRecogniser(upstage)
    recognition = TextRecognition(sandbox, provider=lambda: counting, tesseract=None)
    (page,) = recognition.recognise(content, pages)
    (usage,) = counting.usages
    assert charge("ocr", usage).cost == Decimal("0.01")
    assert page.method == "text"
    assert page.text.startswith(pages[0].text)
    assert page.text.endswith("Recognised text 1 of 1.")
    assert page.warnings[-1].startswith("Text + recognised")
    sections = (Section(title="Costs", level=1, page=1, start=3),)
    assert moved_sections(sections, pages, [page]) == sections


def test_lines_that_a_page_has_already_are_not_added_to_it() -> None:
    page = Page(number=1, text="The table below shows what each of the plans costs a month.", warnings=(PICTURED_PAGE,))
    read = "The table bel0w shows what each of the plans costs a month.\n\n| Standard Plus |\n| Family $78.00 $89.00 |"
    assert recognised(page, read, "tesseract").text == f"{page.text}\n\nStandard Plus\nFamily $78.00 $89.00"
    nothing = recognised(page, page.text, "tesseract")
    assert nothing.text == page.text
    assert nothing.warnings == ("Text recognition (Tesseract) found no further text in the pictures of this page.",)


@pytest.mark.parametrize("kind", ["logo", "photograph", "background"])
def test_a_picture_that_holds_no_text_is_not_paid_for(sandbox: Sandbox, kind: str) -> None:
    pages = sandbox.load(hostile.pictured(kind), file_name="a.pdf").pages
    assert pages_to_recognise(pages) == []


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")
def test_tesseract_reads_a_table_on_a_coloured_ground(sandbox: Sandbox) -> None:
    content = hostile.pictured_table()
    pages = sandbox.load(content, file_name="a.pdf").pages
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=shutil.which("tesseract"))
    (page,) = recognition.recognise(content, pages, language="en")
    (table,) = tables_in(page.text)
    assert table.heads is not None
    assert [row_in_words(table.heads.cells, row.cells) for row in table.rows] == [
        "Single — Standard: $45.00; Plus: $55.00",
        "Family — Standard: $78.00; Plus: $89.00",
    ]


def found_words(*lines: tuple[int, str]) -> str:
    """What Tesseract prints for lines, each at its height; two blanks part what stands in different columns."""
    printed = ["level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"]
    printed.append("1\t1\t0\t0\t0\t0\t0\t0\t2400\t1200\t-1\t")
    for number, (top, line) in enumerate(lines, 1):
        for place, part in enumerate(line.split("  ")):
            left = 300 + 700 * place
            for word in part.split():
                width = 20 * len(word)
                printed.append(f"5\t1\t{number}\t1\t1\t1\t{left}\t{top}\t{width}\t40\t95\t{word}")
                left += width + 12
    return "\n".join(printed)


def test_words_that_tesseract_found_become_rows_by_their_places() -> None:
    output = found_words(
        (100, "The table shows what the plans cost a month, for one and for all of a family."),
        (400, "|  Standard  Health Plus"),
        (550, "Employee Only  $45.00  $55.00"),
        (700, "Employee +2 or  $78.00  $89.00"),
        (760, "more"),
        (1100, "Ask the People Team for the rest of it."),
    )
    text, marks = text_of(output, 4.0)
    assert text == (
        "The table shows what the plans cost a month, for one and for all of a family.\n\n"
        " | Standard | Health Plus\nEmployee Only | $45.00 | $55.00\nEmployee +2 or more | $78.00 | $89.00\n\n"
        "Ask the People Team for the rest of it."
    )
    assert [mark.kind for mark in marks] == ["table", "line", "line"]
    table, first, _ = marks
    assert (table.left, table.top, table.bottom) == pytest.approx((300 / 2400, 400 / 1200, 800 / 1200), abs=0.01)
    assert (first.left, first.top, first.bottom) == (300 / 2400, round(100 / 1200, 4), round(140 / 1200, 4))
    assert text_of("Plain text.", 4.0) == ("Plain text.", ())


def test_a_table_that_says_something_new_keeps_its_heads() -> None:
    own = "Standard, Plus: the plans of the company are Standard and Plus."
    page = Page(number=1, text=own, warnings=(PICTURED_PAGE,))
    table = " | Standard | Plus\nSingle | $45.00 | $55.00\nFamily | $78.00 | $89.00"
    assert recognised(page, f"{own}\n\n{table}", "tesseract").text == f"{own}\n\n{table.strip()}"


def test_sections_stay_with_their_text_when_a_page_before_them_gets_some() -> None:
    before = [Page(number=1, text=""), Page(number=2, text="Leave\n25 days")]
    after = [Page(number=1, text="Recognised"), before[1]]
    sections = (Section(title="Leave", level=1, page=2, start=1),)
    (moved,) = moved_sections(sections, before, after)
    assert "\n".join(page.text for page in after)[moved.start :].startswith("Leave")


def test_a_long_scan_is_sent_in_batches_that_keep_their_page_numbers(
    upstage: UpstageParser, sandbox: Sandbox, provider_standin: ProviderStandin
) -> None:
    pages = [Page(number=number, text="", method="none") for number in range(1, 61)]
    recognition = TextRecognition(sandbox, provider=lambda: upstage, tesseract=None)
    batches = [
        recognition.recognise(hostile.blank_pages(60), [pages[number - 1] for number in numbers])
        for numbers in recognition.batches([page.number for page in pages])
    ]
    assert [len(batch) for batch in batches] == [50, 10]
    assert batches[1][0].number == 51
    assert batches[1][0].text == "Recognised text 1 of 10."
    assert provider_standin.calls["ocr"] == 2


def test_without_key_and_program_nothing_is_recognised(sandbox: Sandbox) -> None:
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=None)
    assert recognition.engine is None
    with pytest.raises(SettingsError, match="paste a key of Upstage on the page Set-up"):
        recognition.recognise(b"", [Page(number=1, text="")])


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, ProviderKeyRejected), (429, ProviderQuotaExhausted), (503, ProviderUnavailable), (422, ProviderError)],
)
def test_errors_of_upstage_become_ours(
    status: int, error: type[ProviderError], upstage: UpstageParser, provider_standin: ProviderStandin
) -> None:
    provider_standin.fail_next(status, headers={"retry-after": "9"})
    with pytest.raises(error) as raised:
        upstage.parse(hostile.image_only(), 1)
    assert raised.value.details.get("retry_after_seconds") == (9.0 if status in (429, 503) else None)


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [(timedelta(minutes=30), 1500, 1800), ("inf", 0, 0), ("x", 0, 0)],
    ids=["a_date", "for_ever", "nothing_that_can_be_read"],
)
def test_upstage_is_given_the_pause_that_it_asks_for_in_any_form(
    asked: str | timedelta, least: int, most: int, upstage: UpstageParser, provider_standin: ProviderStandin
) -> None:
    if isinstance(asked, timedelta):
        asked = format_datetime(datetime.now(UTC) + asked, usegmt=True)
    provider_standin.fail_next(429, headers={"retry-after": asked})
    with pytest.raises(ProviderQuotaExhausted) as raised:
        upstage.parse(hostile.image_only(), 1)
    assert least <= retry_after(raised.value) <= most


def test_an_answer_that_cannot_be_read_and_a_broken_connection_are_told(
    upstage: UpstageParser, provider_standin: ProviderStandin
) -> None:
    provider_standin.garbage_next()
    with pytest.raises(ProviderAnswerInvalid):
        upstage.parse(hostile.image_only(), 1)
    provider_standin.close_next()
    with pytest.raises(ProviderUnavailable):
        upstage.parse(hostile.image_only(), 1)


def test_tables_keep_a_row_a_line() -> None:
    answer = {
        "elements": [
            {
                "page": 1,
                "category": "table",
                "content": {"html": "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr>"},
            }
        ]
    }
    client = httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200, json=answer)))
    assert UpstageParser(api_key="k", base_url="http://x", client=client).parse(b"", 1).texts == {1: "a | b\nc"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every account may enter, as a program's is; that of a test is closed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_tesseract_is_given_the_drawn_page_and_its_language(open_folder: Path, sandbox: Sandbox) -> None:
    program = open_folder / "tesseract"
    # It can start no other program.
    program.write_text(
        '#!/bin/sh\nif [ "$1" = --list-langs ]; then echo eng; echo kor; exit; fi\nread -r head\n'
        'case "$head" in *PNG*) echo "PNG $4";; esac\n'
    )
    program.chmod(0o755)
    page = Page(number=1, text="", method="none")
    recognition = TextRecognition(sandbox, provider=lambda: None, tesseract=str(program))
    (read,) = recognition.recognise(hostile.image_only(), [page], language="ko")
    assert read.text == "PNG kor+eng"


def test_a_tesseract_that_fails_leaves_the_page_empty() -> None:
    def fail(*arguments: object, **options: object) -> subprocess.CompletedProcess[bytes]:
        raise subprocess.TimeoutExpired("tesseract", 1)

    assert run_tesseract("tesseract", b"", "eng", run=fail) == ("", ())
