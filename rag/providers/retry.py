"""Retry paid calls, limit the number of calls at the same time, and account for calls without a result.

A context manager around the call sets how it is sent and who records its bill. Requests read this context, so the
functions in between need no parameters for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TypeVar

from rag.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    VectorUnusable,
)
from rag.text.tokens import estimate_tokens
from rag.types import ChatMessage, Usage

Value = TypeVar("Value")

#: Calls in flight under normal conditions.
MAXIMUM_IN_FLIGHT = 4
#: Attempts at a call before its document waits in the queue, and the first wait in seconds, doubled each time.
ATTEMPTS = 4
FIRST_WAIT_SECONDS = 0.5
#: A longer wait is left to the queue, where it blocks no worker.
LONGEST_WAIT_SECONDS = 20.0

Wait = Callable[[float], None]


class CallGate:
    """Limits the number of calls to a provider at the same time, across all callers. Thread-safe.

    Additive increase, multiplicative decrease: a refused call halves the limit; a full round of answers adds 1.
    """

    def __init__(self, maximum: int = MAXIMUM_IN_FLIGHT) -> None:
        self.maximum = maximum
        self.limit = float(maximum)
        self.in_flight = 0
        self._not_before = 0.0
        self._changed = threading.Condition()
        #: The earliest time for the next call, by name of the called service.
        self._ready_at: dict[str, float] = {}

    def call(self, function: Callable[[], Value], *, wait: Wait) -> Value:
        """Make a call when there is room, and return its result. Failed calls are retried.

        `wait(seconds)` is a function which sleeps, and raises an error if the application stops. The wait before a
        retry is at least the provider's Retry-After. Raises the last `ProviderError`; `details["retry_after_seconds"]`
        has the wait requested by the provider, if any.
        """
        for attempt in range(ATTEMPTS):
            try:
                with self._place(wait):
                    return function()
            except VectorUnusable:
                raise  # The same text would give the same answer.
            except (ProviderQuotaExhausted, ProviderUnavailable, ProviderAnswerInvalid) as exc:
                wait_seconds = retry_after(exc)
                pause = max(wait_seconds, FIRST_WAIT_SECONDS * 2**attempt)
                if isinstance(exc, ProviderQuotaExhausted):
                    self._slow_down(wait_seconds)
                if attempt == ATTEMPTS - 1 or pause > LONGEST_WAIT_SECONDS:
                    raise
                wait(pause)
        raise AssertionError("unreachable")

    @contextmanager
    def spaced(self, name: str, seconds: float, *, wait: Wait) -> Iterator[None]:
        """Keep calls with the same `name` at least `seconds` apart. `wait` is the same function as for `call`."""
        with self._changed:
            now = time.monotonic()
            begin = max(now, self._ready_at.get(name, now))
            self._ready_at[name] = begin + seconds
        wait(begin - now)
        try:
            yield
        finally:
            with self._changed:
                self._ready_at[name] = max(self._ready_at[name], time.monotonic() + seconds)

    @contextmanager
    def _place(self, wait: Wait) -> Iterator[None]:
        while True:
            with self._changed:
                pause = self._not_before - time.monotonic()
                if pause <= 0 and self.in_flight < max(1, int(self.limit)):
                    self.in_flight += 1
                    break
                if pause <= 0:
                    self._changed.wait(0.1)
            wait(min(max(pause, 0.0), 0.5))
        try:
            yield
        except BaseException:
            with self._changed:
                self.in_flight -= 1
                self._changed.notify_all()
            raise
        with self._changed:
            self.in_flight -= 1
            self.limit = min(self.maximum, self.limit + 1 / max(self.limit, 1))
            self._changed.notify_all()

    def _slow_down(self, wait_seconds: float) -> None:
        with self._changed:
            self.limit = max(1.0, self.limit / 2)
            # A wait this long is left to the document and must not block calls of other documents.
            if wait_seconds <= LONGEST_WAIT_SECONDS:
                self._not_before = max(self._not_before, time.monotonic() + wait_seconds)


def retry_after(error: ProviderError) -> float:
    """Return the wait requested by the provider in seconds, or 0."""
    return float(error.details.get("retry_after_seconds") or 0.0)


log = logging.getLogger(__name__)

#: Tokens for a picture: OpenAI's count for a page.
IMAGE_TOKENS = 765


@dataclass(frozen=True)
class Sending:
    #: The idempotency key, the same for every attempt at a call: a provider which supports keys bills once.
    key: str = ""
    #: Retries after the first attempt; `None` for the operation's default.
    retries: int | None = None

    def headers(self, part: int | str) -> dict[str, str]:
        """Return a request's idempotency header. `part` distinguishes the requests into which a call was split."""
        return {"Idempotency-Key": f"{self.key}-{part}"} if self.key else {}


