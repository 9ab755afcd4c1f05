"""Load PDFs: each page's text, and how it was read. Runs in the sandbox with little memory.

pdfium reads the text. pypdf reads the structure (outline, labels, protection), and rewrites files which pdfium cannot
open. pypdf also reads the pages which pdfium reads wrongly; these pages have a warning.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import pypdf
import pypdfium2
import pypdfium2.raw as pdfium

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
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.page_marks import parts_of_page
from rag.ingestion.loaders.page_text import (
    BLANK_PAGE,
    PICTURED_PAGE,
    RawPage,
    RawPages,
    StyledPage,
    attachment_remarks,
    unreadable_reason,
)
from rag.ingestion.loaders.pdf_annotations import MOST_ANNOTATIONS, Annotations, annotations_of, pinned_files
from rag.ingestion.loaders.pdf_fonts import open_pdf
from rag.ingestion.loaders.pdf_objects import Box
from rag.ingestion.loaders.pdf_structure import (
    PdfFacts,
    facts_of,
    headings_by_outline,
    headings_by_style,
    labels_of,
    outline_of,
    sections_by_outline,
    sections_by_style,
)
from rag.ingestion.loaders.pdf_text import read_page
from rag.ingestion.loaders.pictures import looks_like_print
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, ExtractionLimits, LoadOptions
from rag.language import N_
from rag.types import Page, PageMark

#: Bytes from the start in which readers look for the PDF mark; a few files have bytes before it.
MAGIC_WITHIN = 1024
XFA = N_(
    "This is a form in the format XFA, whose fields were not read. Print the form to a PDF and upload the new file."
)
CUT_OFF = "The file ends without its end mark: its last part may be missing."
#: The most attachments counted.
MOST_ATTACHMENTS = 1000
SECOND_ENGINE = "A second program (pypdf) read this page, because the text found by the first program {reason}."
NOT_HAD = N_("could not be read")
UNREADABLE = "The text of this page cannot be used: it {reason}."
#: Pages after which pypdf's cache is emptied; objects used later are read again.
PAGES_REMEMBERED = 32
#: The largest page drawn to look at its letters, in square points: 25 times A4.
LARGEST_DRAWN = 12_500_000
#: Pixels per point for deciding whether a page shows anything: a hairline is still visible.
BLANK_SCALE = 0.5
#: Pixels per point for deciding whether a picture holds print.
PRINT_SCALE = 2


def check_file(content: bytes, options: LoadOptions) -> CheckedFile:
    """Check whether the file can be read. Raises `DocumentError`s."""
    return check_pdf(content, password=options.password, limits=options.limits)


def attached_files(content: bytes, options: LoadOptions) -> Iterator[tuple[str, bytes]]:
    """Yield the files attached to the PDF or to a page, up to the first damaged data. Raises `DocumentError`s."""
    with OpenPdf(content, password=options.password, limits=options.limits) as opened:
        if opened.reader is None:
            return
        with suppress(Exception, RecursionError):
            for file in islice(opened.reader.attachment_list, MOST_ATTACHMENTS):
                yield file.name, file.content
        with suppress(Exception, RecursionError):
            for page in opened.reader.pages:
                yield from pinned_files(page)


def check_pdf(content: bytes, *, password: str | None, limits: ExtractionLimits) -> CheckedFile:
    """Check that the file is readable: kind, size, protection and number of pages. Raises `DocumentError`s."""
    with OpenPdf(content, password=password, limits=limits) as opened:
        return CheckedFile(page_count=opened.page_count, decrypted=opened.decrypted())


def load_pdf(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Read the text of all pages, the sections and the file's properties. Calls `on_page(done, total)` after each page.

    An unreadable page stays empty and gets a warning. Raises a `DocumentError` if the whole file is unreadable.
    """
    on_page = options.on_page
    pages: list[Page] = []
    with OpenPdf(content, password=options.password, limits=options.limits) as opened:
        raw = RawPages()
        for number in range(1, opened.page_count + 1):
            raw.add(opened.read_page(number, has_paragraphs_by_gaps=options.has_paragraphs_by_gaps))
            if number % PAGES_REMEMBERED == 0:
                opened.forget()
            if on_page is not None:
                on_page(number, opened.page_count)
        if opened.reader is None and not raw.has_text:
            raise PdfDamaged
        first_warnings = [] if b"%%EOF" in content[-2048:] else [CUT_OFF]
        first_warnings += [XFA] if opened.is_xfa() else []
        first_warnings += attachment_remarks(opened.attachments(), options.separate_files)
        labels = labels_of(opened.reader, opened.page_count) if opened.reader is not None else []
        outline = list(outline_of(opened.reader)) if opened.reader is not None else []

        def headings(page: StyledPage) -> Sequence[Sequence[str]]:
            if outline:
                return headings_by_outline(outline, page)
            return [heading.lines for heading in headings_by_style(page, raw.body_size)]

        def finished() -> Iterator[StyledPage]:
            for page, styled in raw.finished(labels, first_warnings, headings):
                (options.take or pages.append)(page)
                yield styled

        sections = (
            sections_by_outline(outline, (page.text for page in finished()))
            if outline
            else sections_by_style(finished(), raw.body_size)
        )
        facts = facts_of(opened.reader) if opened.reader is not None else PdfFacts()
        return ExtractedDocument(
            pages=tuple(pages),
            sections=sections,
            title=facts.title,
            author=facts.author,
            language=facts.language,
            metadata=facts.metadata(),
            decrypted=opened.decrypted(),
        )


