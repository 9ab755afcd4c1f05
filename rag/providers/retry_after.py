"""How long a provider asks to wait, from the headers of its refusal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite

#: What nobody means: a clock that is wrong, or a quota that returns next month.
LONGEST_SECONDS = 24 * 3600.0


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms` or `Retry-After`, a number or a date (RFC 9110); None where neither can be read."""
    found = {name.lower(): value for name, value in headers.items()}
    seconds = _number(found.get("retry-after-ms"), 0.001)
    if seconds is None:
        seconds = _number(found.get("retry-after"), 1.0)
    if seconds is None:
        try:
            until = parsedate_to_datetime(found.get("retry-after", ""))
        except ValueError:
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        seconds = (until - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_SECONDS)


def _number(value: str | None, unit: float) -> float | None:
    try:
        number = float(value or "") * unit
    except ValueError:
        return None
    return number if isfinite(number) else None
