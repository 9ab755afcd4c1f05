"""The commands. Each module adds parsers with `add_parsers` and runs the commands.

A command's packages are imported only when the command runs, because help should appear immediately.
"""