class OpenPdf:
    """A PDF opened with pypdf, if possible. pdfium opens the file when the first page is read."""

    def __init__(self, content: bytes, *, password: str | None, limits: ExtractionLimits) -> None:
        require_pdf(content, limits)
        self._content = content
        self._password: str | None = None
        self._pdfium: pypdfium2.PdfDocument | None = None
        self._is_encrypted = False
        #: The last page read and its number, because a table may continue from it.
        self._above: tuple[int, RawPage] = 0, RawPage("")
        #: Names of files attached to a place on a page already read.
        self._attached: list[str] = []
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
        # Many files are only protected against changes and open with an empty password, so nobody needs to be asked.
        if reader.decrypt(""):
            self._password = ""
            return
        if not password:
            raise PasswordNeeded
        if not reader.decrypt(password):
            raise PasswordWrong
        self._password = password

    def _open_pdfium(self) -> pypdfium2.PdfDocument | None:
        if self._pdfium is None:
            try:
                self._pdfium = open_pdf(self._content, self._password or None)
            except pypdfium2.PdfiumError as exc:
                if "password" in str(exc).lower() and self.reader is None:
                    raise PasswordNeeded from exc
                self._pdfium = self._repair()
        return self._pdfium

    def _repair(self) -> pypdfium2.PdfDocument | None:
        if self.reader is None:
            return None
        buffer = io.BytesIO()
        try:
            pypdf.PdfWriter(clone_from=self.reader).write(buffer)
            return open_pdf(buffer.getvalue())
        except (Exception, RecursionError):
            return None

    def read_page(self, number: int, *, has_paragraphs_by_gaps: bool = False) -> RawPage:
        """Read the text of a page, counted from 1."""
        page = self._page(number)
        try:
            read = self._read(page, number, has_paragraphs_by_gaps)
        finally:
            if page is not None:
                page.close()
        self._above = number, read
        return read

    def _read(self, page: pypdfium2.PdfPage | None, number: int, has_paragraphs_by_gaps: bool) -> RawPage:
        above = self._above[1].last_table if self._above[0] == number - 1 else None
        try:
            first = (
                read_page(
                    page,
                    lambda: _render(page),
                    above,
                    self._annotations(page, number),
                    has_paragraphs_by_gaps=has_paragraphs_by_gaps,
                )
                if page is not None
                else RawPage("")
            )
            failure = unreadable_reason(first.text) if page is not None else NOT_HAD
        except (pypdfium2.PdfiumError, ValueError, IndexError):
            first, failure = RawPage(""), NOT_HAD
        if not failure and first.text.strip():
            if first.pictures and page is not None and (printed := _images_with_text(page, first.pictures)):
                first.warnings.append(PICTURED_PAGE)
                _mark_pictures(page, first, printed)
            return first
        if not failure and not first.has_hidden and self._has_fonts(number):
            failure = N_("was empty although the page has fonts")
        if not failure:
            return self._warn_of_no_text(page, number, first)
        # pypdf does not distinguish visible text, so its text is not used on pages with hidden text.
        second = self._text_by_pypdf(number) if not first.has_hidden else ""
        if second.strip() and not unreadable_reason(second):
            return RawPage(second, warnings=[SECOND_ENGINE.format(reason=failure)])
        if first.text.strip():
            return RawPage("", warnings=[UNREADABLE.format(reason=failure)])
        return self._warn_of_no_text(page, number, first)

    def _page(self, number: int) -> pypdfium2.PdfPage | None:
        document = self._open_pdfium()
        try:
            return document[number - 1] if document is not None else None
        except (pypdfium2.PdfiumError, ValueError, IndexError):
            return None

    def _annotations(self, page: pypdfium2.PdfPage, number: int) -> Annotations:
        if self.reader is None or not _has_annotations(page):
            return Annotations()
        try:
            annotations = annotations_of(self.reader.pages[number - 1])
        except (Exception, RecursionError):
            return Annotations()
        self._attached += annotations.attached
        return annotations

    def attachments(self) -> list[str]:
        """Return the names of the files attached to the document, and to the pages read until now."""
        names: list[str] = []
        with suppress(Exception, RecursionError):  # keep names read before the damage
            if self.reader is not None:
                names.extend(file.name for file in islice(self.reader.attachment_list, MOST_ATTACHMENTS))
        return [*names, *(name for name in self._attached if name not in names)]

    def is_xfa(self) -> bool:
        """Whether the file is an XFA form, which few programs can show. Forms with ordinary PDF fields give false."""
        with suppress(Exception, RecursionError):
            root: Any = self.reader.root_object if self.reader is not None else {}
            form = root.get("/AcroForm", {}).get_object()
            has_fields = "/Fields" in form and len(form["/Fields"].get_object()) > 0
            return "/XFA" in form and (not has_fields or bool(root.get("/NeedsRendering")))
        return False

    def _text_by_pypdf(self, number: int) -> str:
        if self.reader is None:
            return ""
        try:
            return normalise_characters(self.reader.pages[number - 1].extract_text())
        except (Exception, RecursionError):
            return ""

    def _has_fonts(self, number: int) -> bool:
        if self.reader is None:
            return False
        try:
            resources = self.reader.pages[number - 1].get("/Resources")
            return bool(resources and resources.get_object().get("/Font"))
        except (Exception, RecursionError):
            return True

    def _warn_of_no_text(self, page: pypdfium2.PdfPage | None, number: int, read: RawPage) -> RawPage:
        if read.has_hidden:
            return read
        if self._shows_nothing(page, number):
            read.warnings.append(BLANK_PAGE)
        elif page is not None:
            _mark_pictures(page, read, [page.get_bbox()])
        return read

    def _shows_nothing(self, page: pypdfium2.PdfPage | None, number: int) -> bool:
        if self.reader is not None:
            try:
                contents = self.reader.pages[number - 1].get("/Contents")
                if contents is None and "/Annots" not in self.reader.pages[number - 1]:
                    return True
            except (Exception, RecursionError):
                return False
        picture = _render(page, scale=BLANK_SCALE) if page is not None else None
        if picture is None:
            return False
        darkest, lightest = picture.convert("L").getextrema()
        return bool(darkest == lightest)

    def forget(self) -> None:
        """Empty pypdf's cache, which otherwise keeps the content and fonts of all pages."""
        if self.reader is not None:
            self.reader.resolved_objects.clear()

    def decrypted(self) -> bytes | None:
        """Return the PDF without protection, or `None` for an unprotected file."""
        if not self._is_encrypted:
            return None
        buffer = io.BytesIO()
        document = self._open_pdfium()
        if document is not None:
            document.save(buffer, flags=3)  # FPDF_REMOVE_SECURITY
        else:
            pypdf.PdfWriter(clone_from=self.reader).write(buffer)
        return buffer.getvalue()


