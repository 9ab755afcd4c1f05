"""Find the chunks that answer a question."""
