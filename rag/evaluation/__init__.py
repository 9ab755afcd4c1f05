"""Ask a collection questions with known answers, and measure search results and answers."""
