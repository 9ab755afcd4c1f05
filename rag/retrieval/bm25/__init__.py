"""Search by keyword: turn texts into terms, then store, find and score the terms."""
