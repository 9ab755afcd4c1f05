"""Fixtures for signing in, from `tests/access`."""

from __future__ import annotations

from tests.access.conftest import access, add_person, admin, client_of
from tests.conftest import settings

__all__ = ["access", "add_person", "admin", "client_of", "settings"]
