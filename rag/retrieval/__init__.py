"""Find the chunks to answer a question from."""
