"""The commands: each module adds some with `add_parsers` and runs them.

Imports wait until a command runs, so help appears at once.
"""
