"""Records made into documents: which belong together, in which order they stand, and the chunks they become.

A passage stays what it was in the other store: one chunk, with its id as `sourceId` and its metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag.ingestion.extracted import ExtractedDocument, storable, title_from_file_name
from rag.ingestion.imports.export_file import Record, record_to_json, records_from_bytes
from rag.types import Chunk, Page

#: How an imported document's file, lines of records, is told from others.
EXPORT_TYPE = "application/vnd.hr-assistant.passages+jsonl"
SOURCE_KEYS = (
    "source", "file_name", "fileName", "filename", "document", "documentId", "document_id", "doc_id", "url", "title",
)  # fmt: skip
#: LangChain's loaders write `page` from 0 (Python) and `loc.pageNumber` from 1 (JavaScript).
PAGE_KEYS = ("page", "page_number", "pageNumber", "loc.pageNumber")
INDEX_KEYS = ("chunk_index", "chunkIndex", "index", "chunk_id", "chunkId", "chunk_number", "chunkNumber")
SECTION_KEYS = ("section", "heading", "header")
#: What a document's metadata hold for other reasons; fields of these names stay with their passages.
RESERVED = frozenset(
    {"sections", "chunk_spans", "questions", "suggested_questions", "summary", "topics", "untagged_chunks", "is_named",
     "pdf_language", "postId", "attachmentsJson", "source_description", "file_url", "author"}
)  # fmt: skip
LARGEST_NUMBER = 100_000
BETWEEN = "\n\n"


@dataclass(frozen=True, kw_only=True)
class Passages:
    """The passages of one document. `key` is its name in the export: namespace and source."""

    key: str
    source: str
    title: str
    records: tuple[Record, ...]

    @property
    def file_name(self) -> str:
        """Not the source's own name: the PDF uploaded under that is a document of its own."""
        return f"{self.source}.jsonl"

    def to_bytes(self) -> bytes:
        """The document's file: its records in their order, without vectors."""
        return "\n".join(map(record_to_json, self.records)).encode()


def documents_from(records: Iterable[Record], *, name: str) -> list[Passages]:
    """Group records by their source, in the order of the export; those without one become a document called `name`."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.namespace, _text(record.fields, SOURCE_KEYS) or name), []).append(record)
    return [_document(namespace, source, group) for (namespace, source), group in groups.items()]


def joined(before: Passages, after: Passages) -> Passages:
    """The passages of both; where an id is in both, that of `after`."""
    records = {record.id: record for record in (*before.records, *after.records)}
    return _document(after.records[0].namespace, after.source, list(records.values()))


def passages_from_bytes(content: bytes, *, key: str) -> Passages:
    """A document as `to_bytes` has written it."""
    namespace, source = json.loads(key)
    return _document(namespace, source, records_from_bytes(content))


def pages_and_chunks(records: Sequence[Record]) -> tuple[tuple[Page, ...], list[Chunk]]:
    """Pages whose text is that of their passages, and a chunk for each passage. Records are in their order."""
    texts: dict[int, list[str]] = {}
    places: list[tuple[Record, int, int]] = []
    start = 0
    for record, page in zip(records, _pages(records), strict=True):
        on_page = texts.setdefault(page, [])
        if places:
            start += len(BETWEEN) if on_page else 1  # pages are joined by one newline
        on_page.append(record.text)
        places.append((record, page, start))
        start += len(record.text)
    chunks = [
        Chunk(
            index=index,
            content=record.text,
            first_page=page,
            last_page=page,
            start=begin,
            end=begin + len(record.text),
            section=_text(record.fields, SECTION_KEYS),
            metadata={**record.fields, "sourceId": record.id},
        )
        for index, (record, page, begin) in enumerate(places)
    ]
    return tuple(Page(number=number, text=BETWEEN.join(parts)) for number, parts in texts.items()), chunks


def read_passages(content: bytes) -> ExtractedDocument:
    """An imported document as other files are read: pages, and the metadata that all its passages share."""
    records = records_from_bytes(content)
    pages, _ = pages_and_chunks(records)
    return ExtractedDocument(pages=pages, metadata=shared_fields(records))


def chunks_from_bytes(content: bytes) -> list[Chunk]:
    """The chunks of an imported document; the same at any time."""
    return pages_and_chunks(records_from_bytes(content))[1]


def shared_fields(records: Sequence[Record]) -> dict[str, Any]:
    """The fields that have one value in all records: they are the document's."""
    shared = {key: value for key, value in records[0].fields.items() if key not in RESERVED}
    for record in records[1:]:
        shared = {key: value for key, value in shared.items() if key in record.fields and record.fields[key] == value}
    return shared


def _document(namespace: str, source: str, records: list[Record]) -> Passages:
    pages = _pages(ordered := sorted(records, key=_index))
    places = sorted(range(len(ordered)), key=lambda place: pages[place])
    title = _text(ordered[places[0]].fields, ("title",)) or title_from_file_name(
        re.split(r"[/\\]", source.rstrip("/\\"))[-1]
    )
    return Passages(
        key=json.dumps([namespace, source], ensure_ascii=False),
        source=source,
        title=title[:300],
        records=tuple(ordered[place] for place in places),
    )


def _pages(records: Sequence[Record]) -> list[int]:
    """The page of each record from 1; one that names none stands on the page of the one before."""
    named = [_number(record.fields, PAGE_KEYS) for record in records]
    first = 1 if 0 in named else 0
    pages, page = [], next((number + first for number in named if number is not None), 1)
    for number in named:
        page = page if number is None else number + first
        pages.append(page)
    return pages


def _index(record: Record) -> int:
    number = _number(record.fields, INDEX_KEYS)
    return LARGEST_NUMBER if number is None else number


def _number(fields: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    """The first of the fields that is a whole number, also where a store keeps all numbers as floats."""
    for key in keys:
        value: Any = fields.get(key)
        if value is None and "." in key and isinstance(fields.get(key.partition(".")[0]), dict):
            value = fields[key.partition(".")[0]].get(key.partition(".")[2])
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value) if len(value.strip()) < 7 else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if 0 <= value <= LARGEST_NUMBER and value == int(value):
            return int(value)
    return None


def _text(fields: Mapping[str, Any], keys: Sequence[str]) -> str:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return storable(" ".join(str(value).split()))[:500]
    return ""
