"""The commands: each module adds some with `add_parsers` and carries them out.

A command imports what it needs when it runs, so that help is there at once.
"""
