"""Convert files to pages: the table of formats, the functions `check` and `load`, and the returned values.

`check` and `load` run in the sandbox process, which imports the loaders before confinement; the application imports no
loader. CONTRIBUTING.md explains how to add a format.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath, PurePosixPath
from typing import Any, Literal, TypeAlias, get_args
from uuid import UUID

from rag.errors import FileEmpty, FileKindUnknown, FileNotAsNamed, FileTooLarge
from rag.ingestion.loaders.page_text import BLANK_PAGE
from rag.settings import Settings
from rag.types import MOST_MARKS, MarkKind, Page, PageMark, Section, sections_from_json, storable, storable_json

#: The name of a format in `LOADERS`.
FileKind: TypeAlias = str


@dataclass(frozen=True, kw_only=True)
class ExtractionLimits:
    """Limits for reading a single file."""

    maximum_bytes: int = 50 * 1024 * 1024
    maximum_pages: int = 5000
    timeout_seconds: float = 120.0
    memory_mb: int = 1024

    @classmethod
    def of(cls, settings: Settings) -> ExtractionLimits:
        return cls(
            maximum_bytes=settings.maximum_upload_bytes,
            maximum_pages=settings.maximum_pages,
            timeout_seconds=settings.extraction_timeout_seconds,
            memory_mb=settings.extraction_memory_mb,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """A file which passed `check`. `decrypted` is a protected PDF after unlocking, or `None` if there was no
    protection.
    """

    page_count: int
    kind: FileKind = "pdf"
    decrypted: bytes | None = None


@dataclass(frozen=True)
class AttachedFile:
    """A file attached to an email or PDF, under the name stated there."""

    name: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class ExtractedDocument:
    """A file's pages and properties. `language` is the file's declared language, often wrong or empty.

    `metadata` has properties which only some formats have, for example `links` and `backdated_at` from a post.
    """

    pages: tuple[Page, ...]
    sections: tuple[Section, ...] = ()
    title: str = ""
    author: str = ""
    language: str = ""
    decrypted: bytes | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "pages": [asdict(page) for page in self.pages],
            "sections": [asdict(section) for section in self.sections],
            "title": self.title,
            "author": self.author,
            "language": self.language,
            "metadata": dict(self.metadata),
        }


def extracted_from_json(values: Mapping[str, Any], decrypted: bytes | None) -> ExtractedDocument:
    """Convert JSON to an `ExtractedDocument`, without characters which Postgres cannot store."""
    return ExtractedDocument(
        pages=tuple(page_from_json(page) for page in values["pages"]),
        sections=sections_from_json(values["sections"]),
        title=storable(values["title"]),
        author=storable(values["author"]),
        language=storable(values["language"]),
        decrypted=decrypted,
        metadata=storable_json(values.get("metadata") or {}),
    )


def page_from_json(page: Mapping[str, Any]) -> Page:
    return Page(
        number=int(page["number"]),
        text=storable(page["text"]),
        method=page["method"] if page["method"] in ("text", "ocr") else "none",
        label=storable(page["label"]),
        warnings=tuple(storable(warning) for warning in page["warnings"]),
        marks=marks_from_json(page.get("marks")),
    )


def marks_from_json(marks: Sequence[Mapping[str, Any]] | None) -> tuple[PageMark, ...] | None:
    """Convert JSON to page marks: boxes around a page's lines, tables and images.

    Drops marks with an unknown `kind`, and marks outside the page. Returns `None` for `None`.
    """
    if marks is None:
        return None
    edges = ("left", "top", "right", "bottom")
    return tuple(
        PageMark(mark["kind"], *(float(mark[edge]) for edge in edges))
        for mark in marks[:MOST_MARKS]
        if mark["kind"] in get_args(MarkKind) and all(0 <= mark[edge] <= 1 for edge in edges)
    )


#: Titles left behind by programs, not by people.
MACHINE_TITLE = re.compile(
    r"^(microsoft (word|powerpoint|excel)\b|untitled|img[_-]?\d|\(?(anonymous|unspecified|unknown|none|null)\)?$"
    r"|(new |word |google )?(document|dokument|presentation|book|mappe|slide|layout|print|printing|scan|titel|title)"
    r"[ _-]?\d*$|powerpoint presentation$|no title$|ohne titel|\S*_\S*$)"
    r"|\.(docx?|pptx?|xlsx?|indd|qxd|pdf|odt|rtf|txt|tex|dvi|hwpx?|pub)$|[\\/]",
    re.IGNORECASE,
)


def title_from_file_name(file_name: str) -> str:
    """Make a title from a file name: drop the ending, replace underscores by spaces, start with a capital."""
    stem, dot, ending = file_name.rpartition(".")  # unlike splitext, a name which is only an ending has no stem
    stem = stem if dot + ending.lower() in ENDINGS else file_name
    stem = re.sub(r"[_\s]+|(?<=\w)-(?=[^\W\d])", " ", stem).strip() if " " not in stem else stem.strip()
    if not stem:
        return "Document"
    return stem[0].upper() + stem[1:] if stem.islower() else stem


def title_from_metadata(title: str) -> str:
    """Return the title from the file's properties, or "" for a title which a program made."""
    title = " ".join(title.split())
    if not 4 <= len(title) <= 150 or MACHINE_TITLE.search(title) or not re.search(r"[^\W\d_]{2}", title):
        return ""
    return title


