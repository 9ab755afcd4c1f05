"""What the roles are called on every page."""

from __future__ import annotations

from collections.abc import Mapping

from rag.types import Role

ROLES: Mapping[Role, str] = {Role.EMPLOYEE: "Employee", Role.MANAGER: "Manager", Role.ADMIN: "Administrator"}
