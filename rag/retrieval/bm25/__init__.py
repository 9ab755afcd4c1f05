"""Search by keyword: split texts into terms, and store, find and score the terms."""
