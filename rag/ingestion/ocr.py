"""Text recognition for the pages that need it: by Upstage where its key is set, else by Tesseract where there is one.

Pages in, pages out: the caller decides when, and writes the charges to the ledger.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from rag.ingestion.loaders.page_text import normalise_characters
from rag.ingestion.sandbox import Sandbox
from rag.providers.upstage import PAGES_PER_REQUEST, UpstageParser
from rag.settings import Settings
from rag.types import Page, Usage

PdfType = Literal["auto", "scanned", "digital"]
Engine = Literal["upstage", "tesseract"]
#: Dots per inch divided by 72; Tesseract reads best at about 300 dots per inch.
TESSERACT_SCALE = 4.0
TESSERACT_SECONDS_PER_PAGE = 60
#: Our languages as Tesseract calls them; those that are not installed are left out.
TESSERACT_LANGUAGES = {
    "ar": "ara", "de": "deu", "en": "eng", "es": "spa", "fr": "fra", "it": "ita", "ja": "jpn", "ko": "kor", "nl": "nld",
    "pl": "pol", "pt": "por", "ru": "rus", "tr": "tur", "vi": "vie", "zh": "chi_sim",
}  # fmt: skip
RECOGNISED = "Read by text recognition ({engine})."
NOTHING_FOUND = "Text recognition ({engine}) found no text on this page."


@dataclass(frozen=True)
class RecognisedPages:
    """Pages as recognised, `method` "ocr" where there is text, and what was billed for them, None when nothing."""

    pages: tuple[Page, ...]
    usage: Usage | None


def pages_to_recognise(pages: Sequence[Page], pdf_type: PdfType = "auto") -> list[int]:
    """Numbers of the pages text recognition is for: those without text; of a `scanned` PDF all, of a digital none."""
    if pdf_type == "digital":
        return []
    return [page.number for page in pages if pdf_type == "scanned" or not page.text.strip()]


class TextRecognition:
    """Recognises single pages of a PDF. Thread-safe."""

    def __init__(self, sandbox: Sandbox, *, upstage: UpstageParser | None, tesseract: str | None) -> None:
        self._sandbox = sandbox
        self._upstage = upstage
        self._tesseract = tesseract

    @property
    def engine(self) -> Engine | None:
        """Which engine there is; None leaves the document in the state `needs_ocr`."""
        return "upstage" if self._upstage else "tesseract" if self._tesseract else None

    def recognise(
        self, content: bytes, pages: Sequence[Page], numbers: Sequence[int], *, language: str = ""
    ) -> Iterator[RecognisedPages]:
        """The given pages of a PDF, in batches: each can be stored, and its usage charged, before the next is paid.

        Nothing is yielded without an engine. Raises `ProviderError`s and `DocumentError`s.
        """
        by_number = {page.number: page for page in pages}
        wanted = [number for number in numbers if number in by_number]
        engine = self.engine
        if engine is None:
            return
        size = PAGES_PER_REQUEST if self._upstage else 1
        for first in range(0, len(wanted), size):
            batch = wanted[first : first + size]
            texts, usage = (
                self._by_upstage(content, batch) if self._upstage else self._by_tesseract(content, batch, language)
            )
            read = tuple(_recognised(by_number[number], texts.get(number, ""), engine) for number in batch)
            yield RecognisedPages(read, usage)

    def _by_upstage(self, content: bytes, numbers: Sequence[int]) -> tuple[dict[int, str], Usage | None]:
        assert self._upstage is not None  # noqa: S101
        parsed = self._upstage.parse(self._sandbox.pages_of(content, numbers), len(numbers))
        return {numbers[place - 1]: text for place, text in parsed.texts.items()}, parsed.usage

    def _by_tesseract(
        self, content: bytes, numbers: Sequence[int], language: str
    ) -> tuple[dict[int, str], Usage | None]:
        assert self._tesseract is not None  # noqa: S101
        languages = tesseract_languages(self._tesseract, language)
        texts = {}
        for number in numbers:
            picture = self._sandbox.draw_page(content, number, highlight="", scale=TESSERACT_SCALE)
            texts[number] = run_tesseract(self._tesseract, picture, languages)
        return texts, None


def text_recognition(settings: Settings, sandbox: Sandbox) -> TextRecognition:
    """What this installation can recognise text with."""
    upstage = None
    if settings.upstage_api_key:
        upstage = UpstageParser(api_key=settings.upstage_api_key, base_url=settings.upstage_base_url)
    return TextRecognition(sandbox, upstage=upstage, tesseract=shutil.which("tesseract"))


def with_recognised(pages: Sequence[Page], recognised: Sequence[Page]) -> tuple[Page, ...]:
    """All pages, those recognised in the place of what they were."""
    by_number = {page.number: page for page in recognised}
    return tuple(by_number.get(page.number, page) for page in pages)


def run_tesseract(
    program: str,
    picture: bytes,
    languages: str,
    *,
    run: Callable[..., subprocess.CompletedProcess[bytes]] = subprocess.run,
) -> str:
    """The text Tesseract finds in a picture; empty when it fails on it."""
    command = [program, "stdin", "stdout", "-l", languages, "--psm", "3"]
    try:
        done = run(command, input=picture, capture_output=True, timeout=TESSERACT_SECONDS_PER_PAGE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


@cache
def tesseract_languages(program: str, language: str) -> str:
    """The document's language and English, as far as they are installed."""
    try:
        listed = subprocess.run([program, "--list-langs"], capture_output=True, timeout=10, check=False)  # noqa: S603
        installed = set(listed.stdout.decode("utf-8", "replace").split())
    except (OSError, subprocess.TimeoutExpired):
        installed = set()
    wanted = dict.fromkeys((TESSERACT_LANGUAGES.get(language, "eng"), "eng"))
    return "+".join(name for name in wanted if name in installed) or "eng"


def _recognised(page: Page, text: str, engine: Engine) -> Page:
    text = normalise_characters(text).strip("\n ")
    sentence = (RECOGNISED if text else NOTHING_FOUND).format(engine=engine.capitalize())
    return replace(page, text=text, method="ocr" if text else "none", warnings=(*page.warnings, sentence))
