"""Turn retrieved chunks into a cited, checked and logged answer."""
