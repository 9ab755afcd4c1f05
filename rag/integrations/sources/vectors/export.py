"""Read vector stores' export files: JSON lines, a JSON array, or responses from Pinecone's fetch and query.

Records are grouped into documents. Each record becomes a chunk with the record's metadata, and with the record's id in
`sourceId`. Vectors are dropped, because the export's model differs or is unknown. Unusable records are reported by
line; the rest is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rag.errors import InvalidInput
from rag.ingestion.loaders.titles import title_from_file_name
from rag.ingestion.passages import (
    LARGEST_NUMBER,
    Record,
    number_of,
    pages_of,
    record_to_json,
    records_from_bytes,
    text_of,
)
from rag.text.tokens import estimate_tokens
from rag.types import storable, storable_json

#: Fields for a passage's text in files from LangChain, LlamaIndex and similar libraries.
TEXT_KEYS = ("text", "content", "pageContent", "page_content", "chunk", "chunk_text")
#: Keys in the record other than metadata.
OWN_KEYS = frozenset(
    {"id", "_id", "values", "vector", "sparseValues", "sparse_values", "score", "metadata", "namespace"}
)
#: Embedding models take 8,191 tokens; the text put before a passage needs some of them.
MAXIMUM_TOKENS = 7500
LONGEST_ID = 512


@dataclass(frozen=True)
class SkippedRecord:
    """A record left out, with the reason.

    `line` is the line's number, from 1, or the record's number if the file is a single JSON value.
    """

    file: str
    line: int
    sentence: str
    unit: str = "line"


@dataclass(frozen=True)
class Export:
    """An export file's records, usable and skipped."""

    records: tuple[Record, ...]
    problems: tuple[SkippedRecord, ...]


class _Unusable(Exception):
    """Stands for a record which cannot be used, with the reason."""


def read_export(path: Path) -> Export:
    """Read an export file. Raises `InvalidInput` for an unreadable file or an unknown format."""
    try:
        numbered = _number_records(path)
        records: dict[str, tuple[int, Record]] = {}
        problems: list[SkippedRecord] = []
        for line, unit, value in numbered:
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


def _number_records(path: Path) -> Iterator[tuple[int, str, Any]]:
    """Yield (number, "line" or "record", parsed JSON) for each record. Invalid JSON gives an `_Unusable`."""
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    value = _parse(first)
    is_document = isinstance(value, list) or (isinstance(value, dict) and _list_records(value) is not None)
    if is_document or isinstance(value, _Unusable):
        content = _parse(path.read_bytes())
        listed = content if isinstance(content, list) else _list_records(content) if isinstance(content, dict) else None
        if listed is not None:
            for number, item in enumerate(listed, 1):
                yield number, "record", item
            return
        if isinstance(content, dict):  # a record over several lines
            yield 1, "record", content
            return
        if first.lstrip(b"\xef\xbb\xbf \t").startswith(b"["):
            raise InvalidInput(
                f"{path} {content} Export it again, or as JSON lines, of which the good ones can be read."
            )
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, "line", _parse(line)


def _parse(content: bytes) -> Any:
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


def _list_records(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the records in a response from Pinecone: `vectors` after fetch, `matches` after query.

    Returns `None` if the value is not a response.
    """
    for key in ("vectors", "matches", "records"):
        records = value.get(key)
        if isinstance(records, dict):
            records = [{"id": id, **item} if isinstance(item, dict) else item for id, item in records.items()]
        if isinstance(records, list):
            namespace = value.get("namespace") or ""
            return [{"namespace": namespace, **item} if isinstance(item, dict) else item for item in records]
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


SOURCE_KEYS = (
    "source", "file_name", "fileName", "filename", "document", "documentId", "document_id", "doc_id", "url", "title",
)  # fmt: skip
INDEX_KEYS = ("chunk_index", "chunkIndex", "index", "chunk_id", "chunkId", "chunk_number", "chunkNumber")


@dataclass(frozen=True, kw_only=True)
class ExportedDocument:
    """A document's records. `key` identifies the document in the export: namespace and source."""

    key: str
    source: str
    title: str
    records: tuple[Record, ...]

    @property
    def file_name(self) -> str:
        """The source's name with `.jsonl` added, because the original file may be uploaded too."""
        return f"{self.source}.jsonl"

    def to_bytes(self) -> bytes:
        """Write the records to a file, in order and without vectors."""
        return "\n".join(map(record_to_json, self.records)).encode()


def documents_from(records: Iterable[Record], *, name: str) -> list[ExportedDocument]:
    """Group records by namespace and source, in the export's order. A record without a source belongs to the document
    `name`.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.namespace, text_of(record.fields, SOURCE_KEYS) or name), []).append(record)
    return [_document(namespace, source, group) for (namespace, source), group in groups.items()]


def joined(before: ExportedDocument, after: ExportedDocument) -> ExportedDocument:
    """Return a document with the records from two exports.

    If both exports have a record with the same id, the record in `after` is used.
    """
    records = {record.id: record for record in (*before.records, *after.records)}
    return _document(after.records[0].namespace, after.source, list(records.values()))


def passages_from_bytes(content: bytes, *, key: str) -> ExportedDocument:
    namespace, source = json.loads(key)
    return _document(namespace, source, records_from_bytes(content))


def _document(namespace: str, source: str, records: list[Record]) -> ExportedDocument:
    pages = pages_of(ordered := sorted(records, key=_index))
    places = sorted(range(len(ordered)), key=lambda place: pages[place])
    title = text_of(ordered[places[0]].fields, ("title",)) or title_from_file_name(
        re.split(r"[/\\]", source.rstrip("/\\"))[-1]
    )
    return ExportedDocument(
        key=json.dumps([namespace, source], ensure_ascii=False),
        source=source,
        title=title[:300],
        records=tuple(ordered[place] for place in places),
    )


def _index(record: Record) -> int:
    number = number_of(record.fields, INDEX_KEYS)
    return LARGEST_NUMBER if number is None else number
