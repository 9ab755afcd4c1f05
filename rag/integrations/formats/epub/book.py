"""Load books (.epub): the chapters in reading order, each read like an HTML page."""

from __future__ import annotations

import html
import posixpath
import re
from typing import ClassVar
from urllib.parse import unquote

from rag.errors import FileDamaged, FileProtected, TooManyPages
from rag.ingestion.loaders.drawing import local_name
from rag.ingestion.loaders.html import load_html
from rag.ingestion.loaders.office_package import OfficePackage, guarded, require_unpacked
from rag.ingestion.loaders.page_text import UNREAD_PICTURES
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.types import Page, Section

DC = "{http://purl.org/dc/elements/1.1/}"
CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
#: Media types of chapters; a cover may be a separate picture.
CHAPTERS = ("application/xhtml+xml", "text/html")
#: A chapter's links to style sheets, within the first bytes.
LINK, HREF = (
    re.compile(rb"<link\b[^>]{0,2000}>", re.IGNORECASE),
    re.compile(rb"""href\s*=\s*["']([^"']+)""", re.IGNORECASE),
)
STYLESHEET = re.compile(rb"""rel\s*=\s*["']?[^"'>]{0,60}stylesheet""", re.IGNORECASE)
HEAD_LOOKED_AT, MOST_STYLES = 65_536, 20
UNREADABLE = "This chapter could not be read."


class Book(OfficePackage):
    """An e-book's package: its parts, reading order and properties."""

    MAIN: ClassVar[str] = CONTAINER

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        container = self.root(CONTAINER)
        named = () if container is None else container.iter()
        self.listed = next((file.get("full-path") or "" for file in named if local_name(file) == "rootfile"), "")
        self.list = self.root(self.listed)
        if self.list is None:
            raise FileDamaged

    def chapters(self) -> list[str]:
        """Return the chapters' names in the package, in reading order. Raises `FileProtected` for protected books."""
        folder = posixpath.dirname(self.listed)
        parts = {
            item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
            for item in self.list.iter()
            if local_name(item) == "item" and item.get("media-type") in CHAPTERS
        }
        order = (item.get("idref") for item in self.list.iter() if local_name(item) == "itemref")
        chapters = [parts[name] for name in order if name in parts]
        encryption = self.root(ENCRYPTION)
        locked = {unquote(part.get("URI") or "") for part in (() if encryption is None else encryption.iter())}
        # Only fonts may be locked.
        if locked.intersection(chapters):
            raise FileProtected
        return chapters

    def styles_of(self, name: str, content: bytes) -> str:
        """Return the style sheets named in a chapter."""
        sheets = []
        for link in LINK.findall(content[:HEAD_LOOKED_AT])[:MOST_STYLES]:
            if (place := HREF.search(link)) and STYLESHEET.search(link):
                href = unquote(html.unescape(place[1].decode("utf-8", "replace")))
                part = self.bytes_of(posixpath.normpath(posixpath.join(posixpath.dirname(name), href)))
                sheets.append((part or b"").decode("utf-8", "replace"))
        return "\n".join(sheets)

    def declared(self, name: str) -> str:
        """Return the declared title, creator or language."""
        declared_text = next((element.text for element in self.list.iter(DC + name)), "")
        return (declared_text or "").strip()


def load_epub(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a book, with its title and author.

    Raises `FileProtected` for a protected book, `FileTooLarge` for a book too large when unpacked, else `FileDamaged`.
    """
    require_unpacked(content, options.limits)
    return guarded(lambda: _load_chapters(Book(content), options))


def check_epub(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a valid book, and count its chapters. Raises the errors of `load_epub`."""
    require_unpacked(content, options.limits)
    return guarded(lambda: CheckedFile(page_count=max(len(Book(content).chapters()), 1)))


def _load_chapters(book: Book, options: LoadOptions) -> ExtractedDocument:
    chapters = book.chapters()
    if not chapters:
        raise FileDamaged
    if len(chapters) > options.limits.maximum_pages:
        raise TooManyPages
    pages: list[Page] = []
    sections: list[Section] = []
    position = 0
    for number, name in enumerate(chapters, 1):
        content = book.bytes_of(name)
        if not content:
            page = Page(number=number, text="", method="none", warnings=(UNREADABLE,))
        else:
            read = load_html(content, styles=book.styles_of(name, content))
            (chapter,) = read.pages
            warnings = (*chapter.warnings, *_pictures(content))
            page = Page(number=number, text=chapter.text, method=chapter.method, warnings=warnings)
            sections.extend(
                Section(title=section.title, level=section.level, page=number, start=position + section.start)
                for section in read.sections
            )
        pages.append(page)
        position += len(page.text) + 1
        if options.on_page is not None:
            options.on_page(number, len(chapters))
    return ExtractedDocument(
        pages=tuple(pages),
        sections=tuple(sections),
        title=book.declared("title"),
        author=book.declared("creator"),
        language=book.declared("language")[:2].lower(),
    )


def _pictures(content: bytes) -> tuple[str, ...]:
    count = content.count(b"<img") + content.count(b"<image")
    return (UNREAD_PICTURES[count > 1].format(count=f"{count:,}"),) if count else ()
