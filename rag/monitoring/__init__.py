"""What whoever runs the product watches: counts for Prometheus, traces by OpenTelemetry."""
