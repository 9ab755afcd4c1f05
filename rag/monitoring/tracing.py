"""Trace requests, questions, their steps and model calls with OpenTelemetry. An integration sends the traces.

Model calls follow the GenAI conventions (`gen_ai.*`), which are still in development. Spans contain no text: no
question, prompt, answer, passage, title, name or address. People who may read a question in analytics find it there by
the attribute `rag.chat_log.id`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

if TYPE_CHECKING:
    from rag.types import Usage

#: OpenTelemetry itself must not record error texts.
WITHOUT_TEXT: Mapping[str, Any] = {"record_exception": False, "set_status_on_exception": False}

#: The current request's id, for responses, problems and the log.
request_id: ContextVar[str] = ContextVar("request_id", default="")

_tracer = trace.get_tracer("rag")


@contextmanager
def span(name: str, attributes: Mapping[str, Any] | None = None) -> Iterator[Span]:
    """Trace the `with` block in a child of the current span, and yield the new span."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield trace.INVALID_SPAN  # Off: an unrecorded span takes as long as a small statement.
        return
    with _tracer.start_as_current_span(name, attributes=attributes, **WITHOUT_TEXT) as begun, _failing(begun):
        yield begun


@contextmanager
def request_span(name: str, headers: Mapping[str, str], attributes: Mapping[str, Any]) -> Iterator[Span]:
    """Trace a request and yield the span. If the headers name the caller's trace, the span belongs to this trace."""
    parent = propagate.extract(headers)
    with (
        _tracer.start_as_current_span(name, parent, SpanKind.SERVER, attributes, **WITHOUT_TEXT) as begun,
        _failing(begun),
    ):
        yield begun


class ModelCall:
    """A traced request to a model."""

    def __init__(self, begun: Span) -> None:
        self._span = begun

    def used(self, usage: Usage | None) -> None:
        """Set the span's attributes for the usage which the provider reported. Estimates are left out."""
        if usage is None or usage.is_estimated:
            return
        counted = {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "rag.usage.search_units": usage.search_units,
            "rag.usage.pages": usage.pages,
        }
        self._span.set_attributes({name: count for name, count in counted.items() if count})


@contextmanager
def model_call(operation: str, provider: str, model: str) -> Iterator[ModelCall]:
    """Trace a request to a model: `chat`, `embeddings`, `rerank` or `ocr`.

    The span never becomes the parent of other spans, because a generator may keep the span open.
    """
    begun = _tracer.start_span(
        f"{operation} {model}",
        kind=SpanKind.CLIENT,
        attributes={
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        },
    )
    try:
        with _failing(begun):
            yield ModelCall(begun)
    finally:
        begun.end()


@contextmanager
def _failing(begun: Span) -> Iterator[None]:
    """Record an error's type in the span. The text is left out, because error texts may quote a document."""
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException as exc:
        begun.set_attribute("error.type", type(exc).__name__)
        begun.set_status(Status(StatusCode.ERROR))
        raise


def trace_id() -> str:
    """Return this thread's trace id in hexadecimal; "" if tracing is off."""
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else ""


__all__ = ["ModelCall", "model_call", "request_id", "request_span", "span", "trace_id"]


def ms_since(started: float) -> float:
    """Return the milliseconds since a reading of `time.perf_counter`."""
    return round(1000 * (time.perf_counter() - started), 3)
