"""Fixtures for confined processes, tried with the processes which read files."""

from __future__ import annotations

from tests.ingestion.conftest import sandbox

__all__ = ["sandbox"]
