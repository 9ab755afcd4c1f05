"""Export files of vector stores: JSON lines, a JSON array, or what Pinecone's fetch and query answer.

Vectors are dropped as they are read: they are of another model, or of unknown origin. A record that cannot be used is a
problem with its line; the others are taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from rag.errors import InvalidInput
from rag.ingestion.extracted import storable, storable_json
from rag.money.price_list import estimate_tokens

#: Where libraries that write to vector stores put a passage's text, LangChain's and LlamaIndex's included.
TEXT_KEYS = ("text", "content", "pageContent", "page_content", "chunk", "chunk_text")
#: What is a record's own and no field of its metadata.
OWN_KEYS = frozenset(
    {"id", "_id", "values", "vector", "sparseValues", "sparse_values", "score", "metadata", "namespace"}
)
#: Embedding models take 8,191 tokens; what stands before a passage needs some of them.
MAXIMUM_TOKENS = 7500
LONGEST_ID = 512


@dataclass(frozen=True, kw_only=True)
class Record:
    """One passage of an export. `fields` are its metadata without its text."""

    id: str
    text: str
    namespace: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """Why a record was left out. `line` counts from 1; in a file that is one JSON value it counts records."""

    file: str
    line: int
    sentence: str
    unit: str = "line"


@dataclass(frozen=True)
class Export:
    """What an export file holds."""

    records: tuple[Record, ...]
    problems: tuple[Problem, ...]


class _Unusable(Exception):
    """A record that cannot be taken; its text is the reason."""


def read_export(path: Path) -> Export:
    """Read an export file. Raises `InvalidInput` when it cannot be opened or is no such file."""
    try:
        found = _numbered(path)
        records: dict[str, tuple[int, Record]] = {}
        problems: list[Problem] = []
        for line, unit, value in found:
            try:
                record = _record(value)
                before = records.setdefault(f"{record.namespace}\0{record.id}", (line, record))
                if before[1] != record:
                    raise _Unusable(f"has the id {record.id} of {unit} {before[0]}, with other content.")
            except _Unusable as exc:
                problems.append(Problem(path.name, line, str(exc), unit))
    except OSError as exc:
        raise InvalidInput(f"{path} cannot be read: {exc.strerror or exc}.") from exc
    if not records and not problems:
        raise InvalidInput(f"{path} holds no records.")
    return Export(tuple(record for _, record in records.values()), tuple(problems))


def record_to_json(record: Record) -> str:
    """A record as one line of an export file."""
    values: dict[str, Any] = {"id": record.id, "text": record.text, "metadata": dict(record.fields)}
    if record.namespace:
        values["namespace"] = record.namespace
    return json.dumps(values, ensure_ascii=False, sort_keys=True)


def records_from_bytes(content: bytes) -> list[Record]:
    """The records of lines that `record_to_json` has written."""
    return [_record(json.loads(line)) for line in content.decode("utf-8").split("\n") if line]


def _numbered(path: Path) -> Iterator[tuple[int, str, Any]]:
    """Each value of the file with its place; what is no JSON as the error it gave."""
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
    """The JSON value of some bytes; `_Unusable` as a value where there is none."""
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
    """The records in an answer of Pinecone's: `vectors` of a fetch by their ids, `matches` of a query."""
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
