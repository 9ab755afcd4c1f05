"""Answer questions in chat programs."""
