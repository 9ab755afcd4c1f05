"""Traces for OpenTelemetry: `export` sends the spans which the core records."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="traces",
    title="OpenTelemetry",
    packages=("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    tracing=f"{__name__}.export:start_export",
)
