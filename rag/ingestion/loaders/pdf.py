"""PDFs, digital: the text of each page with its provenance. Runs in the sandbox process, in little memory: what repeats
on pages is known only after the last of them, so pages are read once, packed, and cleaned one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rag.errors import PdfDamaged
from rag.ingestion.extracted import CheckedFile, ExtractedDocument, ExtractionLimits
from rag.ingestion.loaders.headings import StyledPage, sections_by_outline, sections_by_style
from rag.ingestion.loaders.open_pdf import OpenPdf
from rag.ingestion.loaders.raw_pages import RawPages
from rag.types import Page

CUT_OFF = "The file ends without its end mark: its last part may be missing."
#: Pages after which the engine forgets what it has read of them; fonts that are used again are read again then.
PAGES_REMEMBERED = 32


def check_pdf(content: bytes, *, password: str | None, limits: ExtractionLimits) -> CheckedFile:
    """Whether the file can be read: its kind, size, protection and number of pages. Raises `DocumentError`s."""
    with OpenPdf(content, password=password, limits=limits) as opened:
        return CheckedFile(page_count=opened.page_count, decrypted=opened.decrypted())


def extract_pages(
    content: bytes,
    *,
    password: str | None,
    limits: ExtractionLimits,
    on_page: Callable[[int, int], None] | None = None,
    take: Callable[[Page], None] | None = None,
) -> ExtractedDocument:
    """The text of every page with sections and what the file says of itself. `on_page(done, total)` after each page.

    With `take`, pages are handed to it in their order and are not in the value. Raises a `DocumentError` when the file
    as a whole cannot be read; a page that cannot is left empty and says why.
    """
    pages: list[Page] = []
    with OpenPdf(content, password=password, limits=limits) as opened:
        raw = read_pages(opened, on_page)
        if opened.reader is None and not raw.has_text:
            raise PdfDamaged
        cut_off = () if b"%%EOF" in content[-2048:] else (CUT_OFF,)
        labels = opened.labels()
        outline = [entry for entry in opened.outline() if entry[0]]

        def finished() -> Iterator[StyledPage]:
            for page, styles in raw.finished(labels, cut_off):
                (take or pages.append)(page)
                yield StyledPage(page.number, page.text, styles)

        sections = (
            sections_by_outline(outline, (page.text for page in finished()))
            if outline
            else sections_by_style(finished(), raw.body_size)
        )
        facts = opened.facts()
        return ExtractedDocument(
            pages=tuple(pages),
            sections=sections,
            title=facts.title,
            author=facts.author,
            language=facts.language,
            metadata=facts.metadata(),
            decrypted=opened.decrypted(),
        )


def read_pages(opened: OpenPdf, on_page: Callable[[int, int], None] | None) -> RawPages:
    """All pages as the engines give them."""
    raw = RawPages()
    for number in range(1, opened.page_count + 1):
        raw.add(opened.read_page(number))
        if number % PAGES_REMEMBERED == 0:
            opened.forget()
        if on_page is not None:
            on_page(number, opened.page_count)
    return raw
