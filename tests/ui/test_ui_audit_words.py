"""What a line of the audit log says of a change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from rag.records.audit import AuditEntry
from rag.ui.people import change_words


def entry(action: str, **changes: Any) -> AuditEntry:
    moment = datetime(2026, 11, 21, tzinfo=UTC)
    return AuditEntry(
        id=1, account_id=uuid4(), actor="", action=action, target_id="", target="", changes=changes, created_at=moment
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"status": ["estimated", "processing"]}, "status: to be confirmed → processing", id="status"),
        pytest.param({"name": ["estimated", "failed"]}, "name: estimated → failed", id="a name that is also a status"),
        pytest.param(
            {"expires_at": [None, "2026-11-24T07:02:14.998437+00:00"]},
            "end: nothing → 24 Nov 2026, 07:02 UTC",
            id="moment",
        ),
        pytest.param({"groups": [[], ["Sales"]]}, "groups that may read it: everybody → Sales", id="groups"),
        pytest.param({"collection_id": ["1", "2"]}, "collection: HR documents → 2", id="a collection that is gone"),
        pytest.param(
            {"overrides": [{"top_k": 8, "chunk_size": 400}, {"chunk_size": 500, "recency_boost": True, "top_k": 8}]},
            "Passage size: 400 → 500; Recent documents first: nothing → yes",
            id="settings: those that changed, by their titles",
        ),
        pytest.param({"settings": [{}, {"is_named": True}]}, "", id="a mark of the product itself"),
        pytest.param({"owner_id": [None, "7"]}, "owner: nothing → Hanna", id="an owner"),
    ],
)
def test_a_change_is_said_in_the_words_of_the_pages(changes: dict[str, Any], words: str) -> None:
    assert change_words(entry("document changed", **changes), {"1": "HR documents", "7": "Hanna"}) == words
