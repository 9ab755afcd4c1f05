"""Read Word's own form of a document: its parts, styles, numbers, equations, and the walk through its text."""
