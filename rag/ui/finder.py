"""Draw a search for conversations and documents on any page (Ctrl+K), and a list with keyboard shortcuts (?)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import streamlit as st

from rag.language import N_, _, pgettext
from rag.library.text_search import page_with_words
from rag.services import Services
from rag.types import DocumentFilters, DocumentName, DocumentStatus, Identity
from rag.ui.page_view import turn_to
from rag.ui.scripts import script, style
from rag.ui.text import plain
from rag.ui.widgets import dialog, document_labels, search_box

#: The most results per kind.
MOST_RESULTS = 8
#: Fixed list height: the dialog does not resize while a person types.
LIST_PIXELS = 380

#: Keys and their actions. `Ctrl` is ⌘ on a Mac.
SHORTCUTS = (
    ("Ctrl+K", N_("Find conversations and documents")),
    ("Ctrl+Shift+O", N_("New chat")),
    ("/", N_("Go to the question")),
    ("@", N_("Choose documents while writing a question")),
    ("Enter", N_("Send the question")),
    ("Shift+Enter", N_("New line in the question")),
    ("← →", N_("Turn the pages of an open document")),
    ("Esc", N_("Close the page view or the open window")),
    ("?", N_("Show this list")),
)


def key_scripts() -> str:
    """Return the scripts for the keys in `SHORTCUTS`."""
    return script("keys", TO_QUESTION=_("Go to the question")) + style("keys")


def draw_finder(running: Services, identity: Identity) -> None:
    """Draw two buttons: one opens the search, the other the list of shortcuts."""
    with st.container(horizontal=True, wrap=False, gap="small"):
        is_finding = st.button(
            _("Find"),
            key="frame_find",
            icon=":material/search:",
            width="stretch",
            shortcut="Mod+K",
            help=_("Find conversations and documents"),
        )
        is_listing = st.button(
            _("Keyboard shortcuts"),
            key="frame_shortcuts",
            icon=":material/keyboard:",
            type="tertiary",
            help=_("Keyboard shortcuts"),
        )
    if is_finding:
        _find(running, identity)
    elif is_listing:
        _list_shortcuts()


@dialog(N_("Keyboard shortcuts"))
def _list_shortcuts() -> None:
    lines = [f"| {pgettext('of a keyboard', 'Key')} | |", "|---|---|"]
    lines += [f"| `{keys}` | {plain(_(action))} |" for keys, action in SHORTCUTS]
    st.markdown("\n".join(lines))
    st.caption(_("On a Mac, press ⌘ instead of Ctrl."))


@dialog(N_("Find conversations and documents"))
def _find(running: Services, identity: Identity) -> None:
    with st.container(key="frame_finder"):
        text = search_box(
            _("Find conversations and documents"),
            key="frame_find_text",
            live=True,
            placeholder=_("Search for words in titles, conversations or documents"),
        )
        with st.container(key="frame_found", height=LIST_PIXELS, border=False, gap=None):
            _draw_results(running, identity, text.strip())


def _draw_results(running: Services, identity: Identity, text: str) -> None:
    conversations = running.conversations.find(identity, text, limit=MOST_RESULTS)
    documents = find_documents(running, identity, text)
    if conversations:
        st.caption(_("Conversations"))
    for conversation in conversations:
        if _result(conversation.title, "forum", conversation.id):
            st.session_state.update(chat_source=None, chat_problem="")
            st.switch_page("chat.py", query_params={"c": str(conversation.id)})
    if documents:
        st.caption(_("Documents"))
    labels = document_labels(documents)
    for document in documents:
        if _result(labels.of(document.id), "description", document.id):
            turn_to(page_with_words(running.documents.pages(identity, document.id), text))
            st.switch_page("library.py", query_params={"document": str(document.id)})
    if not conversations and not documents:
        sentence = (
            _("No conversation or document contains these words.")
            if text
            else _("There are no conversations and no documents yet.")
        )
        st.caption(sentence)


def _result(label: str, icon: str, target_id: UUID) -> bool:
    return st.button(
        plain(label),
        key=f"frame_found_{target_id}",
        icon=f":material/{icon}:",
        type="tertiary",
        width="stretch",
        wrap=False,
    )


def find_documents(running: Services, identity: Identity, text: str) -> list[DocumentName]:
    """Find documents open to this person by name or content, newest first."""
    filters = DocumentFilters(statuses=(DocumentStatus.COMPLETED,), text=text)
    if text:
        filters = replace(filters, found_ids=running.documents.with_words(identity, text))
    return running.documents.names(identity, filters, limit=MOST_RESULTS)
