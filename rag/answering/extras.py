"""Log errors in optional parts of a reply, for example suggested questions, without failing the answer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Log and suppress errors raised in the block: the answer keeps text, citations and outcome."""
    try:
        yield
    except Exception:
        log.exception("The answer goes on without its %s", name)
