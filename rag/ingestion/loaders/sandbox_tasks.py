"""Perform tasks in a sandbox process, one after the other, each with limits and a single result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, TypeAlias

from rag.errors import DocumentError, FileDamaged, ReadingTookTooLong
from rag.ingestion.loaders.values import ExtractionLimits
from rag.sandbox.child_process import Reply, answers_to_parent, bound_child, limit_time, read_message, write_message

#: Takes a task, its limits and the answer stream; returns values and bytes.
Perform = Callable[[Reply, ExtractionLimits, BinaryIO], tuple[dict[str, Any], bytes]]
#: What a server's answer says, as JSON values and bytes.
ServerAnswer: TypeAlias = tuple[dict[str, Any], bytes]


def serve_tasks(answers: BinaryIO, perform: Perform) -> None:
    """Perform tasks from stdin until stdin ends."""
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


def serve_answers(readers: Mapping[str, Callable[..., ServerAnswer]], load_libraries: Callable[[], None]) -> None:
    """Parse responses from a source's servers until stdin ends. This is the main function of a source's worker module.

    `readers` maps a response's type to the parsing function.
    """
    memory_mb, order = sys.argv[1:]
    answers = answers_to_parent()
    load_libraries()
    write_message(answers, "means", bound_child(order, int(memory_mb)))

    def perform(task: Reply, limits: ExtractionLimits, answers: BinaryIO) -> ServerAnswer:
        return readers[task.values["of"]](task.blob, **task.values["told"])

    serve_tasks(answers, perform)
