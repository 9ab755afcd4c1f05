"""Find conversations and documents from any page (Ctrl+K), list the shortcuts (?), and reach the question by keys."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import streamlit as st

from rag.language import N_, _, pgettext
from rag.library.text_search import page_with_words
from rag.services import Services
from rag.types import DocumentFilters, DocumentName, DocumentStatus, Identity
from rag.ui.page_view import turn_to
from rag.ui.text import plain
from rag.ui.widgets import dialog, document_labels

#: The most results per kind.
MOST_FOUND = 8
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

#: Runs in the browser, once per page load. Streamlit lacks shortcuts for `?` and `/`, and does not focus the
#: question. On a touch screen a focus would open the keyboard over the page, so the script leaves it to the reader.
KEYS = """
<script>
window.hrAssistantToQuestion = TO_QUESTION;
if (!window.hrAssistantKeys) {
  window.hrAssistantKeys = true;
  const isTouch = matchMedia("(pointer: coarse)").matches;
  const question = () => document.querySelector('[data-testid="stChatInputTextArea"]');
  const toQuestion = () => question()?.focus({ preventScroll: true });
  const skip = document.createElement("a");
  skip.id = "hr-to-question";
  skip.href = "#hr-question";
  skip.addEventListener("click", (event) => { event.preventDefault(); toQuestion(); });
  document.body.prepend(skip);
  const isTyping = (node) => node.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(node.nodeName);
  // Another text is set as typing would set it, for React to notice.
  const write = (field, text) => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set.call(field, text);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const MENTION = /(^|\\s)@([^\\s@]*)$/;
  const CHOICE = '[data-testid="stPopoverBody"] :is(.st-key-chat_documents_text, .st-key-chat_documents) input';
  let isChoosing = false, isOpened = false, greeted = null, finder = null;
  // Who closes a dialog goes on where it was opened, or at the question where that is gone.
  const OVER = '[role="dialog"], [role="menu"], [data-testid="stMenuButtonBody"]';
  let opener = null, hasDialog = false;
  addEventListener("focusin", (event) => { if (!event.target.closest(OVER)) opener = event.target; }, true);
  const goBack = () => {
    if (document.activeElement && document.activeElement !== document.body) return;
    if (opener?.isConnected && opener.checkVisibility()) opener.focus({ preventScroll: true });
    else if (!isTouch) toQuestion();
  };
  const choose = () => {
    const button = document.querySelector(".st-key-chat_filter button");
    if (!button) return;
    isChoosing = true;
    isOpened = false;
    if (!document.querySelector('[data-testid="stPopoverBody"]')) button.click();
  };
  addEventListener("input", (event) => {
    const field = event.target;
    if (field !== question() || isChoosing || event.data !== "@") return;
    if (MENTION.test(field.value.slice(0, field.selectionStart))) choose();
  }, true);
  const isOver = () =>
    Boolean(document.querySelector('section[role="dialog"], [role="dialog"][aria-modal="true"]'));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      // The page has one dialog at a time, and some show what is seen nowhere else.
      if (event.code === "KeyK" && !event.altKey && !event.shiftKey && isOver()) {
        event.stopImmediatePropagation();
        return event.preventDefault();
      }
      if (event.shiftKey && event.code === "KeyO") setTimeout(toQuestion, 0);
      return;
    }
    if (event.key.startsWith("Arrow") && event.target.closest?.(".st-key-frame_finder")) {
      const stops = [...document.querySelectorAll(".st-key-frame_finder :is(input, .st-key-frame_found button)")];
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      stops[Math.max(0, stops.indexOf(document.activeElement) + step)]?.focus();
      return;
    }
    // A dialog lies over the page, whose own Esc would close the document below it.
    const close = event.key === "Escape" && document.querySelector('section[role="dialog"] > button[aria-label]');
    if (close) {
      event.stopImmediatePropagation();
      event.preventDefault();
      // What was typed last is told to the server by leaving the field; a closed dialog has no field to leave.
      if (!isTyping(event.target)) return close.click();
      event.target.blur();
      return void setTimeout(() => close.click(), 150);
    }
    if (isTyping(event.target)) return;
    if (event.key === "?") {
      event.preventDefault();
      if (!isOver()) document.querySelector(".st-key-frame_shortcuts button")?.click();
    } else if (event.key === "/" && question()) {
      event.preventDefault();
      toQuestion();
    }
  }, true);
  addEventListener("click", (event) => {
    const isEdited = event.target.closest?.('[class*="st-key-chat_edit_"]');
    if (isEdited || (!isTouch && event.target.closest?.(".st-key-chat_new"))) setTimeout(toQuestion, 0);
  }, true);
  const look = () => {
    if (skip.textContent !== window.hrAssistantToQuestion) skip.textContent = window.hrAssistantToQuestion;
    const field = question();
    skip.hidden = !field;
    if (field) field.id = "hr-question";
    if (field && field !== greeted) {
      // The page one came from may still have the focus on its link.
      const active = document.activeElement;
      const isFree = active === document.body || active.closest('[data-testid="stSidebarNav"]');
      if (!isTouch && isFree && !document.querySelector(".st-key-page_view")) toQuestion();
    }
    greeted = field;
    const isOpen = isOver();
    if (hasDialog && !isOpen) setTimeout(goBack, 50);
    hasDialog = isOpen;
    const search = document.querySelector(".st-key-frame_finder input");
    // What was searched for last is there to be typed over.
    if (search && search !== finder) { search.focus(); search.select(); }
    finder = search;
    if (!isChoosing) return;
    const choice = document.querySelector(CHOICE);
    if (choice && !isOpened && field) {
      isOpened = true;
      const found = MENTION.exec(field.value);
      if (found) write(field, field.value.slice(0, found.index) + found[1]);
      choice.focus();
      if (found?.[2]) write(choice, found[2]);
    } else if (isOpened && !document.querySelector('[data-testid="stPopoverBody"]')) {
      isChoosing = false;
      toQuestion();
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
</script>
<style>
#hr-to-question { position: fixed; top: -4rem; inset-inline-start: .5rem; z-index: 2000001; padding: .5rem .8rem;
  border-radius: 0 0 8px 8px; color: #fff; background: #2740ab; }
#hr-to-question:focus { top: 0; }
.st-key-frame_found button > div { justify-content: flex-start; text-align: start; }
</style>
"""


def key_scripts() -> str:
    """Return the scripts for the keys in `SHORTCUTS`."""
    return KEYS.replace("TO_QUESTION", json.dumps(_("Go to the question")).replace("<", "\\u003c"))


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
    lines += [f"| `{keys}` | {plain(_(does))} |" for keys, does in SHORTCUTS]
    st.markdown("\n".join(lines))
    st.caption(_("On a Mac, ⌘ takes the place of Ctrl."))


@dialog(N_("Find conversations and documents"))
def _find(running: Services, identity: Identity) -> None:
    with st.container(key="frame_finder"):
        text = st.text_input(
            _("Find conversations and documents"),
            type="search",
            live=True,
            placeholder=_("Words of a title, a conversation or a document"),
            key="frame_find_text",
            label_visibility="collapsed",
        )
        with st.container(key="frame_found", height=LIST_PIXELS, border=False, gap=None):
            _draw_found(running, identity, (text or "").strip())


def _draw_found(running: Services, identity: Identity, text: str) -> None:
    conversations = running.conversations.find(identity, text, limit=MOST_FOUND)
    documents = documents_found(running, identity, text)
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
        said = _("No conversation and no document holds these words.") if text else _("There is nothing yet.")
        st.caption(said)


def _result(label: str, icon: str, found_id: UUID) -> bool:
    return st.button(
        plain(label),
        key=f"frame_found_{found_id}",
        icon=f":material/{icon}:",
        type="tertiary",
        width="stretch",
        wrap=False,
    )


def documents_found(running: Services, identity: Identity, text: str) -> list[DocumentName]:
    """Find documents open to this person by name or content, newest first."""
    filters = DocumentFilters(statuses=(DocumentStatus.COMPLETED,), text=text)
    if text:
        filters = replace(filters, found_ids=running.documents.with_words(identity, text))
    return running.documents.names(identity, filters, limit=MOST_FOUND)
