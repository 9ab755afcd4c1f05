"""Evaluate a collection: ask questions with known answers, and measure retrieval and answers."""
