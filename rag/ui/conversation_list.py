"""Draw the conversations in the sidebar, to open, find, rename and delete them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

import streamlit as st

import rag.services
from rag.errors import PackagesMissing, RagError
from rag.language import N_, _
from rag.records.conversations import Conversations
from rag.types import Conversation, Identity
from rag.ui import actions
from rag.ui.formats import time_zone
from rag.ui.text import plain
from rag.ui.widgets import red, search_box

MOST_SHOWN = 10
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
#: The only line with CSS: Streamlit centres labels in wide buttons.
LEFT_ALIGNED = "<style>.st-key-chat_recent button>div{justify-content:flex-start}</style>"

#: How many days ago a conversation was used at most, and the heading it is under then.
GROUPS = ((0, N_("Today")), (1, N_("Yesterday")), (7, N_("Previous 7 days")), (30, N_("Previous 30 days")))

Open = Callable[[UUID | None], None]


def draw_recent(
    conversations: Conversations,
    identity: Identity,
    recent: Sequence[Conversation],
    opened: Conversation | None,
    on_open: Open,
) -> None:
    """Draw the button for a new chat and the list of conversations, the last used first.

    `on_open` is called with the selected conversation, or `None` for a new chat.
    """
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
        # A session's first run has no callback yet, and the next question is not for the old conversation.
        on_open(None)
        st.rerun()
    if not recent:
        return
    listed = recent
    if len(recent) > MOST_SHOWN and state.chat_all_recent:
        query = search_box(_("Search conversations"), key="chat_search")
        listed = [c for c in recent if query.casefold() in c.title.casefold()]
    elif len(recent) > MOST_SHOWN:
        listed = recent[:MOST_SHOWN]
    with st.container(key="chat_recent", gap=None):
        zone = time_zone(st.context.timezone)
        group = ""
        for conversation in listed:
            if (its_group := group_of(conversation, datetime.now(zone))) != group:
                group = its_group
                st.caption(_(group))
            _draw_row(conversations, identity, conversation, opened, on_open)
        if not listed:
            st.caption(_("No conversation has a name with this text."))
    if len(recent) > MOST_SHOWN:
        st.button(
            _("Show fewer") if state.chat_all_recent else _("Show all {found}", found=len(recent)),
            key="chat_more_recent",
            type="tertiary",
            icon=":material/unfold_less:" if state.chat_all_recent else ":material/unfold_more:",
            on_click=lambda: state.update(chat_all_recent=not state.chat_all_recent),
        )


def group_of(conversation: Conversation, now: datetime) -> str:
    """Return the heading under which a conversation is listed, in English."""
    if conversation.pinned_at:
        return N_("Pinned")
    days = (now.date() - conversation.updated_at.astimezone(now.tzinfo).date()).days
    return next((heading for most, heading in GROUPS if days <= most), N_("Older"))


def _draw_row(
    conversations: Conversations,
    identity: Identity,
    conversation: Conversation,
    opened: Conversation | None,
    on_open: Open,
) -> None:
    is_open = opened is not None and conversation.id == opened.id
    label = f"**{plain(conversation.title)}**" if is_open else plain(conversation.title)
    news = " :green-badge[:material/support_agent:]" if conversation.has_news and not is_open else ""
    with st.container(horizontal=True, vertical_alignment="center", gap=None, wrap=False):
        st.button(
            label + news,
            key=f"chat_open_{conversation.id}",
            type="tertiary",
            width="stretch",
            wrap=False,
            on_click=on_open,
            args=(conversation.id,),
        )
        pin = N_("Unpin") if conversation.pinned_at else N_("Pin")
        action = st.menu_button(
            _("Actions of “{title}”", title=plain(conversation.title)),
            [pin, N_("Rename"), N_("Share"), N_("Export"), N_("Delete")],
            format_func=_,
            icon=":material/more_horiz:",
            key=f"chat_actions_{conversation.id}",
            type="tertiary",
            help=_("Pin, rename, share, export or delete this conversation"),
        )
    if action in ("Pin", "Unpin"):
        conversations.pin(identity, conversation.id, is_pinned=action == "Pin")
        st.rerun()
    elif action:
        st.session_state.chat_dialog = action
        st.session_state.chat_dialog_of = conversation


def draw_dialog(
    conversations: Conversations, identity: Identity, opened: Conversation | None, on_open: Open, *, address: str
) -> bool:
    """Draw the opened dialog for a conversation, if any. Return whether a dialog is open.

    The dialog concerns the conversation selected in the list, else the open conversation. `address` is the product's
    public address, for links.
    """
    target: Conversation | None = st.session_state.get("chat_dialog_of") or opened
    chosen = st.session_state.get("chat_dialog")
    if not chosen or target is None:
        return False
    if chosen == "Rename":
        _rename(conversations, identity, target)
    elif chosen == "Share":
        _share(conversations, identity, target, address)
    elif chosen == "Export":
        _export(conversations, identity, target, address)
    elif chosen == "Delete":
        _delete(conversations, identity, target, on_open if opened is not None and opened.id == target.id else None)
    return True


def _rename(conversations: Conversations, identity: Identity, target: Conversation) -> None:
    @st.dialog(_("Rename conversation"), on_dismiss=_close)
    def rename() -> None:
        with st.form("chat_rename", border=False):
            title = st.text_input(_("Name"), value=target.title)
            if st.form_submit_button(_("Save"), type="primary"):
                try:
                    conversations.rename(identity, target.id, title)
                except RagError as exc:
                    st.error(plain(exc.message))
                else:
                    _close()
                    st.rerun()

    rename()


def _delete(conversations: Conversations, identity: Identity, target: Conversation, on_open: Open | None) -> None:
    """Ask whether to delete a conversation.

    `on_open` opens an empty page. It is given only if `target` is the open conversation.
    """

    def take_away() -> None:
        sentence = _("“{title}” is deleted.", title=target.title)
        take = partial(conversations.delete, identity, target.id)
        actions.remove(
            "chat",
            sentence,
            take,
            partial(conversations.put_back, identity),
            problem="chat_problem",
            on_removed=partial(on_open, None) if on_open is not None else None,
        )
        _close()

    @st.dialog(_("Delete conversation"), on_dismiss=_close)
    def delete() -> None:
        st.markdown(
            _(
                "**{title}** is deleted with its questions and answers. Immediately after deleting, you can still "
                "undo this.",
                title=plain(target.title),
            )
        )
        with st.container(horizontal=True):
            if st.button(red(_("Delete")), key="chat_delete_yes", icon=":material/delete:", on_click=take_away):
                st.rerun()
            if st.button(_("Keep"), key="chat_delete_no"):
                _close()
                st.rerun()

    delete()


def _share(conversations: Conversations, identity: Identity, target: Conversation, address: str) -> None:
    def let(is_shared: bool) -> None:
        conversations.share(identity, target.id, is_shared=is_shared)

    @st.dialog(_("Share conversation"), on_dismiss=_close)
    def share() -> None:
        conversation = conversations.get(identity, target.id)
        st.markdown(
            _(
                "Colleagues who have the link and may read the same documents see the questions and answers of this "
                "conversation up to now."
            )
        )
        if conversation.shared_at:
            st.code(f"{address}/?c={conversation.id}", language=None)
            st.caption(_("Colleagues do not see sources in documents that they may not open."))
        with st.container(horizontal=True):
            st.button(
                _("Also share newer messages") if conversation.shared_at else _("Share by link"),
                key="chat_share_yes",
                type="primary",
                icon=":material/share:",
                on_click=let,
                args=(True,),
            )
            if conversation.shared_at:
                st.button(_("Stop sharing"), key="chat_share_no", on_click=let, args=(False,))

    share()


def _export(conversations: Conversations, identity: Identity, target: Conversation, address: str) -> None:
    # These imports take a fifth of a second and are only needed here.
    from rag.records.transcript import to_docx, to_markdown

    pdfs = rag.services.services().pdf_exports
    messages = conversations.messages(identity, target.id)

    @st.dialog(_("Export conversation"), on_dismiss=_close)
    def export() -> None:
        st.markdown(_("Questions, answers and sources, with links to the pages."))
        name = re.sub(r"[^\w -]", "", target.title).strip()[:60] or "conversation"
        # A click which redraws the dialog may remove the file it asks for.
        with st.container(horizontal=True):
            if pdfs is not None and pdfs.is_installed:
                st.download_button(
                    _("PDF"), lambda: pdfs.write_conversation(target, messages, address=address), f"{name}.pdf",
                    "application/pdf", icon=":material/picture_as_pdf:", key="chat_export_pdf", on_click="ignore",
                )  # fmt: skip
            elif pdfs is not None:
                st.button(_("PDF"), icon=":material/picture_as_pdf:", key="chat_export_no_pdf", disabled=True)
            st.download_button(
                _("Word"), lambda: to_docx(target, messages, address=address), f"{name}.docx", DOCX,
                icon=":material/description:", key="chat_export_docx", on_click="ignore",
            )  # fmt: skip
            st.download_button(
                _("Markdown"), lambda: to_markdown(target, messages, address=address), f"{name}.md", "text/markdown",
                icon=":material/markdown:", key="chat_export_markdown", on_click="ignore",
            )  # fmt: skip
        if pdfs is not None and not pdfs.is_installed:
            st.warning(plain(PackagesMissing().message), icon=":material/extension_off:")

    export()


def _close() -> None:
    st.session_state.chat_dialog = None
    st.session_state.chat_dialog_of = None
