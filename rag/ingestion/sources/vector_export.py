"""Read export files of vector stores: JSON lines, a JSON array, or answers of Pinecone's fetch and query.

Records are grouped into documents. A passage stays one chunk, with its id as `sourceId` and its metadata.

Vectors are dropped as they are read: they are of another model, or of unknown origin. A record that cannot be used is a
problem with its line; the others are taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from rag.errors import InvalidInput
from rag.ingestion.loaders import ExtractedDocument, title_from_file_name
from rag.providers.tokens import estimate_tokens
from rag.types import Chunk, Page, storable, storable_json

#: Where libraries that write to vector stores put a passage's text, LangChain's and LlamaIndex's included.
TEXT_KEYS = ("text", "content", "pageContent", "page_content", "chunk", "chunk_text")
#: Keys of the record itself, which are no metadata.
OWN_KEYS = frozenset(
    {"id", "_id", "values", "vector", "sparseValues", "sparse_values", "score", "metadata", "namespace"}
)
#: Embedding models take 8,191 tokens; the text put before a passage needs some of them.
MAXIMUM_TOKENS = 7500
LONGEST_ID = 512


@dataclass(frozen=True, kw_only=True)
class Record:
    """A passage in an export. `fields` are the metadata without the text."""

    id: str
    text: str
    namespace: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SkippedRecord:
    """Why a record was left out. `line` counts from 1; in a file that is one JSON value it counts records."""

    file: str
    line: int
    sentence: str
    unit: str = "line"


@dataclass(frozen=True)
class Export:
    """What an export file holds."""

    records: tuple[Record, ...]
    problems: tuple[SkippedRecord, ...]


class _Unusable(Exception):
    """A record that cannot be taken; its text is the reason."""


def read_export(path: Path) -> Export:
    """Read an export file. Raises `InvalidInput` when it cannot be opened or is no such file."""
    try:
        found = _numbered(path)
        records: dict[str, tuple[int, Record]] = {}
        problems: list[SkippedRecord] = []
        for line, unit, value in found:
            try:
                record = _record(value)
                before = records.setdefault(f"{record.namespace}\0{record.id}", (line, record))
                if before[1] != record:
                    raise _Unusable(f"has the id {record.id} of {unit} {before[0]}, with other content.")
            except _Unusable as exc:
                problems.append(SkippedRecord(path.name, line, str(exc), unit))
    except OSError as exc:
        raise InvalidInput(f"{path} cannot be read: {exc.strerror or exc}.") from exc
    if not records and not problems:
        raise InvalidInput(f"{path} holds no records.")
    return Export(tuple(record for _, record in records.values()), tuple(problems))


def record_to_json(record: Record) -> str:
    """Write a record as a line in an export file."""
    values: dict[str, Any] = {"id": record.id, "text": record.text, "metadata": dict(record.fields)}
    if record.namespace:
        values["namespace"] = record.namespace
    return json.dumps(values, ensure_ascii=False, sort_keys=True)


def records_from_bytes(content: bytes) -> list[Record]:
    """Parse the lines that `record_to_json` has written."""
    return [_record(json.loads(line)) for line in content.decode("utf-8").split("\n") if line]


def _numbered(path: Path) -> Iterator[tuple[int, str, Any]]:
    """Yield each value of the file with its line; an error in place of a value that is no JSON."""
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    value = _parsed(first)
    is_whole = isinstance(value, list) or (isinstance(value, dict) and _listed(value) is not None)
    if is_whole or isinstance(value, _Unusable):
        whole = _parsed(path.read_bytes())
        listed = whole if isinstance(whole, list) else _listed(whole) if isinstance(whole, dict) else None
        if listed is not None:
            for number, item in enumerate(listed, 1):
                yield number, "record", item
            return
        if isinstance(whole, dict):  # one record, written over several lines
            yield 1, "record", whole
            return
        if first.lstrip(b"\xef\xbb\xbf \t").startswith(b"["):
            raise InvalidInput(f"{path} {whole} Export it again, or as JSON lines, of which the good ones can be read.")
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, "line", _parsed(line)


def _parsed(content: bytes) -> Any:
    """Parse bytes as JSON; return an `_Unusable` value on errors."""
    try:
        return json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return _Unusable("is not UTF-8.")
    except json.JSONDecodeError as exc:
        place = f"line {exc.lineno}, column {exc.colno}" if exc.lineno > 1 else f"column {exc.colno}"
        return _Unusable(f"is not JSON: {exc.msg} at {place}.")
    except (ValueError, RecursionError) as exc:
        return _Unusable(f"is not JSON: {exc}.")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _listed(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the records of an answer of Pinecone's: `vectors` of a fetch by their ids, `matches` of a query."""
    for key in ("vectors", "matches", "records"):
        found = value.get(key)
        if isinstance(found, dict):
            found = [{"id": id, **item} if isinstance(item, dict) else item for id, item in found.items()]
        if isinstance(found, list):
            namespace = value.get("namespace") or ""
            return [{"namespace": namespace, **item} if isinstance(item, dict) else item for item in found]
    return None


