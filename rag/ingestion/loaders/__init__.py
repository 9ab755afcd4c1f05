"""Turn the bytes of a file into pages: one table of formats, one entry for all of them, and the values they return.

`check` and `load` run in the sandbox process, which imports the loaders before it confines itself; the application
imports none of them. CONTRIBUTING.md says how a format is added.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

from rag.errors import FileEmpty, FileKindUnknown, FileNotAsNamed, FileTooLarge
from rag.settings import Settings
from rag.types import Page, Section, sections_from_json, storable, storable_json

#: The name of a format in `LOADERS`.
FileKind: TypeAlias = str


@dataclass(frozen=True, kw_only=True)
class ExtractionLimits:
    """Limits of a single file."""

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
    """A file that can be opened. `decrypted` is the same PDF without its protection, if it had one."""

    page_count: int
    kind: FileKind = "pdf"
    decrypted: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class ExtractedDocument:
    """A file as it was read. `language` is declared by the file, often wrongly or not at all.

    `metadata` holds what only some kinds of files have, as JSON: `links` and `backdated_at` of a post.
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
    """Read the value from JSON, with every text free of what a database cannot hold."""
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
    """Read a page from JSON."""
    return Page(
        number=int(page["number"]),
        text=storable(page["text"]),
        method=page["method"] if page["method"] in ("text", "ocr") else "none",
        label=storable(page["label"]),
        warnings=tuple(storable(warning) for warning in page["warnings"]),
    )


#: Titles that programs leave behind rather than people.
MACHINE_TITLE = re.compile(
    r"^(microsoft (word|powerpoint|excel)\b|untitled|img[_-]?\d|\(?(anonymous|unspecified|unknown|none|null)\)?$"
    r"|(new |word |google )?(document|dokument|presentation|book|mappe|slide|layout|print|printing|scan|titel|title)"
    r"[ _-]?\d*$|powerpoint presentation$|no title$|ohne titel|\S*_\S*$)"
    r"|\.(docx?|pptx?|xlsx?|indd|qxd|pdf|odt|rtf|txt|tex|dvi|hwpx?|pub)$|[\\/]",
    re.IGNORECASE,
)


def title_from_file_name(file_name: str) -> str:
    """Make a title of a file name: no ending, underscores as spaces, a capital first."""
    stem, dot, ending = file_name.rpartition(".")  # unlike splitext, a name that is only an ending has no stem
    stem = stem if dot + ending.lower() in ENDINGS else file_name
    stem = re.sub(r"[_\s]+|(?<=\w)-(?=[^\W\d])", " ", stem).strip() if " " not in stem else stem.strip()
    if not stem:
        return "Document"
    return stem[0].upper() + stem[1:] if stem.islower() else stem


def title_from_metadata(title: str) -> str:
    """Return the file's own title; empty when it looks like a program's rather than a person's."""
    title = " ".join(title.split())
    if not 4 <= len(title) <= 150 or MACHINE_TITLE.search(title) or not re.search(r"[^\W\d_]{2}", title):
        return ""
    return title


