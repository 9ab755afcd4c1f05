"""Answer questions in Slack: `bot` handles conversations, `settings.toml` has the settings."""

from __future__ import annotations

from rag.integrations.integration import Endpoint, Integration

INTEGRATION = Integration(
    name="slack",
    title="Slack",
    packages=("slack_bolt", "slack_sdk"),
    open_routes=(Endpoint("/slack/events", f"{__name__}.bot:events", ("POST",)),),
)
