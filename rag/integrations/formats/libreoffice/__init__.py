"""Read documents from LibreOffice: `odt` texts, `ods` spreadsheets."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="libreoffice",
    title="LibreOffice",
    formats=f"{__name__}.format:FORMATS",
)
