"""Recognise the text on scanned pages, with a configured provider or on this machine.

On this machine, RapidOCR uses the models in its package. Tesseract, if installed, reads the scripts which these models
do not know. The caller chooses the pages.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from rag.errors import SettingsError
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.page_tables import PageTable, RulingLines, Word, tables_among
from rag.ingestion.loaders.page_text import BLANK_PAGE, PICTURED_PAGE
from rag.ingestion.loaders.pdf_objects import Box
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import marks_from_json
from rag.language import N_
from rag.money.durable_calls import DurableRecogniser, Receipt
from rag.providers import TextRecogniser
from rag.providers.local_engines import worker_for
from rag.sandbox.confinement import confined_program, confinement, program_environment, program_rules
from rag.settings import Settings
from rag.settings.providers import BY_NAME, provider_name, titles_for
from rag.text.spans import page_starts
from rag.types import MOST_MARKS, Page, PageMark, PdfType, Section, Usage

#: The engines on this machine; all others are providers by name.
RAPIDOCR, TESSERACT = "rapidocr", "tesseract"
LOCAL = {RAPIDOCR: "RapidOCR", TESSERACT: "Tesseract"}
#: Dots per inch divided by 72; lines are read 48 pixels high, the height of a 12-point letter at 200 dots per inch.
RAPIDOCR_SCALE = 200 / 72
#: Languages with letters unknown to RapidOCR's models.
UNKNOWN_TO_RAPIDOCR = frozenset({"ar", "ko", "ru", "vi"})
#: The largest unread or uncertain share of a page, by width of lines. The text of a worse page is dropped, because
#: rubbish would be searched and quoted.
MOST_DOUBT = 0.5
#: Dots per inch divided by 72; Tesseract reads best at about 300 dots per inch.
TESSERACT_SCALE = 4.0
TESSERACT_SECONDS_PER_PAGE = 60
#: Tesseract's page layouts: automatic, or line by line across, so that table rows stay whole.
LAYOUT, LAYOUT_OF_ROWS = "3", "6"
#: Our languages by Tesseract's names; missing languages are left out.
TESSERACT_LANGUAGES = {
    "ar": "ara", "de": "deu", "en": "eng", "es": "spa", "fr": "fra", "it": "ita", "ja": "jpn", "ko": "kor", "nl": "nld",
    "pl": "pol", "pt": "por", "ru": "rus", "tr": "tur", "vi": "vie", "zh": "chi_sim",
}  # fmt: skip
#: Vietnamese letters, and their smallest share in a Vietnamese text. RapidOCR reads these letters, drops letters with
#: two marks, and reports no doubt.
VIETNAMESE, VIETNAMESE_SHARE = re.compile("[ươƯƠ]"), 0.005
RECOGNISED = N_("Read by text recognition ({engine}).")
ADDED = N_(
    "Text + recognised: text recognition ({engine}) also read the pictures of this page. Their text is at the end."
)
NOTHING_ADDED = N_("Text recognition ({engine}) found no further text in the pictures of this page.")
#: A line is known if the page's text has this share of its runs of words, because a letter may be misread.
LEAST_IN_TEXT, RUN = 0.5, 3
WORD = re.compile(r"\w+")
#: Ruling lines read as letters.
FRAME = re.compile(r"^[|\s]+|[|\s]+$")
#: Separates the cells in a row.
CELL_EDGE = " | "
NO_ENGINE = N_(
    "Text recognition is not available: paste a key of {providers} on the page Set-up, or install Tesseract, and try "
    "again."
).format(providers=titles_for("ocr"))
UNREADABLE = N_(
    "{engine} cannot read this page: the script is not supported, or the print is too faint. Paste a key of "
    "{providers} on the page Set-up, or install Tesseract with the document's language on the server. Then "
    "read the document again."
)
UNSURE = N_(
    "{engine} is not certain about {count} of the {total} lines of this page. Compare them with the page before you "
    "rely on them."
)
NOTHING_FOUND = N_("Text recognition ({engine}) found no text on this page.")


def pages_to_recognise(pages: Sequence[Page], pdf_type: PdfType = "auto") -> list[int]:
    """Return the numbers of pages without text, and of pages with a large image in addition to text.

    For a `scanned` PDF, all pages are returned, for a `digital` PDF none. Blank pages are left out, because recognition
    would cost money without finding text.
    """
    if pdf_type == "digital":
        return []
    return [
        page.number
        for page in pages
        if BLANK_PAGE not in page.warnings
        and (pdf_type == "scanned" or not page.text.strip() or PICTURED_PAGE in page.warnings)
    ]


def recognition_engine(settings: Settings) -> str | None:
    """Choose this installation's engine: the provider, else RapidOCR, else Tesseract, else `None`."""
    provider = settings.provider_for("ocr")
    return provider or (RAPIDOCR if has_rapidocr(settings) else TESSERACT if tesseract_program(settings) else None)


