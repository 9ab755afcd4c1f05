"""Extras: parts of a reply that it can do without, such as next questions or the row of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Log what an extra raises, so that the answer keeps its text, its sources and its outcome."""
    try:
        yield
    except Exception:
        log.exception("The answer goes on without its %s", name)
