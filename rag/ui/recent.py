"""The conversations in the sidebar: opened, found again, renamed and deleted there."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import streamlit as st

from rag.errors import RagError
from rag.language import N_, _
from rag.records.conversations import Conversations
from rag.types import Conversation, Identity
from rag.ui.text import plain

SHOWN = 10
#: The one line of CSS there is: Streamlit centres the label of a button as wide as its container.
LEFT_ALIGNED = "<style>.st-key-chat_recent button>div{justify-content:flex-start}</style>"

Open = Callable[[UUID | None], None]


def draw_recent(conversations: Conversations, identity: Identity, opened: Conversation | None, on_open: Open) -> None:
    """Draw the button for a new chat and the list, the last used first; `on_open` is called with the one chosen."""
    state = st.session_state
    state.setdefault("chat_all_recent", False)
    st.html(LEFT_ALIGNED)
    is_clicked = st.button(
        _("New chat"),
        key="chat_new",
        icon=":material/edit_square:",
        width="stretch",
        shortcut="Mod+Shift+O",
        on_click=on_open,
        args=(None,),
    )
    if is_clicked and opened is not None:
        # The first run of a session, which knows no callback yet: what is asked next is not for the old conversation.
        on_open(None)
        st.rerun()
    found = conversations.list(identity)
    if not found:
        return
    shown = found
    if len(found) > SHOWN and state.chat_all_recent:
        wanted = st.text_input(
            _("Search conversations"),
            key="chat_search",
            placeholder=_("Search conversations"),
            label_visibility="collapsed",
            icon=":material/search:",
        )
        shown = [c for c in found if wanted.casefold() in c.title.casefold()]
    elif len(found) > SHOWN:
        shown = found[:SHOWN]
    with st.container(key="chat_recent", gap=None):
        st.caption(_("Recent"))
        for conversation in shown:
            _draw_row(conversation, on_open, is_open=opened is not None and conversation.id == opened.id)
        if not shown:
            st.caption(_("No conversation has this in its name."))
    if len(found) > SHOWN:
        st.button(
            _("Show fewer") if state.chat_all_recent else _("Show all {found}", found=len(found)),
            key="chat_more_recent",
            type="tertiary",
            icon=":material/unfold_less:" if state.chat_all_recent else ":material/unfold_more:",
            on_click=lambda: state.update(chat_all_recent=not state.chat_all_recent),
        )


def _draw_row(conversation: Conversation, on_open: Open, *, is_open: bool) -> None:
    if not is_open:
        _draw_title(conversation, plain(conversation.title), on_open)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap=None, wrap=False):
        _draw_title(conversation, f"**{plain(conversation.title)}**", on_open)
        action = st.menu_button(
            ":material/more_horiz:",
            [N_("Rename"), N_("Delete")],
            format_func=_,
            key="chat_actions",
            type="tertiary",
            help=_("Rename or delete this conversation"),
        )
        if action:
            st.session_state.chat_dialog = action


def _draw_title(conversation: Conversation, label: str, on_open: Open) -> None:
    st.button(
        label,
        key=f"chat_open_{conversation.id}",
        type="tertiary",
        width="stretch",
        wrap=False,
        on_click=on_open,
        args=(conversation.id,),
    )


def draw_dialog(conversations: Conversations, identity: Identity, opened: Conversation, on_open: Open) -> bool:
    """Draw the dialog chosen for the open conversation; whether there is one. Only one can be open in a run."""

    @st.dialog(_("Rename conversation"), on_dismiss=_close)
    def rename() -> None:
        with st.form("chat_rename", border=False):
            title = st.text_input(_("Name"), value=opened.title, max_chars=200)
            if st.form_submit_button(_("Save"), type="primary"):
                try:
                    conversations.rename(identity, opened.id, title)
                except RagError as exc:
                    st.error(plain(exc.message))
                else:
                    _close()
                    st.rerun()

    @st.dialog(_("Delete conversation"), on_dismiss=_close)
    def delete() -> None:
        st.markdown(
            _("**{title}** will be deleted for good, with its questions and answers.", title=plain(opened.title))
        )
        with st.container(horizontal=True):
            if st.button(_("Delete"), key="chat_delete_yes", type="primary"):
                conversations.delete(identity, opened.id)
                _close()
                on_open(None)
                st.rerun()
            if st.button(_("Keep"), key="chat_delete_no"):
                _close()
                st.rerun()

    chosen = st.session_state.get("chat_dialog")
    if chosen == "Rename":
        rename()
    elif chosen == "Delete":
        delete()
    return bool(chosen)


def _close() -> None:
    st.session_state.chat_dialog = None
