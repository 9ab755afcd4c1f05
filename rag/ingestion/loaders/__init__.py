"""Convert files to pages: the functions `check`, `load` and `attached`.

They run in the sandbox process, which imports the loaders before confinement. The application imports no loader.
`values` has their parameters and results, and `format_table` lists the formats.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from rag.errors import FileEmpty, FileTooLarge
from rag.ingestion.loaders.detection import kind_of, require_as_named
from rag.ingestion.loaders.format_table import file_formats, is_hidden
from rag.ingestion.loaders.loader import Loader, function_of, packages_missing
from rag.ingestion.loaders.page_text import BLANK_PAGE
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, AttachedFile, CheckedFile, ExtractedDocument, LoadOptions
from rag.types import Page

#: The most attached files taken from a file.
MOST_ATTACHED = 100


def check(content: bytes, file_name: str, mime_type: str = "", options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check whether a file can be read; return a `CheckedFile`. Raises a `DocumentError` naming the problem."""
    loader = _loader_for(content, file_name, mime_type, options)
    checked = function_of(loader.checks)(content, options) if loader.checks else CheckedFile(page_count=1)
    return CheckedFile(page_count=checked.page_count, kind=loader.kind, decrypted=checked.decrypted)


def load(
    content: bytes, file_name: str, mime_type: str = "", options: LoadOptions = DEFAULT_OPTIONS
) -> ExtractedDocument:
    """Load a file in any format: pages, sections, title, author and language. Raises `DocumentError`s."""
    loader = _loader_for(content, file_name, mime_type, options)
    loaded: ExtractedDocument = function_of(loader.loads)(content, options)
    if loader.may_be_pictures:
        return loaded
    return replace(loaded, pages=tuple(map(_warn_if_blank, loaded.pages)))


def _warn_if_blank(page: Page) -> Page:
    return page if page.text.strip() or page.warnings else replace(page, warnings=(BLANK_PAGE,))


def attached(content: bytes, file_name: str, options: LoadOptions = DEFAULT_OPTIONS) -> list[AttachedFile]:
    """Return the attached files which are in a readable format, judging by the endings of their names.

    Together, they must not exceed the size limit for a single file. Images are left out, because most images in emails
    belong to signatures. Raises `DocumentError`s.
    """
    loader = _loader_for(content, file_name, "", options)
    files: list[AttachedFile] = []
    remaining_bytes = options.limits.maximum_bytes
    for name, body in function_of(loader.attaches)(content, options) if loader.attaches else ():
        own_loader = file_formats().by_ending.get(PurePosixPath(name.lower()).suffix)
        if (
            own_loader is None
            or not own_loader.is_installed
            or is_hidden(PurePosixPath(name))
            or own_loader.media_type.startswith("image/")
            or not 0 < len(body) <= remaining_bytes
        ):
            continue
        remaining_bytes -= len(body)
        files.append(AttachedFile(name, body))
        if len(files) == MOST_ATTACHED:
            break
    return files


def _loader_for(content: bytes, file_name: str, mime_type: str, options: LoadOptions) -> Loader:
    loader = file_formats().by_kind[kind_of(content, file_name, mime_type) if content else "pdf"]
    # A file named .pdf goes to the PDF loader, which can name the fault.
    if loader.kind != "pdf":
        if not content.strip():
            raise FileEmpty
        if len(content) > options.limits.maximum_bytes:
            raise FileTooLarge
        require_as_named(loader, content, file_name)
        if not loader.is_installed:
            raise packages_missing()
    return loader