def engine_title(engine: str) -> str:
    """Return the engine's name as shown to people."""
    return LOCAL.get(engine) or provider_name(engine)


def tesseract_program(settings: Settings) -> str | None:
    return None if settings.tesseract == "none" else shutil.which(settings.tesseract)


def has_rapidocr(settings: Settings) -> bool:
    """Whether RapidOCR is installed and turned on. RapidOCR does not exist for all systems."""
    return settings.recognition == "builtin" and worker_for("recognition") is not None


def expected_usage(engine: str | None, pages: int) -> Usage | None:
    """Return the usage billed for this many pages, or `None` if recognition is free."""
    if engine is None or engine in LOCAL or not pages:
        return None
    return Usage(provider=engine, model=BY_NAME[engine].models["ocr"], pages=pages)


class TextRecognition:
    """Recognises single pages in a PDF. Thread-safe."""

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        provider: Callable[[], TextRecogniser | None],
        tesseract: str | None,
        rapidocr: Sandbox | None = None,
    ) -> None:
        """`provider` returns a cloud provider's recogniser. `tesseract` is the program's name, and `rapidocr` the
        sandbox.

        Each may be `None` if missing.
        """
        self._sandbox = sandbox
        self._provider = provider
        self._tesseract = tesseract
        self._rapidocr = rapidocr

    @property
    def provider(self) -> TextRecogniser | None:
        """Return the provider's recogniser. Returns `None` without a key: RapidOCR or Tesseract is then used, if
        installed.
        """
        return self._provider()

    @property
    def engine(self) -> str | None:
        """Return the engine's name, or `None` without an engine. Documents then stay in the state `needs_ocr`."""
        provider = self.provider
        return provider.provider if provider else self._local_engine("")

    def interrupt(self) -> None:
        """Stop RapidOCR. The callers get `ReadingTookTooLong`."""
        if self._rapidocr is not None:
            self._rapidocr.interrupt()

    def _local_engine(self, language: str) -> str | None:
        if self._rapidocr is None:
            return TESSERACT if self._tesseract else None
        if self._tesseract and language in UNKNOWN_TO_RAPIDOCR:
            has_language = TESSERACT_LANGUAGES[language] in tesseract_languages(self._tesseract, language).split("+")
            return TESSERACT if has_language else RAPIDOCR
        return RAPIDOCR

    def batches(self, numbers: Sequence[int]) -> list[list[int]]:
        """Divide page numbers into batches, each for a single call to the engine."""
        provider = self.provider
        size = provider.pages_per_request if provider else 1
        return [list(numbers[first : first + size]) for first in range(0, len(numbers), size)]

    def recognise(
        self,
        content: bytes,
        pages: Sequence[Page],
        *,
        language: str = "",
        tenant_id: str = "",
        receipt: Receipt | None = None,
    ) -> tuple[Page, ...]:
        """Recognise the text on some pages of a PDF, and return these pages. A page with text gets the `method` "ocr".

        `receipt` records the call to a provider. Raises `ProviderError`s, `DocumentError`s and, without an engine,
        `SettingsError`.
        """
        provider = self.provider
        if provider is not None:
            numbers = [page.number for page in pages]
            document = self._sandbox.pages_of(content, numbers, tenant_id=tenant_id)
            engine = provider if receipt is None else DurableRecogniser(provider, receipt)
            texts = engine.parse(document, len(numbers)).texts
            return tuple(recognised(page, texts.get(n, ""), provider.provider) for n, page in enumerate(pages, 1))
        local = self._local_engine(language)
        if local is None:
            raise SettingsError(NO_ENGINE)
        read_page = self._by_tesseract if local == TESSERACT else self._by_rapidocr
        return tuple(read_page(content, page, language, tenant_id) for page in pages)

    def _by_rapidocr(self, content: bytes, page: Page, language: str, tenant_id: str) -> Page:
        assert self._rapidocr is not None  # noqa: S101
        picture = self._sandbox.draw_page(content, page.number, highlight="", scale=RAPIDOCR_SCALE, tenant_id=tenant_id)
        result = self._rapidocr.recognise(picture, tenant_id=tenant_id)
        doubtful = result.unread + result.unsure
        is_vietnamese = len(VIETNAMESE.findall(result.text)) > VIETNAMESE_SHARE * len(result.text)
        if result.doubt > MOST_DOUBT or is_vietnamese:
            marks = tuple(replace(mark, kind="left out") for mark in result.marks)
            return replace(page, warnings=(*page.warnings, _unreadable()), marks=_merge_marks(page, marks))
        read = recognised(page, result.text, RAPIDOCR, result.marks)
        if not doubtful:
            return read
        unsure = UNSURE.format(engine=LOCAL[RAPIDOCR], count=doubtful, total=result.lines)
        return replace(read, warnings=(*read.warnings, unsure))

    def _by_tesseract(self, content: bytes, page: Page, language: str, tenant_id: str) -> Page:
        assert self._tesseract is not None  # noqa: S101
        ink = PICTURED_PAGE in page.warnings
        picture = self._sandbox.draw_page(
            content, page.number, highlight="", scale=TESSERACT_SCALE, ink=ink, tenant_id=tenant_id
        )
        layout = LAYOUT_OF_ROWS if ink else LAYOUT
        languages = tesseract_languages(self._tesseract, language)
        text, marks = run_tesseract(self._tesseract, picture, languages, layout=layout)
        return recognised(page, text, TESSERACT, marks)