PLAIN = Sending()
_sending: ContextVar[Sending] = ContextVar("sending", default=PLAIN)


@contextmanager
def sending(key: str, *, retries: int | None = None) -> Iterator[None]:
    """Send all requests in the `with` block with the same idempotency key, because they belong to a single call."""
    token = _sending.set(Sending(key, retries))
    try:
        yield
    finally:
        _sending.reset(token)


def current_sending() -> Sending:
    return _sending.get()


# Calls without a result

Report = Callable[[Usage], None]
_report: ContextVar[Report | None] = ContextVar("report", default=None)


@dataclass(frozen=True)
class Notes:
    """Functions which record a request before it is sent, so that the record exists even if the process is killed."""

    #: Called with the request's expected bill.
    send: Report
    #: Called if the request fails without a bill.
    drop: Callable[[], None]


_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)


@contextmanager
def lost_calls(report: Report, *, notes: Notes | None = None) -> Iterator[None]:
    """Report each request in the `with` block which has no result but was, or may have been, billed.

    `notes` records each request before it is sent. Requests with a result are billed by the caller.
    """
    token, noted = _report.set(report), _notes.set(notes)
    try:
        yield
    finally:
        _report.reset(token)
        _notes.reset(noted)


def report_lost(usage: Usage) -> None:
    """Report a request without a usable result which was, or may have been, billed. Without a listener, log it."""
    report = _report.get()
    if report is None:
        log.warning("a call to %s %s returned nothing, and its bill is not recorded", usage.provider, usage.model)
    else:
        report(usage)


@contextmanager
def accounted(expected: Callable[[], Usage]) -> Iterator[None]:
    """Report the single request in the `with` block if the request fails and was, or may have been, billed.

    The report has the provider's count (`details["usage"]` in the error), else `expected`.
    """
    try:
        yield
    except ProviderError as exc:
        usage = usage_of_failure(exc, expected)
        if usage is not None:
            report_lost(usage)
        raise


@contextmanager
def requested(expected: Callable[[], Usage]) -> Iterator[None]:
    """Record the single request in the `with` block before it is sent.

    A failed, possibly billed request is reported like in `accounted`.
    """
    notes = _notes.get()
    if notes is not None:
        notes.send(expected())
    try:
        with accounted(expected):
            yield
    except ProviderError as exc:
        if notes is not None and usage_of_failure(exc, expected) is None:
            notes.drop()
        raise


def usage_of_failure(error: ProviderError, expected: Callable[[], Usage]) -> Usage | None:
    """Return the usage for which a failed request is, or may be, billed. Returns `None` if it is not billed."""
    counted = error.details.get("usage")
    if isinstance(counted, Usage):
        return counted
    return expected() if error.details.get("is_perhaps_billed") else None


@contextmanager
def billed_as(usage: Usage) -> Iterator[None]:
    """Add `usage` to a `ProviderError` raised in the `with` block, because the response arrived and is billed."""
    try:
        yield
    except ProviderError as exc:
        exc.details["usage"] = usage
        raise


@contextmanager
def lost_with(usages: Sequence[Usage]) -> Iterator[None]:
    """If the `with` block fails, report the usage of earlier responses as lost.

    They are billed, but useless without the rest.
    """
    try:
        yield
    except BaseException:
        for usage in usages:
            report_lost(usage)
        raise


def estimated_chat(provider: str, model: str, messages: Sequence[ChatMessage], text: str = "") -> Usage:
    """Estimate the usage of a chat call which returned `text`. Used if the provider reports none."""
    pictures = sum(len(message.images) for message in messages)
    return Usage(
        provider=provider,
        model=model,
        input_tokens=sum(estimate_tokens(message.content, model=model) for message in messages)
        + pictures * IMAGE_TOKENS,
        output_tokens=estimate_tokens(text, model=model),
        is_estimated=True,
    )


#: Longer waits are capped: the cause is a wrong clock, or a quota renewed next month.
LONGEST_SECONDS = 24 * 3600.0


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in `retry-after-ms` or `Retry-After` (number or date, RFC 9110), or `None` without these
    headers.
    """
    lower_headers = {name.lower(): value for name, value in headers.items()}
    seconds = _number(lower_headers.get("retry-after-ms"), 0.001)
    if seconds is None:
        seconds = _number(lower_headers.get("retry-after"), 1.0)
    if seconds is None:
        try:
            until = parsedate_to_datetime(lower_headers.get("retry-after", ""))
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
