"""Serve the HTTP interface for programs and the pages for signing in."""
