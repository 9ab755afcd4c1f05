"""Manage people and groups from a directory by SCIM 2.0: `server` speaks the protocol, `provisioning` writes."""

from __future__ import annotations

from starlette.routing import Route

from rag.access.problems import SCIM
from rag.api.later import Later
from rag.integrations.directory.scim import errors
from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="scim",
    title="SCIM 2.0",
    packages=("scim2-models",),
    refusals={SCIM: errors.answer},
    routes=(
        Route(
            f"{SCIM}{{path:path}}",
            Later("rag.integrations.directory.scim.server", "serve"),
            methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            name="scim",
            include_in_schema=False,
        ),
    ),
)
