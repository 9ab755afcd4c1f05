"""Serve tasks in a sandbox process, one after the other, each with limits and a single answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from rag.errors import DocumentError, FileDamaged, ReadingTookTooLong
from rag.ingestion.loaders import ExtractionLimits
from rag.sandbox.child_process import Reply, limit_time, read_message, write_message

#: Takes a task, its limits and the answer stream; returns values and bytes.
Perform = Callable[[Reply, ExtractionLimits, BinaryIO], tuple[dict[str, Any], bytes]]


def serve_tasks(answers: BinaryIO, perform: Perform) -> None:
    """Serve tasks until stdin ends."""
    tasks = sys.stdin.buffer
    while (task := read_message(tasks)) is not None:
        limits = ExtractionLimits(**task.values.pop("limits"))
        limit_time(limits.timeout_seconds)
        try:
            values, blob = perform(task, limits, answers)
            write_message(answers, "result", values, blob)
        except DocumentError as exc:
            write_message(answers, "error", {"error": type(exc).__name__, "message": exc.message})
        except MemoryError:
            write_message(answers, "error", {"error": ReadingTookTooLong.__name__, "is_last": True})
        except Exception:  # a hostile file may make a library raise anything
            write_message(answers, "error", {"error": FileDamaged.__name__})
