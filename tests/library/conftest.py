"""Fixtures for the library, which are those of ingestion."""

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
