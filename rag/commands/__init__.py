"""The commands. Each module adds parsers with `add_parsers` and runs the commands.

Packages are imported only when a command runs, which makes help appear immediately.
"""