#: How an original is served: shown by the browser, shown as plain text, or handed over to be saved.
Serving = Literal["shown", "as text", "saved"]


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of one load: its limits, the password of a PDF, and callbacks for progress and for each page read."""

    limits: ExtractionLimits = field(default_factory=ExtractionLimits)
    password: str | None = None
    on_page: Callable[[int, int], None] | None = None
    #: Takes the pages one after the other; they are not in the value then.
    take: Callable[[Page], None] | None = None


DEFAULT_OPTIONS = LoadOptions()


@dataclass(frozen=True, kw_only=True)
class Loader:
    """A format: how to recognise its files, what loads them, and how the rest of the product treats them."""

    kind: FileKind
    #: As lists show it, and as a sentence names it: "a Word document".
    label: str
    named: str
    media_type: str
    endings: tuple[str, ...]
    #: `module:function` in this package, taking bytes and `LoadOptions`, giving an `ExtractedDocument`.
    loads: str
    #: The same for a look before the file is accepted; without one, the format is only as large and as named as it may.
    checks: str = ""
    #: Bytes that its files begin with, and what a file with them is, for files that are called something else.
    signature: bytes = b""
    signature_means: str = ""
    #: Whether bytes are surely of this format, or look like it where neither name nor media type says more.
    is_sure: Callable[[bytes], bool] = field(default=lambda content: False)
    looks_like: Callable[[bytes], bool] = field(default=lambda content: False)
    #: Its files hold text and nothing else.
    is_text: bool = True
    #: Its files have pages, which may be pictures that text recognition reads.
    has_pages: bool = False
    served: Serving = "saved"


#: How an HTML file begins, blank space and comments before it left out.
HTML_BEGINNING = re.compile(
    rb"\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|body|div|p|table)\b", re.I | re.S
)
LOOKED_AT = 8192

LOADERS = (
    Loader(
        kind="pdf",
        label="PDF",
        named="a PDF",
        media_type="application/pdf",
        endings=(".pdf",),
        loads="pdf:load_pdf",
        checks="pdf:check_file",
        signature=b"%PDF-",
        signature_means="a PDF",
        is_sure=lambda content: b"%PDF-" in content[:1024],
        is_text=False,
        has_pages=True,
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
        signature=b"PK\x03\x04",
        signature_means="a Word document or an archive",
        is_sure=lambda content: content.startswith(b"PK\x03\x04") and b"word/" in content,
        is_text=False,
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
        loads="text:load_markdown",
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
#: Modules that the sandbox imports before it confines itself.
MODULES = tuple(dict.fromkeys(f"{__name__}.{loader.loads.partition(':')[0]}" for loader in LOADERS))
#: Control characters that no text has; a file with them is of some binary kind.
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
#: A text has a stray control character at most.
MOST_CONTROLS = 0.02
#: How files of other formats begin that are called a text now and then, and what they are.
FOREIGN_SIGNATURES = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document in the format of before 2007"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"{\\rtf", "a document in rich text format"),
)


def formats_in_words() -> str:
    """Return the formats for a sentence: "a PDF, a Word document (.docx), HTML, Markdown or plain text"."""
    *others, last = (loader.named for loader in LOADERS)
    return f"{', '.join(others)} or {last}"


def is_hidden(path: PurePath) -> bool:
    """Return whether a file or a folder above it is hidden, or an office program's copy of an open file."""
    return any(part.startswith((".", "~$")) and part != ".." for part in path.parts)


def is_readable(path: PurePath) -> bool:
    """Return whether a file of a folder is taken: it has a known ending and is not hidden."""
    return path.suffix.lower() in ENDINGS and not is_hidden(path)


def check(content: bytes, file_name: str, mime_type: str = "", options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check whether the file can be read at all. Raises the `DocumentError` that says why not."""
    loader = _loader_for(content, file_name, mime_type, options)
    checked = _function(loader.checks)(content, options) if loader.checks else CheckedFile(page_count=1)
    return CheckedFile(page_count=checked.page_count, kind=loader.kind, decrypted=checked.decrypted)


def load(
    content: bytes, file_name: str, mime_type: str = "", options: LoadOptions = DEFAULT_OPTIONS
) -> ExtractedDocument:
    """Load the pages of a file of any format, with sections and what it says of itself. Raises `DocumentError`s."""
    loader = _loader_for(content, file_name, mime_type, options)
    loaded: ExtractedDocument = _function(loader.loads)(content, options)
    return loaded


def _loader_for(content: bytes, file_name: str, mime_type: str, options: LoadOptions) -> Loader:
    loader = BY_KIND[kind_of(content, file_name, mime_type) if content else "pdf"]
    # A file named .pdf goes to the PDF loader, which can say what is wrong with it.
    if not loader.has_pages:
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
    """Tell the kind of a file by its name, else by its first bytes, else by its declared type.

    A file named .pdf counts as a PDF, so that the PDF loader says what is wrong with it. Raises `FileKindUnknown`.
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
    """Raise `FileNotAsNamed` when the bytes are of another format than the name says.

    Markup in a file of plain text is what it is; what cannot be text at all is refused.
    """
    ending = file_name[file_name.rfind(".") :].lower() if "." in file_name else "a text"
    for other in LOADERS:
        if other is not loader and other.signature and content.startswith(other.signature):
            hint = f"Call it {other.endings[0]} and upload it again."
            raise FileNotAsNamed(f"This file is called {ending}, but it is {other.signature_means}. {hint}")
    if not loader.is_text:
        return
    for signature, means in FOREIGN_SIGNATURES:
        if content.startswith(signature):
            hint = "Save it as a PDF or as text and upload that."
            raise FileNotAsNamed(f"This file is called {ending}, but it is {means}. {hint}")
    if _is_binary(content):
        raise FileNotAsNamed(f"This file is called {ending}, but it holds no text. Check that it is the right file.")


def _is_binary(content: bytes) -> bool:
    from rag.ingestion.loaders.text import decode

    text, _ = decode(content[:LOOKED_AT])
    return len(CONTROL.findall(text)) > len(text) * MOST_CONTROLS
