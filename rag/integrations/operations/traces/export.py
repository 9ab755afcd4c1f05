"""Send spans to the endpoint in OpenTelemetry's environment variables."""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SERVICE = "hr-assistant"


def start_export() -> Callable[[], None]:
    """Start sending spans. Return a function which sends the last spans and stops."""
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override the default name.
    provider = TracerProvider(resource=Resource({SERVICE_NAME: SERVICE}).merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown
