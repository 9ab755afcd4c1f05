"""Entries of the audit log as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.records.audit import AuditEntry

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
    "kind": "kind of source",
}
LONGEST_VALUE = 120


def change_words(entry: AuditEntry) -> str:
    """What changed in one line: `role: employee → manager; group: Sales`."""
    parts = []
    for field, values in sorted(entry.changes.items()):
        name = FIELDS.get(field, field.replace("_", " "))
        if not isinstance(values, list) or len(values) != 2:
            parts.append(f"{name} {_shown(values)}")
        elif entry.action.endswith(" changed"):
            parts.append(f"{name}: {_shown(values[0])} → {_shown(values[1])}")
        elif (value := values[1] if entry.action.endswith(" added") else values[0]) not in (None, "", [], {}):
            parts.append(f"{name}: {_shown(value)}")
    return "; ".join(parts)


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "everybody"
    if isinstance(value, dict):
        return ", ".join(f"{k} = {v}" for k, v in sorted(value.items()))[:LONGEST_VALUE] or "nothing"
    return str(value)[:LONGEST_VALUE]
