"""From retrieved chunks to a cited, checked and logged answer."""
