"""Answer in Slack: `bot` has the conversation, `settings.toml` the settings."""

from __future__ import annotations

from starlette.routing import Route

from rag.api.later import Later
from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="slack",
    title="Slack",
    packages=("slack_bolt", "slack_sdk"),
    open_routes=(
        Route(
            "/slack/events",
            Later("rag.integrations.channels.slack.bot", "events"),
            methods=["POST"],
            include_in_schema=False,
        ),
    ),
)
