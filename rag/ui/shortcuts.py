"""Find conversations and documents from any page, and list what keys do."""

from __future__ import annotations

import streamlit as st

from rag.language import N_, _
from rag.services import Services
from rag.types import DocumentFilters, DocumentStatus, Identity
from rag.ui.text import plain
from rag.ui.widgets import dialog

#: So many conversations and so many documents are offered.
MOST_FOUND = 6
#: What keys do, in the order of the list. `Mod` is Ctrl, and ⌘ on a Mac.
SHORTCUTS = (
    ("Mod K", N_("Find a conversation or a document")),
    ("Mod Shift O", N_("New chat")),
    ("Enter", N_("Send the question")),
    ("Shift Enter", N_("A new line in the question")),
    ("← →", N_("Turn the pages of the document that is open")),
    ("Esc", N_("Close the document or the dialog that is open")),
    ("?", N_("This list")),
)
#: Streamlit knows no shortcut that is a punctuation mark, and gives no field the focus. A phone's keyboard stays away.
KEYS = """
<script>
if (!window.hrAssistantKeys) {
  window.hrAssistantKeys = true;
  const isTyping = () => document.activeElement?.closest("input, textarea, select, [contenteditable=true]");
  addEventListener("keydown", (event) => {
    if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey || isTyping()) return;
    document.querySelector(".st-key-frame_shortcuts button")?.click();
  });
  // A dialog lies over the page, whose own Esc would close the document below it.
  addEventListener("keydown", (event) => {
    const close = event.key === "Escape" && document.querySelector('section[role="dialog"] > button[aria-label]');
    if (!close) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    close.click();
  }, true);
  const hasKeyboard = matchMedia("(hover: hover) and (pointer: fine)").matches;
  let last = null, wanted = false;
  const look = () => {
    if (!hasKeyboard) return;
    const finder = document.querySelector('[role="dialog"] .st-key-frame_find_text input');
    if (finder && !finder.dataset.met) {
      finder.dataset.met = "yes";
      return finder.focus();
    }
    const field = document.querySelector('[data-testid="stChatInputTextArea"]');
    if (!field || field.disabled || document.querySelector('[role="dialog"]')) return;
    const isFree = !document.activeElement || document.activeElement === document.body;
    if ((field !== last && isFree) || wanted) field.focus({ preventScroll: true });
    last = field;
    wanted = false;
  };
  addEventListener("click", (event) => {
    if (event.target.closest?.(".st-key-chat_new")) setTimeout(() => { wanted = true; look(); }, 400);
  });
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
</script>
"""


def draw_find(running: Services, identity: Identity) -> None:
    """Draw the button that finds things, and what it opens. Its shortcut works on every page."""
    is_clicked = st.button(
        _("Find"), key="frame_find", icon=":material/search:", width="stretch", shortcut="Mod+K", type="tertiary"
    )
    # Streamlit draws one dialog at a time.
    if is_clicked and not st.session_state.get("chat_dialog"):
        st.session_state.frame_find_text = ""
        _find(running, identity)


def draw_shortcuts() -> None:
    """Draw the button that lists the shortcuts; the key ? presses it."""
    is_clicked = st.button(
        "", key="frame_shortcuts", icon=":material/keyboard:", type="tertiary", help=_("Keyboard shortcuts (?)")
    )
    if is_clicked and not st.session_state.get("chat_dialog"):
        _list_shortcuts()


@dialog(N_("Find"), icon=":material/search:")
def _find(running: Services, identity: Identity) -> None:
    text = st.text_input(
        _("Find a conversation or a document"),
        type="search",
        live=True,
        key="frame_find_text",
        placeholder=_("Words of a title or of the text"),
        label_visibility="collapsed",
    )
    wanted = (text or "").strip()
    conversations = [c for c in running.conversations.list(identity) if wanted.casefold() in c.title.casefold()]
    for conversation in conversations[:MOST_FOUND]:
        if st.button(
            plain(conversation.title),
            key=f"frame_conversation_{conversation.id}",
            icon=":material/forum:",
            type="tertiary",
        ):
            st.switch_page("chat.py", query_params={"c": str(conversation.id)})
    if not wanted:
        if not conversations:
            st.caption(_("Type a word of what you look for."))
        return
    library = running.documents
    filters = DocumentFilters(
        statuses=(DocumentStatus.COMPLETED,), text=wanted, found_ids=library.with_words(identity, wanted)
    )
    documents = library.find(identity, filters, limit=MOST_FOUND)
    for document in documents:
        if st.button(
            plain(document.title),
            key=f"frame_document_{document.id}",
            icon=":material/description:",
            type="tertiary",
            help=plain(document.file_name) if document.file_name else None,
        ):
            st.switch_page("library.py", query_params={"document": str(document.id)})
    if not conversations and not documents:
        st.caption(_("No conversation and no document has these words."))


@dialog(N_("Keyboard shortcuts"), icon=":material/keyboard:")
def _list_shortcuts() -> None:
    for keys, purpose in SHORTCUTS:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(_(purpose), width="content")
            st.markdown(f":gray-badge[{keys.replace('Mod', 'Ctrl / ⌘')}]", width="content")
