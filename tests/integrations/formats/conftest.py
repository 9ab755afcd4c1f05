"""Fixtures for file formats: those of ingestion."""

from __future__ import annotations

from tests.ingestion.conftest import admin, files, library, pipeline, queue, sandbox, work

__all__ = ["admin", "files", "library", "pipeline", "queue", "sandbox", "work"]
