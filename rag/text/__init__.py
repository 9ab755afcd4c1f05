"""Pure functions on text: words, tables, dates and months."""
