"""Pure functions on text: tables, dates and months."""
