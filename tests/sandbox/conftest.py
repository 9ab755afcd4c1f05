"""Confined processes are tried with the parts that take documents in."""

from __future__ import annotations

from tests.ingestion.conftest import (
    admin,
    connected,
    employee,
    files,
    library,
    pipeline,
    queue,
    quick_polling,
    sandbox,
    stranger,
    work,
)

__all__ = [
    "admin", "connected", "employee", "files", "library", "pipeline", "queue", "quick_polling", "sandbox", "stranger",
    "work",
]  # fmt: skip
