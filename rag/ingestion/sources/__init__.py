"""Passages of another vector store taken over: an export file read, grouped into documents and embedded again."""