#: Author properties written by programs instead of a name.
NO_AUTHOR = re.compile(
    r"\(?(anonymous|unspecified|unknown|none|null|author|user|admin|administrator)\)?", re.IGNORECASE
)


def author_from_metadata(author: str) -> str:
    """Return the author from the file's properties, or "" for a program's placeholder."""
    author = " ".join(author.split())[:200]
    return "" if NO_AUTHOR.fullmatch(author) else author


#: How an original is served: shown by the browser, shown as plain text, or handed over to be saved.
Serving = Literal["shown", "as text", "saved"]


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options for loading a file: limits, the password for a PDF, and callbacks for progress and for each page read."""

    limits: ExtractionLimits = field(default_factory=ExtractionLimits)
    password: str | None = None
    #: Whether a wider gap between two lines in a PDF starts a new paragraph.
    has_paragraphs_by_gaps: bool = False
    #: Names of attached files stored as separate documents in the collection.
    separate_files: frozenset[str] = frozenset()
    on_page: Callable[[int, int], None] | None = None
    #: Takes the pages one after the other; the value is then without pages.
    take: Callable[[Page], None] | None = None


DEFAULT_OPTIONS = LoadOptions()


@dataclass(frozen=True, kw_only=True)
class Loader:
    """A file format: how files are recognised, the functions which load them, and how the product treats them."""

    kind: FileKind
    #: The name in lists, and the name in a sentence: "a Word document".
    label: str
    named: str
    media_type: str
    endings: tuple[str, ...]
    #: `module:function` in this package; takes bytes and `LoadOptions`, returns an `ExtractedDocument`.
    loads: str
    #: The same for a check before the file is accepted; without it, only size and name are checked.
    checks: str = ""
    #: Likewise, a function which yields name and bytes for each attached file.
    attaches: str = ""
    #: The first bytes of its files; several formats may share them.
    signature: bytes = b""
    #: Whether bytes surely have this format, or look like it if neither name nor media type decides.
    is_sure: Callable[[bytes], bool] = field(default=lambda content: False)
    looks_like: Callable[[bytes], bool] = field(default=lambda content: False)
    #: Whether its files contain only text.
    is_text: bool = True
    #: Whether its files have numbered pages for citations, and whether pages may be pictures for text recognition.
    has_pages: bool = False
    may_be_pictures: bool = False
    #: Whether its files have numbered rows for citations.
    has_rows: bool = False
    served: Serving = "saved"


#: The start of an HTML file, after blank space and comments. A comment ends at its first "-->" and is not retried
#: (`(?>`, `*+`): forty short comments would take hours.
HTML_BEGINNING = re.compile(
    rb"\s*+(?:(?><!--.{0,2000}?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|div|p|table)\b", re.I | re.S
)
LOOKED_AT = 8192

#: The start of a phone's pictures.
PHONE_PICTURE = re.compile(rb".{4}ftyp(?:heic|heix|heim|heis|hevc|hevx|hevm|hevs|mif1|msf1)", re.DOTALL)
#: The start of an archive, used by Office documents, and of a compound file, used by Office before 2007.
ZIP, COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: The file list in an archive ends within this number of bytes from the end.
LONGEST_ZIP_END = 65_557


def names_in_zip(content: bytes) -> bytes:
    """Return a ZIP archive's file list (central directory) in raw bytes, or b"" for other files."""
    place = content.rfind(b"PK\x05\x06", max(len(content) - LONGEST_ZIP_END, 0)) if content.startswith(ZIP) else -1
    if place < 0 or len(content) < place + 20:
        return b""
    size = int.from_bytes(content[place + 12 : place + 16], "little")
    return content[max(place - size, 0) : place]


