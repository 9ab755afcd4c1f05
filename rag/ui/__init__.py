"""Shared parts of the pages."""
