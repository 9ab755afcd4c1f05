"""Fixtures for integrations, which tests reach through the product's routes as in `tests/api`."""

from __future__ import annotations

from tests.api.conftest import admin, api, parts, settings

__all__ = ["admin", "api", "parts", "settings"]