#: The first field in a mail's head, and the end of the head.
FIELD, HEAD_END = re.compile(rb"[!-9;-~]{1,60}:"), re.compile(rb"\r?\n\r?\n|\r\r")


def looks_like_mail(content: bytes) -> bool:
    """Whether the bytes start with email headers: a sender, and a subject or a date."""
    head = HEAD_END.split(content[:LOOKED_AT], maxsplit=1)[0]
    names = {line.partition(b":")[0].lower() for line in head.splitlines()}
    return FIELD.match(head) is not None and b"from" in names and bool({b"subject", b"date"} & names)


#: The stream with the list of properties in an Outlook message, and the classes in the root entry: message, template,
#: and zeros from programs without a class.
MESSAGE_PROPERTIES = "__properties_version1.0".encode("utf-16-le")
MESSAGE_CLASSES = tuple(
    UUID(name).bytes_le
    for name in (
        "00020d0b-0000-0000-c000-000000000046",
        "0006f046-0000-0000-c000-000000000046",
        "00000000-0000-0000-0000-000000000000",
    )
)


def is_outlook(content: bytes) -> bool:
    """Whether the bytes are an Outlook message. Other compound files may contain messages too."""
    if not content.startswith(COMPOUND) or MESSAGE_PROPERTIES not in content:
        return False
    # The first entry in the directory describes the file.
    shift, sector = int.from_bytes(content[30:32], "little"), int.from_bytes(content[48:52], "little")
    place = (sector + 1) << min(shift, 12)
    return content[place + 80 : place + 96] in MESSAGE_CLASSES


def is_old_workbook(content: bytes) -> bool:
    """Whether the bytes are an Excel 97 workbook, rather than a message to which a workbook is attached."""
    return content.startswith(COMPOUND) and "Workbook".encode("utf-16-le") in content and not is_outlook(content)


#: At the start of Hangul documents from before 2000, and inside the compound files of later documents.
HANGUL = b"HWP Document File"


def is_hangul(content: bytes) -> bool:
    """Whether the bytes are a Hangul document (.hwp)."""
    return content.startswith(HANGUL) or (content.startswith(COMPOUND) and HANGUL in content)


