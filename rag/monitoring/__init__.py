"""Report the product's state to its operator: Prometheus counts, OpenTelemetry traces."""
