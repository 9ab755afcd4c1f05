"""Read documents from Hangul, the word processor in Korean offices: `hwp` reads .hwp and .hwpx."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="hangul",
    title="Hangul",
    packages=("unhwp", "olefile"),
    formats=f"{__name__}.format:FORMATS",
)