LOADERS = (
    Loader(
        kind="pdf",
        label="PDF",
        named="a PDF",
        media_type="application/pdf",
        endings=(".pdf",),
        loads="pdf:load_pdf",
        checks="pdf:check_file",
        attaches="pdf:attached_files",
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
        loads="docx:load_docx",
        checks="docx:check_docx",
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
        loads="spreadsheet:load_xlsx",
        checks="spreadsheet:check_xlsx",
        signature=ZIP,
        is_sure=lambda content: b"xl/workbook.xml" in names_in_zip(content),
        is_text=False,
        has_rows=True,
    ),
    Loader(
        kind="xls",
        label="Excel 97",
        named="an Excel workbook of before 2007 (.xls)",
        media_type="application/vnd.ms-excel",
        endings=(".xls",),
        loads="spreadsheet:load_xls",
        checks="spreadsheet:check_xls",
        signature=COMPOUND,
        is_sure=is_old_workbook,
        is_text=False,
        has_rows=True,
    ),
    Loader(
        kind="ods",
        label="LibreOffice Calc",
        named="a LibreOffice spreadsheet (.ods)",
        media_type="application/vnd.oasis.opendocument.spreadsheet",
        endings=(".ods",),
        loads="spreadsheet:load_ods",
        checks="spreadsheet:check_ods",
        signature=ZIP,
        is_sure=lambda content: content[30:86].startswith(b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
        is_text=False,
        has_rows=True,
    ),
    Loader(
        kind="odt",
        label="LibreOffice Writer",
        named="a LibreOffice document (.odt)",
        media_type="application/vnd.oasis.opendocument.text",
        endings=(".odt",),
        loads="odt:load_odt",
        checks="odt:check_odt",
        signature=ZIP,
        is_sure=lambda content: content[30:].startswith(b"mimetypeapplication/vnd.oasis.opendocument.textPK"),
        is_text=False,
    ),
    Loader(
        kind="pptx",
        label="PowerPoint",
        named="a PowerPoint presentation (.pptx)",
        media_type="application/vnd.openxmlformats-officedocument.presentationml.presentation",
        endings=(".pptx", ".pptm", ".ppsx"),
        loads="pptx:load_pptx",
        checks="pptx:check_pptx",
        signature=ZIP,
        is_sure=lambda content: b"ppt/presentation.xml" in names_in_zip(content),
        is_text=False,
        has_pages=True,
    ),
    Loader(
        kind="epub",
        label="EPUB",
        named="a book (.epub)",
        media_type="application/epub+zip",
        endings=(".epub",),
        loads="epub:load_epub",
        checks="epub:check_epub",
        signature=ZIP,
        is_sure=lambda content: content[30:].startswith(b"mimetypeapplication/epub+zip"),
        is_text=False,
    ),
    Loader(
        kind="hwp",
        label="Hangul",
        named="a Hangul document (.hwp)",
        media_type="application/x-hwp",
        endings=(".hwp",),
        loads="hwp:load_hwp",
        checks="hwp:check_hwp",
        signature=COMPOUND,
        is_sure=is_hangul,
        is_text=False,
    ),
    Loader(
        kind="hwpx",
        label="Hangul (XML)",
        named="a Hangul document (.hwpx)",
        media_type="application/hwp+zip",
        endings=(".hwpx",),
        loads="hwp:load_hwp",
        checks="hwp:check_hwp",
        signature=ZIP,
        is_sure=lambda content: content[30:].startswith(b"mimetypeapplication/hwp+zip"),
        is_text=False,
    ),
    Loader(
        kind="rtf",
        label="RTF",
        named="a document in rich text format (.rtf)",
        media_type="application/rtf",
        endings=(".rtf",),
        loads="rtf:load_rtf",
        checks="rtf:check_rtf",
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
        loads="eml:load_eml",
        checks="eml:check_eml",
        attaches="eml:attached_to_eml",
        looks_like=looks_like_mail,
    ),
    Loader(
        kind="msg",
        label="Outlook",
        named="an Outlook message (.msg)",
        media_type="application/vnd.ms-outlook",
        endings=(".msg",),
        loads="eml:load_msg",
        checks="eml:check_msg",
        attaches="eml:attached_to_msg",
        signature=COMPOUND,
        is_sure=is_outlook,
        is_text=False,
    ),
    Loader(
        kind="png",
        label="PNG",
        named="a picture (.png)",
        media_type="image/png",
        endings=(".png",),
        loads="pictures:load_picture",
        checks="pictures:check_picture",
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
        loads="pictures:load_picture",
        checks="pictures:check_picture",
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
        loads="pictures:load_picture",
        checks="pictures:check_picture",
        signature=b"",
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
        loads="pictures:load_picture",
        checks="pictures:check_picture",
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
        loads="pictures:load_picture",
        checks="pictures:check_picture",
        signature=b"BM",
        is_sure=lambda content: content.startswith(b"BM") and content[6:10] == b"\0\0\0\0",
        is_text=False,
        may_be_pictures=True,
    ),
    Loader(
        kind="heic",
        label="HEIC",
        named="a photograph of a phone (.heic)",
        media_type="image/heic",
        endings=(".heic", ".heif"),
        loads="pictures:load_picture",
        checks="pictures:check_picture",
        is_sure=lambda content: PHONE_PICTURE.match(content) is not None,
        is_text=False,
        has_pages=True,
        may_be_pictures=True,
    ),
    Loader(
        kind="html",
        label="HTML",
        named="HTML",
        media_type="text/html",
        endings=(".html", ".htm", ".xhtml"),
        loads="html:load_html",
        looks_like=lambda content: HTML_BEGINNING.match(content[:LOOKED_AT]) is not None,
    ),
    Loader(
        kind="markdown",
        label="Markdown",
        named="Markdown",
        media_type="text/markdown",
        endings=(".md", ".markdown"),
        loads="markdown:load_markdown",
        served="as text",
    ),
    Loader(
        kind="csv",
        label="CSV",
        named="CSV",
        media_type="text/csv",
        endings=(".csv", ".tsv"),
        loads="text:load_csv",
        served="as text",
    ),
    Loader(
        kind="text",
        label="Text",
        named="plain text",
        media_type="text/plain",
        endings=(".txt", ".text", ".log"),
        loads="text:load_text",
        checks="text:check_text",
        served="as text",
    ),
)

BY_KIND: Mapping[FileKind, Loader] = {loader.kind: loader for loader in LOADERS}
MIME_TYPES: Mapping[FileKind, str] = {loader.kind: loader.media_type for loader in LOADERS}
BY_MEDIA_TYPE: Mapping[str, Loader] = {loader.media_type: loader for loader in LOADERS}
ENDINGS: Mapping[str, FileKind] = {ending: loader.kind for loader in LOADERS for ending in loader.endings}
PICTURES = tuple(loader for loader in LOADERS if loader.loads == "pictures:load_picture")
PICTURE_ENDINGS = frozenset(ending for loader in PICTURES for ending in loader.endings)
PICTURE_TYPES = frozenset(loader.media_type for loader in PICTURES)
#: Modules to import in the sandbox before confinement.
MODULES = tuple(dict.fromkeys(f"{__name__}.{loader.loads.partition(':')[0]}" for loader in LOADERS))
#: The most attached files taken from a file.
MOST_ATTACHED = 100
#: Control characters which never occur in text; a file with them is binary.
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
#: The largest share of control characters in a text; stray ones occur.
MOST_CONTROLS = 0.02
#: The first bytes of foreign formats sometimes saved as text files, and the formats' names.
FOREIGN_SIGNATURES = (
    (ZIP, "an archive"),
    (COMPOUND, "an Office document in the format of before 2007"),
    (b"GIF8", "a picture"),
)


def is_picture(content: bytes) -> bool:
    """Whether the bytes are an image in a supported format."""
    return any(loader.is_sure(content) for loader in PICTURES)


def formats_in_words() -> str:
    """Return the formats for use in a sentence: "a PDF, a Word document (.docx), HTML, Markdown or plain text"."""
    *first_formats, last_format = (loader.named for loader in LOADERS)
    return f"{', '.join(first_formats)} or {last_format}"


def is_hidden(path: PurePath) -> bool:
    """Whether any name in the path starts with "." (hidden) or "~$" (an Office lock file)."""
    return any(part.startswith((".", "~$")) and part != ".." for part in path.parts)


def is_readable(path: PurePath) -> bool:
    """Whether to read a file in a folder: the name has a known ending, and nothing in the path is hidden."""
    return path.suffix.lower() in ENDINGS and not is_hidden(path)


def is_followed(path: PurePath) -> bool:
    """Whether a source imports a file: readable and not an image, because shared drives are full of photographs."""
    return is_readable(path) and path.suffix.lower() not in PICTURE_ENDINGS


def has_rows(file_name: str) -> bool:
    """Whether files with this ending have numbered rows, like workbooks."""
    kind = ENDINGS.get(PurePosixPath(file_name.lower()).suffix)
    return kind is not None and BY_KIND[kind].has_rows


def check(content: bytes, file_name: str, mime_type: str = "", options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check whether a file can be read; return a `CheckedFile`. Raises a `DocumentError` naming the problem."""
    loader = _loader_for(content, file_name, mime_type, options)
    checked = _function(loader.checks)(content, options) if loader.checks else CheckedFile(page_count=1)
    return CheckedFile(page_count=checked.page_count, kind=loader.kind, decrypted=checked.decrypted)


def load(
    content: bytes, file_name: str, mime_type: str = "", options: LoadOptions = DEFAULT_OPTIONS
) -> ExtractedDocument:
    """Load a file in any format: pages, sections, title, author and language. Raises `DocumentError`s."""
    loader = _loader_for(content, file_name, mime_type, options)
    loaded: ExtractedDocument = _function(loader.loads)(content, options)
    if loader.may_be_pictures:
        return loaded
    return replace(loaded, pages=tuple(map(_warn_if_blank, loaded.pages)))


def _warn_if_blank(page: Page) -> Page:
    return page if page.text.strip() or page.warnings else replace(page, warnings=(BLANK_PAGE,))


def attached(content: bytes, file_name: str, options: LoadOptions = DEFAULT_OPTIONS) -> list[AttachedFile]:
    """Return the attached files with a known ending.

    The size limit for a single file applies to all of them together. Images are left out, because most images in emails
    belong to signatures. Raises `DocumentError`s.
    """
    loader = _loader_for(content, file_name, "", options)
    files: list[AttachedFile] = []
    remaining_bytes = options.limits.maximum_bytes
    for name, body in _function(loader.attaches)(content, options) if loader.attaches else ():
        kind = ENDINGS.get(PurePosixPath(name.lower()).suffix)
        if (
            kind is None
            or is_hidden(PurePosixPath(name))
            or MIME_TYPES[kind].startswith("image/")
            or not 0 < len(body) <= remaining_bytes
        ):
            continue
        remaining_bytes -= len(body)
        files.append(AttachedFile(name, body))
        if len(files) == MOST_ATTACHED:
            break
    return files


def _loader_for(content: bytes, file_name: str, mime_type: str, options: LoadOptions) -> Loader:
    loader = BY_KIND[kind_of(content, file_name, mime_type) if content else "pdf"]
    # A file named .pdf goes to the PDF loader, which can name the fault.
    if loader.kind != "pdf":
        if not content.strip():
            raise FileEmpty
        if len(content) > options.limits.maximum_bytes:
            raise FileTooLarge
        require_as_named(loader, content, file_name)
    return loader


def _function(place: str) -> Callable[[bytes, LoadOptions], Any]:
    module, _, name = place.partition(":")
    function: Callable[[bytes, LoadOptions], Any] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return function


def kind_of(content: bytes, file_name: str, mime_type: str = "") -> FileKind:
    """Detect a file's format by the name's ending, else by the first bytes, else by the declared type.

    A file named .pdf always counts as a PDF, for a precise error from the PDF loader. Raises `FileKindUnknown`.
    """
    ending = re.search(r"\.[^./\\]+$", file_name.lower())
    if ending and ending[0] in ENDINGS:
        return ENDINGS[ending[0]]
    for loader in LOADERS:
        if loader.is_sure(content):
            return loader.kind
    declared = BY_MEDIA_TYPE.get(mime_type.split(";")[0].strip().lower())
    if declared is not None:
        return declared.kind
    for loader in LOADERS:
        if loader.looks_like(content):
            return loader.kind
    if ending is None and content and not BINARY.search(content[:LOOKED_AT]):
        return "text"
    raise FileKindUnknown(f"Files of this kind cannot be read. Upload {formats_in_words()}.")


def require_as_named(loader: Loader, content: bytes, file_name: str) -> None:
    """Raise `FileNotAsNamed` if the content does not have the format which the file name says.

    A text file may contain markup, but no binary data.
    """
    ending = file_name[file_name.rfind(".") :].lower() if "." in file_name else "a text"
    for other in LOADERS:
        is_other = other.signature and content.startswith(other.signature) and other.is_sure(content)
        # Programs export tables as HTML and name them .xls.
        is_markup = not loader.is_text and not content.startswith(loader.signature) and other.looks_like(content)
        # Phones and browsers often save a WebP as .jpg.
        if other.loads != loader.loads and (is_other or is_markup):
            hint = f"Rename the file so that its name ends in {other.endings[0]}, and upload it again."
            raise FileNotAsNamed(f"This file is called {ending}, but it is {other.named}. {hint}")
    if not loader.is_text:
        return
    for signature, means in FOREIGN_SIGNATURES:
        if content.startswith(signature):
            hint = "Save it as a PDF or as text and upload that."
            raise FileNotAsNamed(f"This file is called {ending}, but it is {means}. {hint}")
    if _is_binary(content):
        raise FileNotAsNamed(f"This file is called {ending}, but it holds no text. Check that it is the right file.")


def _is_binary(content: bytes) -> bool:
    from rag.ingestion.loaders.decoding import decode

    text, _ = decode(content[:LOOKED_AT])
    return len(CONTROL.findall(text)) > len(text) * MOST_CONTROLS
