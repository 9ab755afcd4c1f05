"""Ingest documents: read, chunk, embed, tag and publish; each step is durable."""
