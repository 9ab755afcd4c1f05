"""Report how the product runs to its operator: counts for Prometheus, traces by OpenTelemetry."""
