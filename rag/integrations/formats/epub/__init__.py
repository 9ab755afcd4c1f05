"""Read books (.epub): `book` reads the chapters."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="epub",
    title="EPUB",
    formats=f"{__name__}.format:FORMATS",
)
