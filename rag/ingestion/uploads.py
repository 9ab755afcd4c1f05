"""Accept files: check and unlock them, store them by content hash, and create documents."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count
from typing import get_args
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.errors import DocumentAlreadyStored, DocumentError, InvalidInput, NoTextInPdf
from rag.ingestion.document_jobs import JobQueue
from rag.ingestion.document_rows import find_copies, find_document
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.format_table import file_formats
from rag.ingestion.loaders.page_text import BLANK_PAGE
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.titles import title_from_file_name
from rag.language import MORE, N_
from rag.profiles import profile_of
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.types import (
    ChunkingMethod,
    Collection,
    DocumentStatus,
    Identity,
    Page,
    PdfType,
    UploadOptions,
)

#: States in which uploading the same file starts again.
CAN_BE_TRIED_AGAIN = frozenset({DocumentStatus.FAILED, DocumentStatus.NEEDS_OCR})
#: The longest stored name, in characters; file systems allow 255 bytes.
LONGEST_NAME = 200
#: Invisible characters inside words in Persian and Indic scripts.
JOINERS = "\u200c\u200d"
DEFAULT_OPTIONS = UploadOptions()


class Uploads:
    """Checks and stores files, and creates their documents. With a queue, the documents are queued for reading."""

    def __init__(self, database: Database, files: Originals, sandbox: Sandbox, queue: JobQueue | None = None) -> None:
        self._database = database
        self._files = files
        self._sandbox = sandbox
        self._queue = queue

    def add(
        self,
        collection: Collection,
        file_name: str,
        content: bytes,
        options: UploadOptions = DEFAULT_OPTIONS,
        *,
        added_by: Identity | None = None,
    ) -> list[UUID]:
        """Add a file, and the attachments in a folder named after the file. Returns the document ids, the file's id
        first.

        Attachments which cannot be read, or are already stored, are skipped. Raises `InvalidInput` for an unknown
        chunking method or PDF type, a `DocumentError` for an unusable file, and `DocumentAlreadyStored`.
        """
        tenant_id, host = collection.tenant_id, display_name(file_name)
        document_ids = [self.add_alone(collection, file_name, content, options, added_by=added_by)]
        attached_names: list[str] = []
        names: set[str] = set()
        if file_formats().by_kind[kind_of(content, host)].attaches:
            attached_options = replace(options, password=None, replaces=None)
            password = options.password
            with suppress(DocumentError):
                for file in self._sandbox.attached(content, file_name=host, password=password, tenant_id=tenant_id):
                    name = _free_name(display_name(file.name), names)
                    names.add(name)
                    try:
                        path = f"{file_name}/{name}"
                        added = self.add_alone(
                            collection, path, file.content, attached_options, added_by=added_by, queue=self._queue
                        )
                        document_ids.append(added)
                    except DocumentAlreadyStored:
                        pass  # already stored and searchable
                    except DocumentError:
                        continue
                    attached_names.append(file.name)
        if attached_names:
            noted = {"document_id": document_ids[0], "metadata": Jsonb({"attached": attached_names}), "message": None}
            self._database.execute(tenant_id, "note_metadata", **noted)
        if self._queue is not None:
            self._queue.enqueue(tenant_id, document_ids[0])
        return document_ids

    def add_alone(
        self,
        collection: Collection,
        file_name: str,
        content: bytes,
        options: UploadOptions = DEFAULT_OPTIONS,
        *,
        added_by: Identity | None = None,
        queue: JobQueue | None = None,
    ) -> UUID:
        """Add a file without the attachments, and return the document's id. Raises the errors from `add`.

        With `queue`, the document is queued in the same transaction.
        """
        tenant_id = collection.tenant_id
        profile = profile_of(collection)
        sha256 = hashlib.sha256(content).hexdigest()
        name, folder = display_name(file_name), upload_folder(file_name)
        methods, kinds = get_args(ChunkingMethod), get_args(PdfType)
        if options.chunking_method is not None and options.chunking_method not in methods:
            allowed = ", ".join(methods)
            raise InvalidInput(
                f"The splitting method “{options.chunking_method}” does not exist. Choose one of: {allowed}."
            )
        if options.pdf_type is not None and options.pdf_type not in kinds:
            allowed = ", ".join(kinds)
            raise InvalidInput(f"The kind of PDF “{options.pdf_type}” does not exist. Choose one of: {allowed}.")
        _require_new(self._database, collection, sha256, name, folder, options.replaces)
        _require_unsynced(self._database, collection, sha256)
        checked = self._sandbox.check(content, file_name=name, password=options.password, tenant_id=tenant_id)
        stored = checked.decrypted or content
        key = hashlib.sha256(stored).hexdigest()
        file_path = f"{key[:2]}/{key}"
        with self._database.transaction(added_by or tenant_id) as connection:
            connection.execute(queries["lock_stored_file"], {"file_path": file_path})
            self._files.put(tenant_id, stored)
            parameters = {
                "collection_id": collection.id,
                "title": title_of_upload(name, folder),
                "file_name": name,
                "upload_folder": folder,
                "file_path": file_path,
                "file_size": len(content),
                "sha256": sha256,
                "mime_type": file_formats().by_kind[checked.kind].media_type,
                "page_count": checked.page_count,
                "pdf_type": options.pdf_type or profile.reading.pdf_type,
                "chunking_method": options.chunking_method or profile.chunking.chunking_method,
                "generate_metadata": options.generate_metadata,
                "added_by": added_by.account_id if added_by else None,
                "is_version": options.is_version,
                "confirmed_up_to": options.confirmed_up_to,
                "replaces": options.replaces,
                "is_sample": options.is_sample,
            }
            connection.execute(queries["lock_name"], parameters)
            added = connection.execute(queries["add_document"], parameters).fetchone()
            if added is not None and queue is not None:
                queue.enqueue(tenant_id, added[0], connection=connection)
        if added is None:
            _require_new(self._database, collection, sha256, name, folder, options.replaces)
            raise DocumentAlreadyStored
        document_id: UUID = added[0]
        return document_id


def _free_name(name: str, used_names: Set[str]) -> str:
    """Return a name which is not used yet, numbered if necessary: "Plan.pdf", "Plan (2).pdf"."""
    stem, dot, ending = name.rpartition(".")
    numbered = (f"{stem} ({number}){dot}{ending}" for number in count(2))
    return next(free for free in chain([name], numbered) if free not in used_names)


def upload_folder(file_name: str) -> str:
    """Return the folders in an uploaded file's path, separated by slashes; "" without folders."""
    folders = [" ".join(part.split()) for part in _parts(file_name)[:-1]]
    # Drives, "." and ".." say nothing about the file.
    names = [part for part in folders if part.strip(". ") and not part.endswith(":")]
    return "/".join(names)[-LONGEST_NAME:].strip("/")