def unread_reasons(pages: Sequence[Page]) -> Iterator[str]:
    """Yield the warnings on these pages about text which RapidOCR could not read."""
    unreadable = _unreadable()
    return (warning for page in pages for warning in page.warnings if warning == unreadable)


def _unreadable() -> str:
    return UNREADABLE.format(engine=LOCAL[RAPIDOCR], providers=titles_for("ocr"))


def with_recognised(pages: Sequence[Page], read: Sequence[Page]) -> tuple[Page, ...]:
    """Replace pages by their recognised versions."""
    by_number = {page.number: page for page in read}
    return tuple(by_number.get(page.number, page) for page in pages)


def moved_sections(sections: Sequence[Section], before: Sequence[Page], after: Sequence[Page]) -> tuple[Section, ...]:
    """Return the sections with new start positions, after the text on some pages has changed.

    On a changed page, a section starts at the section's title.
    """
    old, new = page_starts(before), page_starts(after)
    places = {page.number: index for index, page in enumerate(before)}
    moved = []
    for section in sections:
        index = places[section.page]
        start = section.start - old[index]
        # Added text moves nothing on the page.
        if not before[index].text or not after[index].text.startswith(before[index].text):
            start = max(after[index].text.find(section.title), 0)
        moved.append(replace(section, start=new[index] + start))
    return tuple(sorted(moved, key=lambda section: section.start))


def run_tesseract(
    program: str,
    picture: bytes,
    languages: str,
    *,
    layout: str = LAYOUT,
    run: Callable[..., subprocess.CompletedProcess[bytes]] = subprocess.run,
) -> tuple[str, tuple[PageMark, ...]]:
    """Recognise the text in an image with Tesseract. Returns the text, with tables in rows, and boxes around lines and
    tables.

    Both are empty on failure.
    """
    arguments = ["stdin", "stdout", "-l", languages, "--psm", layout, "tsv"]
    return text_of(confined_output(program, arguments, picture, TESSERACT_SECONDS_PER_PAGE, run=run), TESSERACT_SCALE)


