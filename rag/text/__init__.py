"""Pure functions on text: words, tables, spans, numbers, dates and months."""
