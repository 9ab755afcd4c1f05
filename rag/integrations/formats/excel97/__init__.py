"""Read workbooks from Excel before 2007 (.xls): `workbook` reads the sheets."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="excel97",
    title="Excel 97",
    packages=("xlrd",),
    formats=f"{__name__}.format:FORMATS",
)
