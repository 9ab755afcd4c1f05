"""Bodies that are nearly right, for routes that have to survive them."""

from __future__ import annotations

import json
import random
from typing import Any

PIECES: list[Any] = [
    None, True, -1, 0, 1e400, 10**30, "", " ", "x" * 5000, "\x00", "\ud800", "\u202e", "%s%n", "'; --", [], {}, [[]],
    "2024-13-45", "2024-01-01", "notice-md", {"stream": True}, {"topK": "5"}, {"options": None}, "../../etc/passwd",
]  # fmt: skip
NAMES = ["query", "options", "topK", "categoryFilter", "dateFrom", "stream", "collection", "conversationId", "file", ""]


def random_body(chance: random.Random) -> tuple[bytes, str]:
    """A body that is nearly right, and what it says it is."""
    body: Any = {chance.choice(NAMES): chance.choice(PIECES) for _ in range(chance.randrange(4))}
    if chance.random() < 0.5:
        body = {"query": "annual leave", "options": body if chance.random() < 0.5 else chance.choice(PIECES)}
    content = bytearray(json.dumps(body).encode())
    if content and chance.random() < 0.3:
        for _ in range(chance.randrange(1, 5)):
            content[chance.randrange(len(content))] = chance.randrange(256)
    kinds = ["application/json"] * 6 + [
        "text/plain",
        "",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "x/y",
    ]
    return bytes(content), chance.choice(kinds)
