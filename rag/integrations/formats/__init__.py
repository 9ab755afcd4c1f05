"""Loaders for rare file formats."""
