"""Describe the format for phone pictures."""

from __future__ import annotations

import re

from rag.ingestion.loaders.loader import Loader

#: The start of a phone's pictures.
PHONE_PICTURE = re.compile(rb".{4}ftyp(?:heic|heix|heim|heis|hevc|hevx|hevm|hevs|mif1|msf1)", re.DOTALL)

FORMATS = (
    Loader(
        kind="heic",
        label="HEIC",
        named="a photograph of a phone (.heic)",
        media_type="image/heic",
        endings=(".heic", ".heif"),
        loads="rag.ingestion.loaders.pictures:load_picture",
        checks="rag.ingestion.loaders.pictures:check_picture",
        pillow_format="HEIF",
        decoding=f"{__package__}.picture:decoding",
        is_sure=lambda content: PHONE_PICTURE.match(content) is not None,
        is_text=False,
        has_pages=True,
        may_be_pictures=True,
        after="bmp",
    ),
)
