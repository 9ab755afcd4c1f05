"""A PDF open in two engines: pypdf reads; where it gives up, finds nothing although there are fonts, or its text cannot
be what the page shows, pdfium takes over that page, and the page says so.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pypdf
from pypdf.generic import IndirectObject

from rag.errors import (
    FileEmpty,
    FileTooLarge,
    NotAPdf,
    PasswordNeeded,
    PasswordWrong,
    PdfDamaged,
    PdfHasNoPages,
    TooManyPages,
)
from rag.ingestion.extracted import ExtractionLimits
from rag.ingestion.loaders.page_text import BLANK_PAGE, PICTURED_PAGE, normalise_characters, unreadable_reason
from rag.ingestion.loaders.pdf_facts import PdfFacts, facts_of
from rag.ingestion.loaders.pictures import looks_like_print
from rag.ingestion.loaders.pypdf_text import RawPage, has_fonts, page_by_pypdf

if TYPE_CHECKING:
    from rag.ingestion.loaders.page_tables import PageTable

#: Where readers look for the mark of a PDF, in bytes from the start; a few files have bytes before it.
MAGIC_WITHIN = 1024
SECOND_ENGINE = "Read by the second engine (pdfium): the text of the first one {reason}."
UNREADABLE = "The text of this page cannot be used: it {reason}."
#: A page larger than this is not drawn to look at its letters, in square points: 25 times A4.
LARGEST_DRAWN = 12_500_000
#: Pixels a point at which a page is looked at for whether it shows anything: a line of a hair's width is still seen.
BLANK_SCALE = 0.5
#: Pixels a point at which a picture is looked at for print in it.
PRINT_SCALE = 2


class OpenPdf:
    """A PDF open in both engines; pdfium is opened when first needed."""

    def __init__(self, content: bytes, *, password: str | None, limits: ExtractionLimits) -> None:
        require_pdf(content, limits)
        self._content = content
        self._password: str | None = None
        self._pdfium: Any = None
        self._is_encrypted = False
        #: The last table so far and its page: it may go on.
        self._table: tuple[int, PageTable] | None = None
        self.reader: pypdf.PdfReader | None = None
        count = self._open_pypdf(password)
        if count is None:
            self.reader = None
            document = self._open_pdfium()
            if document is None:
                raise PdfDamaged
            count = len(document)
        self.page_count: int = count
        if self.page_count == 0:
            raise PdfHasNoPages
        if self.page_count > limits.maximum_pages:
            raise TooManyPages(
                f"This PDF has {self.page_count:,} pages; the limit is {limits.maximum_pages:,}. "
                "Split it and upload the parts."
            )

    def __enter__(self) -> OpenPdf:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._pdfium is not None:
            self._pdfium.close()

    def _open_pypdf(self, password: str | None) -> int | None:
        """Open with pypdf and unlock; the number of pages, or None when pypdf cannot read the file."""
        try:
            self.reader = pypdf.PdfReader(io.BytesIO(self._content), strict=False)
            self._is_encrypted = self.reader.is_encrypted
            if self._is_encrypted:
                self._unlock(self.reader, password)
            return len(self.reader.pages)
        except PasswordNeeded:
            raise
        except (Exception, RecursionError):
            return None

    def _unlock(self, reader: pypdf.PdfReader, password: str | None) -> None:
        # An empty password is one that nobody has to be asked for; many files are protected against changes only.
        if reader.decrypt(""):
            self._password = ""
            return
        if not password:
            raise PasswordNeeded
        if not reader.decrypt(password):
            raise PasswordWrong
        self._password = password

    def _open_pdfium(self) -> Any:
        if self._pdfium is None:
            import pypdfium2

            try:
                self._pdfium = pypdfium2.PdfDocument(self._content, password=self._password or None)
            except pypdfium2.PdfiumError as exc:
                if "password" in str(exc).lower() and self.reader is None:
                    raise PasswordNeeded from exc
                return None
        return self._pdfium

    def read_page(self, number: int) -> RawPage:
        """The text of a page, counted from 1, by the engine that reads it."""
        first, failure = RawPage(""), "could not be had"
        if self.reader is not None:
            try:
                page = self.reader.pages[number - 1]
                first = page_by_pypdf(page, lambda: self._drawn(number), lambda: self._tables(number))
                failure = unreadable_reason(first.text)
                if not first.text.strip() and has_fonts(page) and not first.has_hidden:
                    failure = "was empty although the page has fonts"
            except (Exception, RecursionError):
                failure = "could not be had"
        if not failure and first.text.strip():
            if first.pictures and self._has_print(number, first.pictures):
                first.warnings.append(PICTURED_PAGE)
            return first
        if not failure:
            return self._without_text(number, first)
        second = self._page_by_pdfium(number)
        if second.text.strip() and not unreadable_reason(second.text):
            said = [SECOND_ENGINE.format(reason=failure)] if self.reader is not None else []
            return replace(second, warnings=[*said, *second.warnings])
        if first.text.strip():
            return RawPage("", warnings=[UNREADABLE.format(reason=failure)])
        return self._without_text(number, second if second.has_hidden else first)

    def _without_text(self, number: int, page: RawPage) -> RawPage:
        """A page without text, which says so when there is nothing on it at all."""
        if not page.has_hidden and self._shows_nothing(number):
            page.warnings.append(BLANK_PAGE)
        return page

    def _has_print(self, number: int, places: Sequence[tuple[float, float, float, float]]) -> bool:
        """Whether one of the pictures of a page looks as if text were in it."""
        drawn = self._drawn(number, scale=PRINT_SCALE)
        if drawn is None or self.reader is None or self.reader.pages[number - 1].rotation % 360:
            return False
        origin = self.reader.pages[number - 1].cropbox
        for left, bottom, right, top in places:
            x, y = float(origin.left), float(origin.top)
            area = (left - x, y - top, right - x, y - bottom)
            part = drawn.crop(tuple(max(0, round(edge * PRINT_SCALE)) for edge in area))
            if looks_like_print(part):
                return True
        return False

    def _shows_nothing(self, number: int) -> bool:
        if self.reader is not None:
            try:
                contents = self.reader.pages[number - 1].get("/Contents")
                if contents is None and "/Annots" not in self.reader.pages[number - 1]:
                    return True
            except (Exception, RecursionError):
                return False
        picture = self._drawn(number, scale=BLANK_SCALE)
        if picture is None:
            return False
        darkest, lightest = picture.convert("L").getextrema()
        return bool(darkest == lightest)

    def _page_by_pdfium(self, number: int) -> RawPage:
        document = self._open_pdfium()
        if document is None:
            return RawPage("")
        import pypdfium2

        from rag.ingestion.loaders.pdfium_text import page_by_pdfium

        try:
            page = document[number - 1]
            text, hidden = page_by_pdfium(page, lambda: self._drawn(number))
            page.close()
        except (pypdfium2.PdfiumError, ValueError, IndexError):
            return RawPage("")
        return RawPage(normalise_characters(text), warnings=[hidden] if hidden else [], has_hidden=bool(hidden))

    def _tables(self, number: int) -> list[PageTable]:
        """The tables of a page; one that goes on from the page before has that one's heads."""
        document = self._open_pdfium()
        if document is None:
            return []
        import pypdfium2

        from rag.ingestion.loaders.pdf_tables import tables_on

        try:
            page = document[number - 1]
            found = tables_on(page) if page.get_rotation() == 0 else []
            page.close()
        except (pypdfium2.PdfiumError, ValueError, IndexError):
            return []
        if found and self._table is not None and self._table[0] == number - 1:
            before = self._table[1]
            if found[0].goes_on_from(before):
                found[0] = found[0].with_heads_of(before)
        if found:
            self._table = number, found[-1]
        return found

    def _drawn(self, number: int, *, scale: float = 1) -> Any:
        """The page as a picture of `scale` pixels a point; None when it cannot be drawn."""
        document = self._open_pdfium()
        if document is None:
            return None
        import pypdfium2

        try:
            page = document[number - 1]
            width, height = page.get_size()
            picture = page.render(scale=scale).to_pil() if width * height <= LARGEST_DRAWN else None
            page.close()
        except (pypdfium2.PdfiumError, ValueError, IndexError, MemoryError):
            return None
        return picture

    def labels(self) -> list[str]:
        """What is printed on the pages as their numbers; empty when the file does not say."""
        try:
            labels = [str(label) for label in self.reader.page_labels] if self.reader is not None else []
        except (Exception, RecursionError):
            return []
        return labels if len(labels) == self.page_count else []

    def outline(self) -> Iterator[tuple[str, int, int]]:
        """(title, level, page) of each entry of the outline, as far as it can be read."""
        if self.reader is None:
            return
        try:
            entries = self.reader.outline
            numbers = {
                page.indirect_reference.idnum: number
                for number, page in enumerate(self.reader.pages, start=1)
                if page.indirect_reference is not None
            }
        except (Exception, RecursionError):
            return
        waiting: list[tuple[Any, int]] = [(entry, 1) for entry in reversed(entries)]
        while waiting:
            entry, level = waiting.pop()
            if isinstance(entry, list):
                waiting.extend((child, level + 1) for child in reversed(entry))
                continue
            try:
                page = entry.raw_get("/Page") if "/Page" in entry else None
                title = " ".join(normalise_characters(str(entry.title)).split())
            except Exception:  # noqa: S112 - a broken entry is no reason to lose the others
                continue
            if isinstance(page, IndirectObject) and page.idnum in numbers:
                yield title[:200], level, numbers[page.idnum]

    def forget(self) -> None:
        """Let go of what was read of the pages so far: their contents and fonts would stay until the end."""
        if self.reader is not None:
            self.reader.resolved_objects.clear()

    def facts(self) -> PdfFacts:
        """What the file says of itself."""
        return facts_of(self.reader) if self.reader is not None else PdfFacts()

    def decrypted(self) -> bytes | None:
        """The same PDF without protection; None when it has none, or cannot be written again."""
        if not self._is_encrypted:
            return None
        buffer = io.BytesIO()
        document = self._open_pdfium()
        if document is not None:
            document.save(buffer, flags=3)  # FPDF_REMOVE_SECURITY
            return buffer.getvalue()
        # Some files open in pypdf only, such as those with an empty owner password.
        pypdf.PdfWriter(clone_from=self.reader).write(buffer)
        return buffer.getvalue()


def pages_of(content: bytes, numbers: Sequence[int]) -> bytes:
    """A PDF of these pages only, counted from 1. Raises `PdfDamaged`."""
    import pypdfium2

    buffer = io.BytesIO()
    try:
        source = pypdfium2.PdfDocument(content)
        part = pypdfium2.PdfDocument.new()
        part.import_pages(source, [number - 1 for number in numbers])
        part.save(buffer)
        part.close()
        source.close()
    except (pypdfium2.PdfiumError, ValueError, IndexError) as exc:
        raise PdfDamaged from exc
    return buffer.getvalue()


def require_pdf(content: bytes, limits: ExtractionLimits) -> None:
    """Raise `FileEmpty`, `FileTooLarge` or `NotAPdf` by what the bytes are, whatever the name says."""
    if not content:
        raise FileEmpty
    if len(content) > limits.maximum_bytes:
        raise FileTooLarge(
            f"This file has {len(content) / 2**20:,.0f} MB; the limit is {limits.maximum_bytes / 2**20:,.0f} MB. "
            "Split it, or ask your administrator to raise the limit."
        )
    if b"%PDF-" not in content[:MAGIC_WITHIN]:
        raise NotAPdf
