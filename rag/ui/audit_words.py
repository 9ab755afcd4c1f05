"""Entries of the audit log as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.records.audit import AuditEntry
from rag.ui.document_names import STATUSES

FIELDS: Mapping[str, str] = {
    "name": "name",
    "role": "role",
    "user_group": "group",
    "is_active": "active",
    "password_hash": "password",
    "account_id": "account",
    "expires_at": "end",
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
}
LONGEST_VALUE = 120
#: What is stored under a word of the program, as the pages call it.
WORDS: Mapping[str, str] = {status.value: words.lower() for status, (words, _) in STATUSES.items()}


def change_words(entry: AuditEntry, collections: Mapping[str, str] | None = None) -> str:
    """What changed in one line: `role: employee → manager; group: Sales`. `collections` are names by id."""
    names = {**WORDS, **(collections or {})}
    parts = []
    for field, values in sorted(entry.changes.items()):
        name = FIELDS.get(field, field.replace("_", " "))
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
    return names.get(str(value), str(value))[:LONGEST_VALUE]
