"""Connect company directories."""
