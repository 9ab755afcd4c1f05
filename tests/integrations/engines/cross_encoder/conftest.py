"""Fixtures for reranking: those of retrieval."""

from __future__ import annotations

from tests.retrieval.conftest import asker, shelf

__all__ = ["asker", "shelf"]