def _record(value: Any) -> Record:
    if isinstance(value, _Unusable):
        raise value
    if not isinstance(value, dict):
        raise _Unusable("is not an object with an id and metadata.")
    own_id = value.get("id", value.get("_id"))
    if isinstance(own_id, bool) or not isinstance(own_id, str | int) or not str(own_id).strip():
        raise _Unusable("has no id.")
    if len(str(own_id)) > LONGEST_ID:
        raise _Unusable(f"has an id of more than {LONGEST_ID} characters.")
    metadata = value.get("metadata")
    if not isinstance(metadata, dict | None):
        raise _Unusable("has metadata that are not an object.")
    fields = {key: item for key, item in value.items() if key not in OWN_KEYS} | (metadata or {})
    text_key = next((key for key in TEXT_KEYS if isinstance(fields.get(key), str) and fields[key].strip()), None)
    if text_key is None:
        raise _Unusable(
            "has no text: it was looked for under text, content, pageContent and chunk. A vector alone cannot be "
            "embedded again; upload the document it is of."
        )
    text = storable(fields.pop(text_key)).strip()
    if len(text) > MAXIMUM_TOKENS and estimate_tokens(text) > MAXIMUM_TOKENS:
        raise _Unusable(f"has more text than a passage may have, some {MAXIMUM_TOKENS:,} tokens. Upload its document.")
    return Record(
        id=storable(own_id),
        text=text,
        namespace=storable(value.get("namespace") or ""),
        fields=storable_json(fields),
    )


#: The type of an imported document's file, which has lines of records.
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
    {"sections", "sheet_rows", "chunk_spans", "questions", "suggested_questions", "suggested_elsewhere",
     "summary", "topics", "untagged_chunks", "is_named",
     "pdf_language", "postId", "attachmentsJson", "source_description", "file_url", "author"}
)  # fmt: skip
LARGEST_NUMBER = 100_000
BETWEEN = "\n\n"


@dataclass(frozen=True, kw_only=True)
class ExportedDocument:
    """The passages of one document. `key` is its name in the export: namespace and source."""

    key: str
    source: str
    title: str
    records: tuple[Record, ...]

    @property
    def file_name(self) -> str:
        """Return a name other than the source's own: a PDF uploaded under that name is a separate document."""
        return f"{self.source}.jsonl"

    def to_bytes(self) -> bytes:
        """Write the document's file: its records in their order, without vectors."""
        return "\n".join(map(record_to_json, self.records)).encode()


def documents_from(records: Iterable[Record], *, name: str) -> list[ExportedDocument]:
    """Group records by their source, in the order of the export; those without one become a document called `name`."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.namespace, _text(record.fields, SOURCE_KEYS) or name), []).append(record)
    return [_document(namespace, source, group) for (namespace, source), group in groups.items()]


def joined(before: ExportedDocument, after: ExportedDocument) -> ExportedDocument:
    """Join both lists of passages. For an id in both, `after` counts."""
    records = {record.id: record for record in (*before.records, *after.records)}
    return _document(after.records[0].namespace, after.source, list(records.values()))


def passages_from_bytes(content: bytes, *, key: str) -> ExportedDocument:
    """Parse a document that `to_bytes` has written."""
    namespace, source = json.loads(key)
    return _document(namespace, source, records_from_bytes(content))


def pages_and_chunks(records: Sequence[Record]) -> tuple[tuple[Page, ...], list[Chunk]]:
    """Make pages of the passages' texts, and a chunk of each passage, from records in their order."""
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
    """Read an imported document like any other file: pages, and the metadata that all its passages share."""
    records = records_from_bytes(content)
    pages, _ = pages_and_chunks(records)
    return ExtractedDocument(pages=pages, metadata=shared_fields(records))


def chunks_from_bytes(content: bytes) -> list[Chunk]:
    """Return the chunks of an imported document; the same at any time."""
    return pages_and_chunks(records_from_bytes(content))[1]


def shared_fields(records: Sequence[Record]) -> dict[str, Any]:
    """Return the fields with one value in all records: they become the document's."""
    shared = {key: value for key, value in records[0].fields.items() if key not in RESERVED}
    for record in records[1:]:
        shared = {key: value for key, value in shared.items() if key in record.fields and record.fields[key] == value}
    return shared


def _document(namespace: str, source: str, records: list[Record]) -> ExportedDocument:
    pages = _pages(ordered := sorted(records, key=_index))
    places = sorted(range(len(ordered)), key=lambda place: pages[place])
    title = _text(ordered[places[0]].fields, ("title",)) or title_from_file_name(
        re.split(r"[/\\]", source.rstrip("/\\"))[-1]
    )
    return ExportedDocument(
        key=json.dumps([namespace, source], ensure_ascii=False),
        source=source,
        title=title[:300],
        records=tuple(ordered[place] for place in places),
    )


def _pages(records: Sequence[Record]) -> list[int]:
    """Return the page of each record from 1; without one, the page of the record before."""
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
    """Return the first field that is a whole number, also where a store keeps all numbers as floats."""
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
