"""Turn the posts of a notice board, rows of a table or webhook events, into documents with metadata (source 000)."""
