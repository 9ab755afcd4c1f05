"""Asks the inexpensive model which route a message means, where the rules are unsure."""

from __future__ import annotations

import json

from rag.answering.prompts import route_messages
from rag.answering.routes.recognise import ROUTES, Recognised
from rag.errors import ProviderError
from rag.providers import ChatModel
from rag.types import Usage

MAXIMUM_OUTPUT_TOKENS = 120
SCHEMA = {
    "type": "object",
    "properties": {
        "route": {"type": "string", "enum": [*ROUTES, "none"]},
        **{name: {"type": "string"} for name in ("subject", "one", "other", "since")},
    },
    "required": ["route", "subject", "one", "other", "since"],
    "additionalProperties": False,
}


def recognise_by_model(model: ChatModel, text: str) -> tuple[Recognised | None, Usage | None]:
    """The route that a model reads in a message, and what asking took; no route where it fails or names none."""
    try:
        reply = model.complete(
            route_messages(text), temperature=0.0, maximum_output_tokens=MAXIMUM_OUTPUT_TOKENS, json_schema=SCHEMA
        )
    except ProviderError:
        return None, None  # what it cost was reported where it was lost
    try:
        said = json.loads(reply.text)
    except ValueError:
        return None, reply.usage
    route = said.get("route") if isinstance(said, dict) else None
    found = next((known for known in ROUTES if known == route), None)
    if found is None:
        return None, reply.usage
    subject, one, other, since = (str(said.get(name) or "").strip() for name in ("subject", "one", "other", "since"))
    if (not subject and found in ("summary", "listing")) or (found == "comparison" and not (one and other)):
        return None, reply.usage
    return Recognised(found, subject=subject, one=one, other=other, since=since), reply.usage
