"""Get documents from other places than uploads: websites, drives, folders, GitHub, boards, vector store exports.

`sync` makes a collection equal to a source, `runs` does this on request, `registry` makes each kind of source.
"""
