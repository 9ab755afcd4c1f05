"""Sign in at an OpenID Connect provider."""

from __future__ import annotations

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="oidc",
    title="OpenID Connect",
    packages=("Authlib", "joserfc"),
    single_sign_on=f"{__name__}.provider:provider_of",
)
