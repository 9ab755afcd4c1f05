"""Get documents from elsewhere than uploads: websites, drives, folders, GitHub, boards, exports of vector stores.

`sync` makes a collection equal to a source, `runs` does so on request, `registry` makes each kind of source.
"""
