"""From a question to the chunks that answer it."""
