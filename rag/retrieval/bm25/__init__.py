"""Keyword search: how texts become terms, and how terms are kept, found and scored."""
