"""Report events to other programs.

Database triggers report most events, in the transaction with the change. The remaining events are reported by calls to
`emit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from rag.errors import InvalidInput
from rag.language import N_
from rag.storage.database import Database
from rag.types import Who

#: Kinds of events, with the words an administrator sees.
EVENTS = {
    "document.ready": N_("A document can be searched"),
    "document.failed": N_("A document could not be processed"),
    "budget.near": N_("Most of a budget is spent"),
    "budget.reached": N_("A budget is spent"),
    "gap.solved": N_("An unanswered question is answered now"),
    "sync.failed": N_("A sync failed"),
    "evaluation.fell": N_("A test run is worse than the previous one"),
    "digest.weekly": N_("The weekly report"),
}


def emit(database: Database, who: Who, kind: str, data: Mapping[str, Any]) -> int:
    """Queue an event for every address subscribed to events of this kind, and return the number of addresses.

    Raises `InvalidInput` for an unknown kind.
    """
    if kind not in EVENTS:
        raise InvalidInput(f"The event {kind!r} does not exist. Choose one of: {', '.join(EVENTS)}.")
    return int(database.fetch_value(who, "emit_event", kind=kind, data=Jsonb(dict(data)), webhook_id=None))
