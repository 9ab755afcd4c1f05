"""Integrations are met through the product's own routes, as the API is."""

from __future__ import annotations

from tests.api.conftest import admin, api, parts, settings

__all__ = ["admin", "api", "parts", "settings"]
