"""Files with an export of another vector store, read by a command of the operator in its own process."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rag.errors import InvalidInput
from rag.integrations.sources.vectors.export import read_export
from tests.security.target import JSON, Target, content


def export(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.jsonl"
        path.write_bytes(content(text))
        read_export(path)


TARGETS = {
    "vector exports": Target(
        export, (InvalidInput,), (*JSON, '{"id": "a", "text": "b", "values": [1]}', "metadata"), longest=100_000
    ),
}
