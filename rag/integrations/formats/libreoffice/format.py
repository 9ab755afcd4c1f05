"""Describe the LibreOffice formats."""

from __future__ import annotations

from rag.ingestion.loaders.loader import Loader
from rag.ingestion.loaders.signatures import ZIP

CALC = "application/vnd.oasis.opendocument.spreadsheet"
WRITER = "application/vnd.oasis.opendocument.text"

FORMATS = (
    Loader(
        kind="ods",
        label="LibreOffice Calc",
        named="a LibreOffice spreadsheet (.ods)",
        media_type=CALC,
        endings=(".ods",),
        loads=f"{__package__}.ods:load_ods",
        checks=f"{__package__}.ods:check_ods",
        signature=ZIP,
        is_sure=lambda content: content[30:86].startswith(b"mimetype" + CALC.encode()),
        is_text=False,
        has_rows=True,
        after="xlsx",
    ),
    Loader(
        kind="odt",
        label="LibreOffice Writer",
        named="a LibreOffice document (.odt)",
        media_type=WRITER,
        endings=(".odt",),
        loads=f"{__package__}.odt:load_odt",
        checks=f"{__package__}.odt:check_odt",
        signature=ZIP,
        is_sure=lambda content: content[30:].startswith(b"mimetype" + WRITER.encode() + b"PK"),
        is_text=False,
        after="xlsx",
    ),
)
