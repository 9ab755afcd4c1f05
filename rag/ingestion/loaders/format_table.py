"""List the file formats of the core and of the installed integrations.

The file picker, archives, folders, the sandbox, the API and the texts on the pages read the formats from here.
CONTRIBUTING.md explains how to add a format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import PurePath, PurePosixPath

from rag.ingestion.loaders.loader import Loader
from rag.ingestion.loaders.signatures import HTML_BEGINNING, LOOKED_AT, ZIP, looks_like_mail, names_in_zip
from rag.ingestion.loaders.values import FileKind

#: Integrations are found by name, because the core imports none.
INTEGRATIONS = "rag.integrations.registry"
CORE = (
    Loader(
        kind="pdf",
        label="PDF",
        named="a PDF",
        media_type="application/pdf",
        endings=(".pdf",),
        loads=".pdf:load_pdf",
        checks=".pdf:check_file",
        attaches=".pdf:attached_files",
        signature=b"%PDF-",
        is_sure=lambda content: b"%PDF-" in content[:1024],
        is_text=False,
        has_pages=True,
        may_be_pictures=True,
        served="shown",
    ),
    Loader(
        kind="docx",
        label="Word",
        named="a Word document (.docx)",
        media_type="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        endings=(".docx",),
        loads=".docx:load_docx",
        checks=".docx:check_docx",
        signature=ZIP,
        is_sure=lambda content: b"word/" in names_in_zip(content),
        is_text=False,
    ),
    Loader(
        kind="xlsx",
        label="Excel",
        named="an Excel workbook (.xlsx)",
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        endings=(".xlsx", ".xlsm"),
        loads=".spreadsheet:load_xlsx",
        checks=".spreadsheet:check_xlsx",
        signature=ZIP,
        is_sure=lambda content: b"xl/workbook.xml" in names_in_zip(content),
        is_text=False,
        has_rows=True,
    ),
    Loader(
        kind="pptx",
        label="PowerPoint",
        named="a PowerPoint presentation (.pptx)",
        media_type="application/vnd.openxmlformats-officedocument.presentationml.presentation",
        endings=(".pptx", ".pptm", ".ppsx"),
        loads=".pptx:load_pptx",
        checks=".pptx:check_pptx",
        signature=ZIP,
        is_sure=lambda content: b"ppt/presentation.xml" in names_in_zip(content),
        is_text=False,
        has_pages=True,
    ),
    Loader(
        kind="rtf",
        label="RTF",
        named="a document in rich text format (.rtf)",
        media_type="application/rtf",
        endings=(".rtf",),
        loads=".rtf:load_rtf",
        checks=".rtf:check_rtf",
        signature=b"{\\rtf",
        is_sure=lambda content: content.startswith(b"{\\rtf"),
        is_text=False,
    ),
    Loader(
        kind="eml",
        label="E-mail",
        named="a mail (.eml)",
        media_type="message/rfc822",
        endings=(".eml",),
        loads=".eml:load_eml",
        checks=".eml:check_eml",
        attaches=".eml:attached_to_eml",
        parses_mail=".eml:parse_mail",
        looks_like=looks_like_mail,
    ),
    Loader(
        kind="png",
        label="PNG",
        named="a picture (.png)",
        media_type="image/png",
        endings=(".png",),
        loads=".pictures:load_picture",
        checks=".pictures:check_picture",
        pillow_format="PNG",
        signature=b"\x89PNG",
        is_sure=lambda content: content.startswith(b"\x89PNG\r\n\x1a\n"),
        is_text=False,
        may_be_pictures=True,
    ),
    Loader(
        kind="jpeg",
        label="JPEG",
        named="a photograph (.jpg)",
        media_type="image/jpeg",
        endings=(".jpg", ".jpeg"),
        loads=".pictures:load_picture",
        checks=".pictures:check_picture",
        pillow_format="JPEG",
        signature=b"\xff\xd8\xff",
        is_sure=lambda content: content.startswith(b"\xff\xd8\xff"),
        is_text=False,
        may_be_pictures=True,
    ),
    Loader(
        kind="tiff",
        label="TIFF",
        named="a scan (.tif)",
        media_type="image/tiff",
        endings=(".tif", ".tiff"),
        loads=".pictures:load_picture",
        checks=".pictures:check_picture",
        pillow_format="TIFF",
        is_sure=lambda content: content.startswith((b"II*\0", b"MM\0*")),
        is_text=False,
        has_pages=True,
        may_be_pictures=True,
    ),
    Loader(
        kind="webp",
        label="WebP",
        named="a picture (.webp)",
        media_type="image/webp",
        endings=(".webp",),
        loads=".pictures:load_picture",
        checks=".pictures:check_picture",
        pillow_format="WEBP",
        signature=b"RIFF",
        is_sure=lambda content: content.startswith(b"RIFF") and content[8:12] == b"WEBP",
        is_text=False,
        may_be_pictures=True,
    ),
    Loader(
        kind="bmp",
        label="BMP",
        named="a picture (.bmp)",
        media_type="image/bmp",
        endings=(".bmp",),
        loads=".pictures:load_picture",
        checks=".pictures:check_picture",
        pillow_format="BMP",
        signature=b"BM",
        is_sure=lambda content: content.startswith(b"BM") and content[6:10] == b"\0\0\0\0",
        is_text=False,
        may_be_pictures=True,
    ),
    Loader(
        kind="html",
        label="HTML",
        named="HTML",
        media_type="text/html",
        endings=(".html", ".htm", ".xhtml"),
        loads=".html:load_html",
        looks_like=lambda content: HTML_BEGINNING.match(content[:LOOKED_AT]) is not None,
    ),
    Loader(
        kind="markdown",
        label="Markdown",
        named="Markdown",
        media_type="text/markdown",
        endings=(".md", ".markdown"),
        loads=".markdown:load_markdown",
        served="as text",
    ),
    Loader(
        kind="csv",
        label="CSV",
        named="CSV",
        media_type="text/csv",
        endings=(".csv", ".tsv"),
        loads=".text:load_csv",
        served="as text",
    ),
    Loader(
        kind="text",
        label="Text",
        named="plain text",
        media_type="text/plain",
        endings=(".txt", ".text", ".log"),
        loads=".text:load_text",
        checks=".text:check_text",
        served="as text",
    ),
)


@dataclass(frozen=True)
class FileFormats:
    """All formats, in display order, with functions to find a format."""

    loaders: tuple[Loader, ...]

    @cached_property
    def by_kind(self) -> Mapping[FileKind, Loader]:
        return {loader.kind: loader for loader in self.loaders}

    @cached_property
    def by_media_type(self) -> Mapping[str, Loader]:
        return {loader.media_type: loader for loader in self.loaders}

    @cached_property
    def by_ending(self) -> Mapping[str, Loader]:
        return {ending: loader for loader in self.loaders for ending in loader.endings}

    @cached_property
    def installed(self) -> tuple[Loader, ...]:
        """The formats with installed packages."""
        return tuple(loader for loader in self.loaders if loader.is_installed)

    @cached_property
    def pictures(self) -> tuple[Loader, ...]:
        return tuple(loader for loader in self.loaders if loader.pillow_format)

    @cached_property
    def mails(self) -> tuple[Loader, ...]:
        return tuple(loader for loader in self.loaders if loader.parses_mail)

    def picture_of(self, content: bytes) -> Loader | None:
        """Return the image format of a file, or `None` for other files."""
        return next((loader for loader in self.pictures if loader.is_sure(content)), None)


@cache
def file_formats() -> FileFormats:
    """Return the formats of the core and of the integrations."""
    contributed: tuple[Loader, ...] = import_module(INTEGRATIONS).formats()
    return FileFormats(in_order(CORE, contributed))


def in_order(core: tuple[Loader, ...], contributed: tuple[Loader, ...]) -> tuple[Loader, ...]:
    """Sort the formats for display.

    An integration's format comes after the core format which it names, or at the end.
    """
    places = {loader.kind: place for place, loader in enumerate(core)}
    return tuple(sorted((*core, *contributed), key=lambda loader: places.get(loader.after or loader.kind, len(places))))


def formats_in_words() -> str:
    """Return the formats for use in a sentence: "a PDF, a Word document (.docx), HTML, Markdown or plain text"."""
    *first_formats, last_format = (loader.named for loader in file_formats().installed)
    return f"{', '.join(first_formats)} or {last_format}"


def is_hidden(path: PurePath) -> bool:
    """Whether any name in the path starts with "." (hidden) or "~$" (an Office lock file)."""
    return any(part.startswith((".", "~$")) and part != ".." for part in path.parts)


def is_readable(path: PurePath) -> bool:
    """Whether to read a file in a folder: the name has a known ending, and no part of the path is hidden.

    Also true if the format's packages are missing, because the error then names the packages.
    """
    return path.suffix.lower() in file_formats().by_ending and not is_hidden(path)


def is_followed(path: PurePath) -> bool:
    """Whether a source imports a file: readable files, except images, because shared drives are full of photographs."""
    return is_readable(path) and not file_formats().by_ending[path.suffix.lower()].pillow_format


def has_rows(file_name: str) -> bool:
    """Whether files with this ending have numbered rows, like workbooks."""
    loader = file_formats().by_ending.get(PurePosixPath(file_name.lower()).suffix)
    return loader is not None and loader.has_rows
