"""Prepare Pillow for pictures from phones: libheif decodes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pi_heif

from rag.errors import FileKindUnknown
from rag.sandbox.child_process import threads_allowed

WITHOUT_THREADS = "This picture is in a format that phones use (HEIC). Save it as JPEG and upload the new file."
pi_heif.register_heif_opener(thumbnails=False, depth_images=False, aux_images=False, decode_threads=0)


@contextmanager
def decoding() -> Iterator[None]:
    """Allow threads while a picture is open.

    The decoder starts a thread for each part, and ends the process if this fails. Therefore, if no thread can start,
    `FileKindUnknown` is raised.
    """
    with threads_allowed() as can_decode:
        if not can_decode:
            raise FileKindUnknown(WITHOUT_THREADS)
        yield
