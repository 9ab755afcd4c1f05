"""Import chunks from a different vector store. A file with JSON lines is read and chunked like any other file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag.ingestion.loaders.values import ExtractedDocument
from rag.types import Chunk, Page, storable

#: The type of an imported document's file, with a record per line.
EXPORT_TYPE = "application/vnd.hr-assistant.passages+jsonl"
#: LangChain's loaders write `page` from 0 (Python) and `loc.pageNumber` from 1 (JavaScript).
PAGE_KEYS = ("page", "page_number", "pageNumber", "loc.pageNumber")
SECTION_KEYS = ("section", "heading", "header")
#: Names reserved in a document's metadata; fields with these names stay with their passages.
RESERVED = frozenset(
    {"sections", "sheet_rows", "chunk_spans", "questions", "suggested_questions", "suggested_elsewhere",
     "summary", "topics", "untagged_chunks", "is_named",
     "pdf_language", "postId", "attachmentsJson", "source_description", "file_url", "author"}
)  # fmt: skip
LARGEST_NUMBER = 100_000
BETWEEN = "\n\n"


@dataclass(frozen=True, kw_only=True)
class Record:
    """An exported chunk: text, and metadata in `fields`."""

    id: str
    text: str
    namespace: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def record_to_json(record: Record) -> str:
    """Convert a record to a line of an export file."""
    values: dict[str, Any] = {"id": record.id, "text": record.text, "metadata": dict(record.fields)}
    if record.namespace:
        values["namespace"] = record.namespace
    return json.dumps(values, ensure_ascii=False, sort_keys=True)


def records_from_bytes(content: bytes) -> list[Record]:
    """Parse an export file written with `record_to_json`."""
    lines = [json.loads(line) for line in content.decode("utf-8").split("\n") if line]
    return [
        Record(id=line["id"], text=line["text"], namespace=line.get("namespace", ""), fields=line["metadata"])
        for line in lines
    ]


def pages_and_chunks(records: Sequence[Record]) -> tuple[tuple[Page, ...], list[Chunk]]:
    """Build pages from the records' texts, and a chunk for each record, in the same order."""
    texts: dict[int, list[str]] = {}
    places: list[tuple[Record, int, int]] = []
    start = 0
    for record, page in zip(records, pages_of(records), strict=True):
        on_page = texts.setdefault(page, [])
        if places:
            start += len(BETWEEN) if on_page else 1  # pages are joined by a single newline
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
            section=text_of(record.fields, SECTION_KEYS),
            metadata={**record.fields, "sourceId": record.id},
        )
        for index, (record, page, begin) in enumerate(places)
    ]
    return tuple(Page(number=number, text=BETWEEN.join(parts)) for number, parts in texts.items()), chunks


def read_passages(content: bytes) -> ExtractedDocument:
    """Read a file with records. Returns pages, and the metadata which all records share."""
    records = records_from_bytes(content)
    pages, _ = pages_and_chunks(records)
    return ExtractedDocument(pages=pages, metadata=shared_fields(records))


def chunks_from_bytes(content: bytes) -> list[Chunk]:
    """Return an imported document's chunks. They are the same on every run."""
    return pages_and_chunks(records_from_bytes(content))[1]


def shared_fields(records: Sequence[Record]) -> dict[str, Any]:
    """Return the fields which have the same value in all records."""
    shared = {key: value for key, value in records[0].fields.items() if key not in RESERVED}
    for record in records[1:]:
        shared = {key: value for key, value in shared.items() if key in record.fields and record.fields[key] == value}
    return shared


def pages_of(records: Sequence[Record]) -> list[int]:
    """Return a page number (starting at 1) for each record. A record with no page number gets that of the record before
    it.
    """
    named = [number_of(record.fields, PAGE_KEYS) for record in records]
    first = 1 if 0 in named else 0
    pages, page = [], next((number + first for number in named if number is not None), 1)
    for number in named:
        page = page if number is None else number + first
        pages.append(page)
    return pages


def number_of(fields: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    """Return the first whole number under `keys`, stored in a number type or in text; else `None`."""
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


def text_of(fields: Mapping[str, Any], keys: Sequence[str]) -> str:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return storable(" ".join(str(value).split()))[:500]
    return ""
