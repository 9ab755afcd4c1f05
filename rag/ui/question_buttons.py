"""Questions to ask at a click: those a collection suggests, and those that follow an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from rag.ui.text import plain


def draw_question_buttons(questions: Sequence[str], *, key: str, on_ask: Callable[[str], None]) -> None:
    """A button per question, whole on a phone too, where a row of pills would be cut off."""
    with st.container(key=key, gap="xsmall"):
        for number, question in enumerate(questions):
            st.button(plain(question), key=f"{key}_{number}", on_click=on_ask, args=(question,), wrap=True)
