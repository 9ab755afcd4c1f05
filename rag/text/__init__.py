"""Pure functions on text: words, language, tables, spans, numbers, dates and months."""
