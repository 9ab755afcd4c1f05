"""The way in: a file is checked, unlocked, stored under its content and given its document."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import replace
from typing import Protocol
from uuid import UUID

from psycopg import Connection

from rag.errors import DocumentAlreadyStored
from rag.ingestion.extracted import title_from_file_name
from rag.ingestion.loaders import MIME_TYPES
from rag.ingestion.loaders.sandbox import Sandbox
from rag.profiles import profile_of
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.types import ChunkingMethod, Collection, Document, DocumentPage, DocumentStatus, Identity, PdfType, Step, Who

#: Longest name kept, in characters; file systems allow 255 bytes.
LONGEST_NAME = 200
#: Invisible, but part of words in Persian and Indic scripts.
JOINERS = "\u200c\u200d"


class JobQueue(Protocol):
    """Where work on documents is left."""

    def enqueue(self, tenant_id: str, document_id: UUID, *, connection: Connection | None = None) -> None: ...


def find_documents(
    database: Database,
    who: Who,
    *,
    document_id: UUID | None = None,
    collection_id: UUID | None = None,
    sha256: str | None = None,
    original_id: UUID | None = None,
    with_superseded: bool = True,
    status: DocumentStatus | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[Document]:
    """Documents of a tenant that meet all conditions given, newest first; versions are documents of their own.

    At most `limit` of them, after the first `offset`.
    """
    rows = database.fetch_all(
        who,
        "find_documents",
        Document,
        document_id=document_id,
        collection_id=collection_id,
        sha256=sha256,
        original_id=original_id,
        with_superseded=with_superseded,
        status=status,
        limit=limit,
        offset=offset,
    )
    return [replace(row, status=DocumentStatus(row.status), step=Step(row.step)) for row in rows]


def find_pages(
    database: Database, who: Who, document_id: UUID, *, limit: int | None = None, offset: int = 0
) -> list[DocumentPage]:
    """The pages of a document with their text, in their order: at most `limit`, after the first `offset`."""
    part = {"document_id": document_id, "limit": limit, "offset": offset}
    return database.fetch_all(who, "find_pages", DocumentPage, **part)


def add_document(
    database: Database,
    files: Originals,
    sandbox: Sandbox,
    collection: Collection,
    file_name: str,
    content: bytes,
    *,
    password: str | None,
    chunking_method: ChunkingMethod | None,
    generate_metadata: bool,
    added_by: Identity | None,
    queue: JobQueue | None,
    is_version: bool = True,
    pdf_type: PdfType | None = None,
) -> UUID:
    """Check a file, store it, and make its document; queued for reading when there is a queue.

    Without a way to cut, or a kind of PDF, those of the collection hold. With `is_version` it is the next version of a
    document with the same file name, if there is one.
    """
    tenant_id = collection.tenant_id
    profile = profile_of(collection)
    sha256 = hashlib.sha256(content).hexdigest()
    name = display_name(file_name)
    _require_new(database, collection, sha256, name)
    checked = sandbox.check(content, file_name=name, password=password, tenant_id=tenant_id)
    stored = checked.decrypted or content
    key = hashlib.sha256(stored).hexdigest()
    file_path = f"{key[:2]}/{key}"
    with database.transaction(added_by or tenant_id) as connection:
        connection.execute(queries["lock_stored_file"], {"file_path": file_path})
        files.put(tenant_id, stored)
        parameters = {
            "collection_id": collection.id,
            "title": title_from_file_name(name),
            "file_name": name,
            "file_path": file_path,
            "file_size": len(content),
            "sha256": sha256,
            "mime_type": MIME_TYPES[checked.kind],
            "page_count": checked.page_count,
            "pdf_type": pdf_type or profile.reading.pdf_type,
            "chunking_method": chunking_method or profile.chunking.chunking_method,
            "generate_metadata": generate_metadata,
            "added_by": added_by.account_id if added_by else None,
            "is_version": is_version,
        }
        connection.execute(queries["lock_name"], parameters)
        added = connection.execute(queries["add_document"], parameters).fetchone()
        if added is not None and queue is not None:
            queue.enqueue(tenant_id, added[0], connection=connection)
    if added is None:
        _require_new(database, collection, sha256, name)
        raise DocumentAlreadyStored
    document_id: UUID = added[0]
    return document_id


def display_name(file_name: str) -> str:
    """A name to show: without folders, control and direction-changing characters; in any script; never a path."""
    name = unicodedata.normalize("NFC", file_name.encode("utf-8", "replace").decode("utf-8"))
    name = "".join(c for c in name if c in JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn"))
    # The slash of a closing HTML tag is no folder.
    name = " ".join(re.split(r"(?<!<)[/\\]", name)[-1].split())
    if not name.strip(". "):
        return "document.pdf"
    if len(name) > LONGEST_NAME:
        found = re.search(r"\.[A-Za-z]{2,8}$", name)
        ending = found[0] if found else ""
        name = name[: LONGEST_NAME - len(ending) - 1] + "…" + ending
    return name


def _require_new(database: Database, collection: Collection, sha256: str, name: str) -> None:
    found = find_documents(database, collection.tenant_id, collection_id=collection.id, sha256=sha256)
    present = next((d for d in found if d.status is not DocumentStatus.SUPERSEDED), None)
    earlier = next((d for d in found if d.file_name == name), None)
    known = present or earlier or (found[0] if found else None)
    if known is not None:
        raise DocumentAlreadyStored(
            f"This file has the same content as “{known.title}”, which is already stored.",
            document_id=known.id,
            title=known.title,
            # Uploaded again under its own name, an earlier version is wanted back.
            is_earlier_version=present is None and known is earlier,
        )
