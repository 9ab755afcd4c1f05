"""Pure functions on text: words, tables, spans, dates and months."""