def confined_output(
    program: str,
    arguments: Sequence[str],
    content: bytes,
    seconds: float,
    *,
    run: Callable[..., subprocess.CompletedProcess[bytes]] = subprocess.run,
) -> str:
    """Run a program and return the output, or "" on failure. Only the input, libraries and models can be read."""
    with confinement(program_rules(Path(program))) as ready:
        try:
            done = run(
                confined_program(ready, program, arguments),
                input=content,
                capture_output=True,
                timeout=seconds,
                check=False,
                env=program_environment(),
                pass_fds=ready.descriptors,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


@cache
def tesseract_languages(program: str, language: str) -> str:
    """Return the document's language and English in Tesseract's notation. Languages which are not installed are left
    out.
    """
    installed = set(confined_output(program, ["--list-langs"], b"", 10).split())
    requested = dict.fromkeys((TESSERACT_LANGUAGES.get(language, "eng"), "eng"))
    return "+".join(name for name in requested if name in installed) or "eng"


def recognised(page: Page, text: str, engine: str, marks: tuple[PageMark, ...] | None = None) -> Page:
    """Add recognised text to a page, below the existing text if there is any.

    `marks` are boxes around recognised lines and tables, or `None` if unknown.
    """
    text = normalise_characters(text).strip("\n ")
    name = engine_title(engine)
    if PICTURED_PAGE in page.warnings and page.text.strip():
        added = _new_lines(page.text, text)
        warnings = tuple(warning for warning in page.warnings if warning != PICTURED_PAGE)
        sentence = (ADDED if added else NOTHING_ADDED).format(engine=name)
        text = f"{page.text}\n\n{added}" if added else page.text
        return replace(page, text=text, warnings=(*warnings, sentence), marks=_merge_marks(page, marks))
    sentence = (RECOGNISED if text else NOTHING_FOUND).format(engine=name)
    warnings = (*page.warnings, sentence)
    return replace(page, text=text, method="ocr" if text else "none", warnings=warnings, marks=marks)


def _merge_marks(page: Page, recognised_marks: tuple[PageMark, ...] | None) -> tuple[PageMark, ...] | None:
    if recognised_marks is None or page.marks is None:
        return page.marks if page.text.strip() else recognised_marks
    pictures = [mark for mark in page.marks if mark.kind == "picture"]
    page_marks = [mark for mark in page.marks if mark.kind != "picture"]
    within = [mark for mark in recognised_marks if any(_is_within(mark, picture) for picture in pictures)]
    return tuple((*page_marks, *within)[:MOST_MARKS])


def _is_within(mark: PageMark, picture: PageMark) -> bool:
    x, y = (mark.left + mark.right) / 2, (mark.top + mark.bottom) / 2
    return picture.left <= x <= picture.right and picture.top <= y <= picture.bottom


def _new_lines(page_text: str, text: str) -> str:
    """Return the recognised lines which are not yet in the page's text.

    If a table has a new row, the whole table is returned.
    """
    words = WORD.findall(page_text.casefold())
    runs = {tuple(words[place : place + size]) for size in (1, 2, RUN) for place in range(len(words) - size + 1)}
    news: list[str] = []
    for is_table, lines in groupby(map(_remove_frame, text.split("\n")), key=lambda line: CELL_EDGE in line):
        rows = list(lines)
        if is_table:
            news += rows if any(_is_new(row, runs) for row in rows) else []
            continue
        for line in rows:
            if _is_new(line, runs):
                news.append(line)
            elif not line.strip() and news and news[-1]:
                news.append("")
    return "\n".join(news).strip("\n")


def _remove_frame(line: str) -> str:
    """Remove "|" at both ends of a line, which is a table's border. A row's empty first cell is kept."""
    bare = FRAME.sub("", line)
    return line.rstrip() if CELL_EDGE in bare else bare


def _is_new(line: str, runs: set[tuple[str, ...]]) -> bool:
    line_words = WORD.findall(line.casefold())
    size = min(RUN, len(line_words))
    line_runs = (
        [tuple(line_words[place : place + size]) for place in range(len(line_words) - size + 1)] if line_words else []
    )
    return sum(run in runs for run in line_runs) < LEAST_IN_TEXT * len(line_runs)


#: The start of Tesseract's table of words.
FIRST_COLUMN = "level\t"
#: Ruling lines read as letters.
RULING_LINE = re.compile(r"[|\[\]_—–=-]+")
#: The largest gap between table rows, in heights of their letters: pictures pad their cells, and recognised boxes end
#: at the ink.
ROW_GAP = 5.0
#: Scripts written without spaces between words.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True)
class TesseractLine:
    """A line in Tesseract's output, with its paragraph."""

    paragraph: tuple[str, str]
    words: tuple[Word, ...]

    @property
    def box(self) -> Box:
        _, bottom, _, top = self.words[0].box
        return min(word.box[0] for word in self.words), bottom, max(word.box[2] for word in self.words), top

    @property
    def text(self) -> str:
        text = ""
        for word in self.words:
            is_joined = not text or (UNSPACED.match(text[-1]) and UNSPACED.match(word.text[:1]))
            text += word.text if is_joined else f" {word.text}"
        return text


def text_of(output: str, scale: float) -> tuple[str, tuple[PageMark, ...]]:
    """Convert Tesseract's TSV output to text, and to boxes around lines and tables. `scale` is in pixels per point.

    Output in any other format is already text, and is returned without boxes.
    """
    if not output.startswith(FIRST_COLUMN):
        return output, ()
    lines, size = _lines(output, scale)
    tables = tables_among([word for line in lines for word in line.words], RulingLines((), ()), row_gap=ROW_GAP)
    text_lines: list[str] = []
    written_tables: set[int] = set()
    marks = [("table", table.box) for table in tables]
    paragraph: tuple[str, str] | None = None
    for line in lines:
        place = next((n for n, table in enumerate(tables) if _is_in(line, table)), None)
        if place is None:
            if text_lines and paragraph not in (None, line.paragraph):
                text_lines.append("")
            text_lines.append(line.text)
            marks.append(("line", line.box))
            paragraph = line.paragraph
        elif place not in written_tables:
            written_tables.add(place)
            text_lines += ["", *tables[place].lines(), ""]
            paragraph = None
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(text_lines)).strip("\n")
    return text, marks_from_json([_mark(kind, box, *size) for kind, box in marks]) or ()