def title_of_upload(name: str, folder: str) -> str:
    """Return a title from the file name and its last folder: "Leave policy (Germany)"."""
    title = title_from_file_name(name)
    return f"{title} ({folder.rpartition('/')[2]})" if folder else title


def _parts(file_name: str) -> list[str]:
    """Split a path at slashes, and remove control characters and Unicode direction overrides."""
    name = unicodedata.normalize("NFC", file_name.encode("utf-8", "replace").decode("utf-8"))
    name = "".join(c for c in name if c in JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn"))
    # The slash in a closing HTML tag is no folder.
    return re.split(r"(?<!<)[/\\]", name)


def display_name(file_name: str) -> str:
    """Return the file name in a path for display, without control characters and Unicode direction overrides."""
    name = " ".join(_parts(file_name)[-1].split())
    if not name.strip(". "):
        return "document.pdf"
    if len(name) > LONGEST_NAME:
        match = re.search(r"\.[A-Za-z]{2,8}$", name)
        ending = match[0] if match else ""
        name = name[: LONGEST_NAME - len(ending) - 1] + "…" + ending
    return name


def _require_new(
    database: Database, collection: Collection, sha256: str, name: str, folder: str, replaces: UUID | None
) -> None:
    """Raise `DocumentAlreadyStored` if the collection has a document with this content.

    An earlier version of the document to replace may have the same content.
    """
    copies = find_copies(database, collection, sha256)
    present = next((d for d in copies if d.status is not DocumentStatus.SUPERSEDED), None)
    if replaces is None:
        is_back = any((d.file_name, d.upload_folder) == (name, folder) for d in copies)
    else:
        replaced = find_document(database, collection.tenant_id, replaces)
        is_back = replaced is not None and any(d.original_id == replaced.original_id for d in copies)
    duplicate = present or (copies[0] if copies and not is_back else None)
    if duplicate is not None:
        raise DocumentAlreadyStored(
            f"This file has the same content as “{duplicate.title}”, which is already stored.",
            document_id=duplicate.id,
            title=duplicate.title,
        )


def _require_unsynced(database: Database, collection: Collection, sha256: str) -> None:
    """Raise `DocumentAlreadyStored` if a source has already added this content."""
    where = {"collection_id": collection.id, "kind": None, "digest": sha256, "file_path": f"{sha256[:2]}/{sha256}"}
    with database.transaction(collection.tenant_id) as connection:
        row = connection.execute(queries["find_same_content"], where).fetchone()
    if row is not None:
        raise DocumentAlreadyStored(
            f"This file has the same content as “{row[1]}”, which is already stored.",
            document_id=row[0],
            title=row[1],
        )


#: Message for a document whose tags wait for a key or for money.
TAGS_WAIT = N_("Searches already find this document. Its summary, topics and questions are still to be written.")
#: Singular and plural.
AWAITED = (
    N_(
        "Page {pages} will be read by text recognition. The amount of text is not known yet, so the estimate assumes "
        "{characters} characters a page."
    ),
    N_(
        "Pages {pages} will be read by text recognition. The amount of text is not known yet, so the estimate "
        "assumes {characters} characters a page."
    ),
)
EMPTY = (
    N_("Page {pages} has no text and cannot be searched. Scanned pages need text recognition."),
    N_("Pages {pages} have no text and cannot be searched. Scanned pages need text recognition."),
)
ON_PAGES = (N_("Page {pages}: {remark}"), N_("Pages {pages}: {remark}"))
IN_BRACKETS = (N_("(Page {pages})"), N_("(Pages {pages})"))
ALL_BLANK = N_("This file holds no text. Check it on your computer and upload it again.")


def reading_message(pages: Sequence[Page], *, awaiting: Sequence[int] = (), assumed: int = 0) -> str:
    """Return a sentence for administrators about problems on pages, or "" without problems.

    `awaiting` are the numbers of pages which will be recognised after confirmation. `assumed` is the character count
    which the estimate assumes for each.
    """
    sentences = []
    if awaiting:
        sentences.append(on_pages(AWAITED, awaiting, characters=f"{assumed:,}"))
    empty = [p.number for p in pages if not p.text.strip() and not p.warnings and p.number not in awaiting]
    if empty:
        sentences.append(on_pages(EMPTY, empty))
    by_warning: dict[str, list[int]] = {}
    for page in pages:
        for warning in page.warnings:
            by_warning.setdefault(warning, []).append(page.number)
    for warning, numbers in by_warning.items():
        sentences.append(on_pages(ON_PAGES, numbers, remark=warning) if len(numbers) < len(pages) else warning)
    return " ".join(sentences)


def no_text_message(pages: Sequence[Page]) -> str:
    """Return a sentence which says why a document has no text: the pages are scans, or their text is unusable."""
    if all_blank(pages):
        return ALL_BLANK
    scanned = [page.number for page in pages if BLANK_PAGE not in page.warnings]
    if any(page.warnings for page in pages if page.number in set(scanned)):
        return reading_message(pages)
    return f"{NoTextInPdf()} {on_pages(IN_BRACKETS, scanned)}"


def all_blank(pages: Sequence[Page]) -> bool:
    """Whether every page is blank. Recognition would then find no text."""
    return bool(pages) and all(BLANK_PAGE in page.warnings for page in pages)


def on_pages(sentences: tuple[str, str], numbers: Sequence[int], **values: str) -> str:
    """Return a sentence about pages, in the singular or plural, with their numbers filled in."""
    return sentences[len(numbers) > 1].format(pages=page_list(numbers), **values)


def page_list(numbers: Sequence[int]) -> str:
    """Format page numbers: "4", "1–3, 7". A long list is cut."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    listed = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in ranges[:12])
    return f"{listed}{MORE if len(ranges) > 12 else ''}"
