"""Read Outlook messages (.msg): `message` converts them to mails."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="outlook",
    title="Outlook",
    packages=("olefile", "compressed-rtf"),
    formats=f"{__name__}.format:FORMATS",
)
