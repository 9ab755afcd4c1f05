"""Report the product's state to its operator, as Prometheus metrics and OpenTelemetry traces."""
