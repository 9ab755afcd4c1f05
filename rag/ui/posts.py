"""A post of a notice board as people read and cite it.

A post's text is drawn as text. Its HTML came from editors this product does not know and is never drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import streamlit as st

from rag.retrieval.posts import attachments_of, category_of, without_attachments, written_on
from rag.types import Document
from rag.ui.formats import count, file_size
from rag.ui.text import marked, plain


def is_post(document: Document) -> bool:
    return "postId" in document.metadata


def post_day(document: Document) -> date:
    """The day a post gives itself, else that of its making."""
    return written_on(document.metadata) or document.created_at.date()


def marks_line(*, category: str, day: str, is_pinned: bool, is_important: bool) -> str:
    """Category, date and marks as one line of Markdown."""
    badges = [f":blue-badge[{plain(category)}]"] if category else []
    badges += [":orange-badge[:material/keep: Pinned]"] if is_pinned else []
    badges += [":red-badge[:material/priority_high: Important]"] if is_important else []
    return " ".join([*badges, *([f":gray[{plain(day)}]"] if day else [])])


def draw_post(document: Document, text: str, *, passage: str = "", terms: Sequence[str] = ()) -> None:
    """One post as it is read and cited: marks, text, attachments. `passage` is shown first, with `terms` marked."""
    metadata = document.metadata
    st.markdown(
        marks_line(
            category=category_of(metadata),
            day=f"{post_day(document):%-d %b %Y}",
            is_pinned=metadata.get("isPinned") is True,
            is_important=metadata.get("isImportant") is True,
        )
    )
    if passage:
        with st.container(border=True, gap="small"):
            st.markdown(":small[:gray[Cited passage]]")
            st.markdown(marked(without_attachments(passage, metadata), terms))
    st.markdown(paragraphs(without_attachments(text, metadata)))
    draw_attachments(document)


def paragraphs(text: str) -> str:
    """A post's text as Markdown that looks like it: lines that stand together stay together, such as a list's."""
    blocks = (block.strip("\n").split("\n") for block in text.split("\n\n"))
    return "\n\n".join("  \n".join(plain(line) for line in lines if line.strip()) for lines in blocks)


def draw_attachments(document: Document) -> None:
    """What hangs on a post, and what is known of each."""
    found = attachments_of(document.metadata)
    if not found:
        return
    st.markdown(f"**{count(len(found), 'attachment')}**")
    for item in found:
        icon = ":material/image:" if item.get("kind") == "image" else ":material/attach_file:"
        size = item.get("fileSize")
        st.markdown(f"{icon} {plain(str(item.get('fileName') or ''))} :gray[{file_size(int(size)) if size else ''}]")
        if told := str(item.get("description") or item.get("note") or ""):
            st.caption(plain(told))
