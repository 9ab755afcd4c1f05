"""Loaders turn bytes into pages. They run in the sandbox and may rely on nothing about their input."""
