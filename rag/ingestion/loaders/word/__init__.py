"""Read Word files: the package's parts, styles, numbers, equations, and the visible text."""
