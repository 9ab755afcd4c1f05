"""Get documents from websites, drives, folders, GitHub, notice boards and vector store exports.

`sync` makes a collection equal to a source, `runs` does this on request, and `registry` creates sources by kind.
"""
