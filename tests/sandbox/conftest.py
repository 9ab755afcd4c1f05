"""Confined processes are tried with the readers of files."""

from __future__ import annotations

from tests.ingestion.conftest import sandbox

__all__ = ["sandbox"]