def _has_annotations(page: pypdfium2.PdfPage) -> bool:
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), MOST_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if annotation:
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            pdfium.FPDFPage_CloseAnnot(annotation)
            if kind not in (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP):
                return True
    return False


def _render(page: pypdfium2.PdfPage, *, scale: float = 1) -> Any:
    try:
        width, height = page.get_size()
        return page.render(scale=scale).to_pil() if width * height <= LARGEST_DRAWN else None
    except (pypdfium2.PdfiumError, ValueError, MemoryError):
        return None


def _images_with_text(page: pypdfium2.PdfPage, places: Sequence[Box]) -> list[Box]:
    if page.get_rotation() % 360 or (drawn := _render(page, scale=PRINT_SCALE)) is None:
        return []
    x, _, _, y = page.get_bbox()

    def has_print(box: Box) -> bool:
        left, bottom, right, top = box
        area = (left - x, y - top, right - x, y - bottom)
        return looks_like_print(drawn.crop(tuple(max(0, round(edge * PRINT_SCALE)) for edge in area)))

    return [box for box in places if has_print(box)]


def _mark_pictures(page: pypdfium2.PdfPage, read: RawPage, pictures: Sequence[Box]) -> None:
    if read.marks is not None:
        convert = parts_of_page(page)
        read.marks += [PageMark("picture", *parts) for box in pictures if (parts := convert(box)) is not None]


def pages_of(content: bytes, numbers: Sequence[int]) -> bytes:
    """Make a PDF with only these pages, counted from 1. Raises `PdfDamaged`."""
    buffer = io.BytesIO()
    try:
        source = open_pdf(content)
        part = pypdfium2.PdfDocument.new()
        part.import_pages(source, [number - 1 for number in numbers])
        part.save(buffer)
        part.close()
        source.close()
    except (pypdfium2.PdfiumError, ValueError, IndexError) as exc:
        raise PdfDamaged from exc
    return buffer.getvalue()


def require_pdf(content: bytes, limits: ExtractionLimits) -> None:
    """Raise `FileEmpty`, `FileTooLarge` or `NotAPdf` if the bytes are no usable PDF. The file's name is ignored."""
    if not content:
        raise FileEmpty
    if len(content) > limits.maximum_bytes:
        raise FileTooLarge(
            f"This file has {len(content) / 2**20:,.0f} MB; the limit is {limits.maximum_bytes / 2**20:,.0f} MB. "
            "Split it, or ask your administrator to raise the limit."
        )
    if b"%PDF-" not in content[:MAGIC_WITHIN]:
        raise NotAPdf
