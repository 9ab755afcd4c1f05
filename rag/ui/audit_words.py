"""Entries of the audit log as sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rag.records.audit import AuditEntry
from rag.ui.document_names import STATUSES
from rag.ui.formats import date_time

FIELDS: Mapping[str, str] = {
    "name": "name",
    "role": "role",
    "user_group": "group",
    "is_active": "active",
    "password_hash": "password",
    "account_id": "account",
    "expires_at": "end",
    "confirmed_at": "in use since",
    "embedding_model": "embedding model",
    "overrides": "settings",
    "groups": "groups that may read it",
    "calibrated_threshold": "measured threshold",
    "collection_id": "collection",
    "chunking_method": "chunking",
    "generate_metadata": "tags",
    "pending_steps": "steps asked for",
    "from_model": "model before",
    "to_model": "new model",
    "cleaned_at": "old vectors removed",
    "kind": "kind of source",
    "valid_from": "from",
}
LONGEST_VALUE = 120
#: A point in time as the database writes it into JSON.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*[+-]\d\d:\d\d$")
#: What is stored under a word of the program, as the pages call it.
WORDS: Mapping[str, str] = {status.value: words.lower() for status, (words, _) in STATUSES.items()}


def change_words(entry: AuditEntry, collections: Mapping[str, str] | None = None) -> str:
    """What changed in one line: `role: employee → manager; group: Sales`. `collections` are names by id."""
    words_of = {"status": WORDS, "collection_id": collections or {}}
    parts = []
    for field, values in sorted(entry.changes.items()):
        name, names = FIELDS.get(field, field.replace("_", " ")), words_of.get(field, {})
        if not isinstance(values, list) or len(values) != 2:
            parts.append(f"{name} {_shown(values, names)}")
        elif entry.action.endswith(" changed"):
            parts.append(f"{name}: {_shown(values[0], names)} → {_shown(values[1], names)}")
        elif (value := values[1] if entry.action.endswith(" added") else values[0]) not in (None, "", [], {}):
            parts.append(f"{name}: {_shown(value, names)}")
    return "; ".join(parts)


def _shown(value: Any, names: Mapping[str, str]) -> str:
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "everybody"
    if isinstance(value, dict):
        return ", ".join(f"{k} = {v}" for k, v in sorted(value.items()))[:LONGEST_VALUE] or "nothing"
    if isinstance(value, str) and MOMENT.match(value):
        return f"{date_time(datetime.fromisoformat(value), UTC)} UTC"
    return names.get(str(value), str(value))[:LONGEST_VALUE]
