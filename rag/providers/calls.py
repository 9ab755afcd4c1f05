"""How a paid call is to be sent, and who has to know when one was paid for and brought nothing.

Set around a call by whoever makes it durable and keeps its bill, read where requests are written; so no signature in
between carries it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from rag.errors import ProviderError
from rag.providers.tokens import estimate_tokens
from rag.types import ChatMessage, Usage

log = logging.getLogger(__name__)

#: Tokens of a picture: what OpenAI counts for one of a page's size.
IMAGE_TOKENS = 765


@dataclass(frozen=True)
class Sending:
    #: The same for every attempt at one call: a provider that knows such keys answers and bills it once.
    key: str = ""
    #: Attempts made here after the first; None leaves it to the operation.
    retries: int | None = None

    def headers(self, part: int) -> dict[str, str]:
        """Headers of one request; a call that is split into several has a key for each."""
        return {"Idempotency-Key": f"{self.key}-{part}"} if self.key else {}


PLAIN = Sending()
_sending: ContextVar[Sending] = ContextVar("sending", default=PLAIN)


@contextmanager
def sending(key: str, *, retries: int | None = None) -> Iterator[None]:
    """Send what is called within as one call with this key."""
    token = _sending.set(Sending(key, retries))
    try:
        yield
    finally:
        _sending.reset(token)


def current_sending() -> Sending:
    return _sending.get()


# Calls that brought nothing

Report = Callable[[Usage], None]
_report: ContextVar[Report | None] = ContextVar("report", default=None)


@dataclass(frozen=True)
class Notes:
    """Whoever writes down a request before it is made, so that a kill in the middle of it is known."""

    #: Told what the request is expected to be billed as.
    send: Report
    #: Told that it failed and nobody bills it.
    drop: Callable[[], None]


_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)


@contextmanager
def lost_calls(report: Report, *, notes: Notes | None = None) -> Iterator[None]:
    """Tell `report` of each request within that brought nothing and was, or may have been, billed.

    `notes` is told of each before it is made; what an answer that came is billed as, the caller knows.
    """
    token, noted = _report.set(report), _notes.set(notes)
    try:
        yield
    finally:
        _report.reset(token)
        _notes.reset(noted)


def report_lost(usage: Usage) -> None:
    """Say that a request was paid for, or may have been, and brought nothing that can be used."""
    report = _report.get()
    if report is None:
        log.warning("a call to %s %s brought nothing, and nobody keeps its bill", usage.provider, usage.model)
    else:
        report(usage)


@contextmanager
def accounted(expected: Callable[[], Usage]) -> Iterator[None]:
    """Report the one request made within when it fails and was, or may have been, billed.

    As the provider counted it where the error knows (`details["usage"]`), else as `expected`.
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
    """Have the one request made within written down before it is made; it is reported as by `accounted`."""
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
    """What a failed request was, or may have been, billed as; None when nobody bills such a failure."""
    counted = error.details.get("usage")
    if isinstance(counted, Usage):
        return counted
    return expected() if error.details.get("is_perhaps_billed") else None


@contextmanager
def billed_as(usage: Usage) -> Iterator[None]:
    """Note in an error raised within that the answer had come and what it was billed as."""
    try:
        yield
    except ProviderError as exc:
        exc.details["usage"] = usage
        raise


@contextmanager
def lost_with(usages: Sequence[Usage]) -> Iterator[None]:
    """Report these answers, too, when what is done within fails: they are of no use without the rest."""
    try:
        yield
    except BaseException:
        for usage in usages:
            report_lost(usage)
        raise


def estimated_chat(provider: str, model: str, messages: Sequence[ChatMessage], text: str = "") -> Usage:
    """What asking a model this, and getting `text`, is billed as, where the provider does not say."""
    pictures = sum(len(message.images) for message in messages)
    return Usage(
        provider=provider,
        model=model,
        input_tokens=sum(estimate_tokens(message.content, model=model) for message in messages)
        + pictures * IMAGE_TOKENS,
        output_tokens=estimate_tokens(text, model=model),
        is_estimated=True,
    )
