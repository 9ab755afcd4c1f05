"""Describe the Excel 97 format."""

from __future__ import annotations

from rag.ingestion.loaders.loader import Loader
from rag.ingestion.loaders.signatures import COMPOUND, is_outlook


def is_old_workbook(content: bytes) -> bool:
    """Whether the bytes are an Excel 97 workbook. An Outlook message with an attached workbook is not a workbook."""
    return content.startswith(COMPOUND) and "Workbook".encode("utf-16-le") in content and not is_outlook(content)


FORMATS = (
    Loader(
        kind="xls",
        label="Excel 97",
        named="an Excel workbook of before 2007 (.xls)",
        media_type="application/vnd.ms-excel",
        endings=(".xls",),
        loads=f"{__package__}.workbook:load_xls",
        checks=f"{__package__}.workbook:check_xls",
        signature=COMPOUND,
        is_sure=is_old_workbook,
        is_text=False,
        has_rows=True,
        after="xlsx",
    ),
)
