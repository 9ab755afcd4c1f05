"""The commands: each module adds some with `add_parsers` and carries them out. Imports wait until a command runs; help
is there at once.
"""
