"""Posts of a notice board: rows of a table or of webhook events in, documents with their metadata out (source 000)."""
