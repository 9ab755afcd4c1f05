"""Manage people and groups from a company directory by SCIM 2.0.

`server` implements the protocol, and `provisioning` the storage.
"""

from __future__ import annotations

from rag.integrations.integration import Endpoint, Integration

#: The path prefix.
SCIM = "/scim/v2/"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

INTEGRATION = Integration(
    name="scim",
    title="SCIM 2.0",
    packages=("scim2-models",),
    refusals={SCIM: f"{__name__}.errors:answer"},
    routes=(Endpoint(f"{SCIM}{{path:path}}", f"{__name__}.server:serve", METHODS),),
)
