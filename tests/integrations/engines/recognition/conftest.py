"""Fixtures for text recognition: those of ingestion."""

from __future__ import annotations

from tests.conftest import settings
from tests.ingestion.conftest import admin, files, quick_polling, sandbox

__all__ = ["admin", "files", "quick_polling", "sandbox", "settings"]
