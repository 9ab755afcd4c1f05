"""Describe the format for Outlook messages."""

from __future__ import annotations

from rag.ingestion.loaders.loader import Loader
from rag.ingestion.loaders.signatures import COMPOUND, is_outlook

FORMATS = (
    Loader(
        kind="msg",
        label="Outlook",
        named="an Outlook message (.msg)",
        media_type="application/vnd.ms-outlook",
        endings=(".msg",),
        loads=f"{__package__}.message:load_msg",
        checks=f"{__package__}.message:check_msg",
        attaches=f"{__package__}.message:attached_to_msg",
        parses_mail=f"{__package__}.message:mail_of",
        signature=COMPOUND,
        is_sure=is_outlook,
        is_text=False,
        after="eml",
    ),
)
