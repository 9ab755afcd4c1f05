"""Fixtures for imported passages, which go through the ingestion pipeline."""

from __future__ import annotations

from tests.conftest import settings
from tests.ingestion.conftest import admin, files, library, pipeline, queue, quick_polling, sandbox

__all__ = ["admin", "files", "library", "pipeline", "queue", "quick_polling", "sandbox", "settings"]
