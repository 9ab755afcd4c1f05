"""Read Word files: parts, styles, list numbers, equations, and the visible text."""