def _mark(kind: str, box: Box, width: float, height: float) -> dict[str, Any]:
    left, bottom, right, top = box
    parts = {"left": left / width, "top": -top / height, "right": right / width, "bottom": -bottom / height}
    return {"kind": kind, **{edge: round(min(max(part, 0.0), 1.0), 4) for edge, part in parts.items()}}


def _lines(output: str, scale: float) -> tuple[list[TesseractLine], tuple[float, float]]:
    """Parse Tesseract's TSV output. Returns the lines and the page size, both in points."""
    size = 1.0, 1.0
    by_line: dict[tuple[str, str, str], list[Word]] = {}
    for row in csv.DictReader(output.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        text = (row.get("text") or "").strip()
        left, top, width, height = (int(row[name]) / scale for name in ("left", "top", "width", "height"))
        if row["level"] == "1":
            size = max(width, 1.0), max(height, 1.0)
        if row["level"] != "5" or not text:
            continue
        key = (row["block_num"], row["par_num"], row["line_num"])
        by_line.setdefault(key, []).append(Word(text, (left, -top - height, left + width, -top)))
    lines = []
    for key, words in by_line.items():
        # A ruling line beside the words is as tall as the row.
        text_words = [word for word in words if not RULING_LINE.fullmatch(word.text)] or words
        bottom, top = min(word.box[1] for word in text_words), max(word.box[3] for word in text_words)
        lines.append(TesseractLine(key[:2], tuple(Word(w.text, (w.box[0], bottom, w.box[2], top)) for w in text_words)))
    return lines, size


def _is_in(line: TesseractLine, table: PageTable) -> bool:
    left, bottom, right, top = table.box
    is_within = all(left - 1 <= word.box[0] and word.box[2] <= right + 1 for word in line.words)
    return is_within and bottom <= line.words[0].middle <= top
