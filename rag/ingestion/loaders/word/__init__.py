"""Read Word's file format: its parts, styles, numbers, equations, and the walk through its text."""
