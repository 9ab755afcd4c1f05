"""Where documents come from besides uploads: folders, GitHub, notice boards, and exports of other vector stores.

`sync` makes a collection equal to a source, `runs` does so on request, `registry` makes each kind of source.
"""
