"""Guard the extras in a reply, such as next questions or the log row."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Log errors in an extra. The answer keeps text, sources and outcome."""
    try:
        yield
    except Exception:
        log.exception("The answer goes on without its %s", name)
