"""Describe the Hangul formats."""

from __future__ import annotations

from rag.ingestion.loaders.loader import Loader
from rag.ingestion.loaders.signatures import COMPOUND, ZIP

#: At the start of Hangul documents from before 2000, and inside the compound files of later documents.
HANGUL = b"HWP Document File"


def is_hangul(content: bytes) -> bool:
    """Whether the bytes are a Hangul document (.hwp)."""
    return content.startswith(HANGUL) or (content.startswith(COMPOUND) and HANGUL in content)


FORMATS = (
    Loader(
        kind="hwp",
        label="Hangul",
        named="a Hangul document (.hwp)",
        media_type="application/x-hwp",
        endings=(".hwp",),
        loads=f"{__package__}.hwp:load_hwp",
        checks=f"{__package__}.hwp:check_hwp",
        signature=COMPOUND,
        is_sure=is_hangul,
        is_text=False,
        after="pptx",
    ),
    Loader(
        kind="hwpx",
        label="Hangul (XML)",
        named="a Hangul document (.hwpx)",
        media_type="application/hwp+zip",
        endings=(".hwpx",),
        loads=f"{__package__}.hwp:load_hwp",
        checks=f"{__package__}.hwp:check_hwp",
        signature=ZIP,
        is_sure=lambda content: content[30:].startswith(b"mimetypeapplication/hwp+zip"),
        is_text=False,
        after="pptx",
    ),
)
