"""Ask the documents: streamed answers with their sources, the page behind each, and all past conversations.

An answer is a job of `LiveAnswers`; this page only watches it. Refreshing attaches again, a second tab follows, and
closing the tab loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rag.answering.jobs import LiveAnswer
from rag.errors import NotFound, RagError
from rag.language import _
from rag.records.conversations import SharedConversation
from rag.services import require, services
from rag.types import Citation, Collection, Conversation, Message, Role
from rag.ui.budgets import draw_question_to_go_on
from rag.ui.chat_scope import ChatScope
from rag.ui.messages import Reading, as_written, be_interrupted, draw_footer, draw_message, draw_shared, follow
from rag.ui.page_view import open_page_view, page_of, turn_to
from rag.ui.recent import draw_dialog, draw_recent
from rag.ui.text import plain
from rag.ui.widgets import draw_question_buttons

#: A long history is what a run costs most: older turns come on demand.
TURNS_SHOWN = 10
#: An answer that is stored so soon after its last word is drawn once, as it is stored.
SOON_SECONDS = 0.2

identity = require(Role.EMPLOYEE)
running = services()
state = st.session_state
state.setdefault("chat_turns", TURNS_SHOWN)
state.setdefault("chat_problem", "")
state.setdefault("chat_source", None)
state.setdefault("chat_dialog", None)
state.setdefault("chat_taken", False)


# What a click or a question does; callbacks run before the page is drawn again.


def open_conversation(conversation_id: UUID | None) -> None:
    st.query_params.clear()
    if conversation_id is not None:
        st.query_params["c"] = str(conversation_id)
    state.chat_turns = TURNS_SHOWN
    state.chat_source = None
    state.chat_problem = ""


def ask(text: str) -> None:
    """Start an answer; one still being written here is ended first and keeps what it has."""
    state.chat_problem = ""
    state.chat_source = None
    asked = scope()
    conversation = asked.conversation
    try:
        if conversation is not None and (unfinished := running.answers.active(identity, conversation.id)):
            unfinished.stop()
            for _piece in unfinished.tail():
                pass
        with running.limits.question(identity):
            live = running.answers.ask(
                identity,
                conversation.id if conversation else None,
                asked.collection,
                text,
                document_ids=asked.document_ids,
                options=asked.options,
                languages=reader_languages(),
            )
    except RagError as exc:
        state.chat_problem = exc.message
        # Back into the field, to be shortened or sent again.
        state.chat_question = text
    else:
        st.query_params["c"] = str(live.conversation_id)


def ask_from_input() -> None:
    state.chat_taken = True
    if text := state.chat_question:
        ask(str(text))


def edit(question: str) -> None:
    """Put a question into the field again, to be changed."""
    state.chat_question = question


def rate(message_id: UUID) -> None:
    rating = state[f"chat_rating_{message_id}"]
    if rating is not None:
        comment, reason = (state.get(f"chat_{part}_{message_id}") or "" for part in ("comment", "reason"))
        running.feedback.rate(identity, message_id, rating, comment, reason)
        if comment or reason:
            st.toast(_("Thank you. Your comment is saved."), icon=":material/check:")


def ask_person(message_id: UUID, is_answered: bool) -> None:
    """Pass the question behind an answer on to the people in charge; what was said against an answer goes with it."""
    comment, reason = (state.get(f"chat_{part}_{message_id}") or "" for part in ("comment", "reason"))
    if is_answered:
        running.feedback.rate(identity, message_id, 0, comment, reason)
    why = reason or ("other" if is_answered else "unanswered")
    running.help_requests.open(identity, message_id, reason=why, comment=comment)
    st.toast(_("Sent. The answer will come back into this conversation."), icon=":material/support_agent:")


def searched_as(message: Message) -> str:
    """Return what was searched for in place of the question before an answer, read only when somebody wants to see
    it.
    """
    return running.chat_logs.searched_as(identity, message.chat_log_id) if message.chat_log_id else ""


def show_source(citation: Citation) -> None:
    state.chat_source = (citation, page := page_of(running.documents, identity, citation))
    turn_to(page)


def close_source() -> None:
    state.chat_source = None


def show_more_turns() -> None:
    state.chat_turns += TURNS_SHOWN


# What the page is about.


def opened_conversation() -> Conversation | None:
    """Return the conversation of the address, if it is this person's."""
    try:
        return running.conversations.get(identity, UUID(st.query_params["c"]))
    except (KeyError, ValueError, NotFound):
        return None


def shared_conversation() -> SharedConversation | None:
    """Return a colleague's conversation of the address, if it is shared with this person."""
    try:
        return running.conversations.shared(identity, UUID(st.query_params["c"]))
    except (KeyError, ValueError, NotFound):
        return None


def reader_languages() -> list[str]:
    """Return the languages of the browser."""
    return [st.context.locale] if st.context.locale else []


def scope(collections: Sequence[Collection] | None = None) -> ChatScope:
    """Return what can be asked, and what of it is chosen now. A callback runs before the frame has read the
    collections.
    """
    if collections is None:
        collections = running.documents.collections(identity)
    return ChatScope(running.documents, identity, collections, opened_conversation())


# Drawing.


def draw_welcome(asked: ChatScope) -> None:
    searchable = running.documents.searchable_collections(identity)
    first_name = identity.name.split()[0] if identity.name.split() else ""
    st.space("large")
    st.title(
        _("How can I help, {first_name}?", first_name=plain(first_name)) if first_name else _("How can I help?"),
        anchor=False,
    )
    if not searchable:
        st.caption(_("There are no documents to answer from yet."))
        if identity.may(Role.ADMIN):
            st.page_link("documents.py", label=_("Add documents"), icon=":material/upload_file:")
        return
    st.caption(_("Answers come only from the documents here, with the page they come from."))
    if len(asked.collections) > 1:
        asked.draw_choice()
        if asked.collection.id not in searchable:
            st.caption(_("Nothing in this collection can be searched yet."))
    languages = reader_languages()
    if questions := running.documents.suggested_questions(identity, asked.collection.id, languages=languages, limit=4):
        st.space("small")
        draw_question_buttons(questions, key="chat_suggestion", on_ask=ask)


# The page.

now = scope(state.frame_collections)
conversation = now.conversation
shared = shared_conversation() if conversation is None and "c" in st.query_params else None
if conversation is None and shared is None and "c" in st.query_params:
    st.query_params.clear()
    st.toast(_("This conversation does not exist, or no longer."), icon=":material/info:")

with state.frame_sidebar:
    draw_recent(running.conversations, identity, conversation, open_conversation)

# Slots with fixed places, all filled before the answer streams: what is not redrawn until then would stay grey.
welcome, earlier, log = st.empty(), st.empty(), st.container()
next_questions, problem = st.empty(), st.empty()
with st.bottom.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    filter_slot, stop_slot = st.empty(), st.empty()
with st.bottom.container():
    draw_question_to_go_on(identity)
asked_in = now.collection_name
typed = st.chat_input(
    _("Ask in {asked_in}", asked_in=asked_in) if asked_in else _("Ask about your documents"),
    key="chat_question",
    on_submit=ask_from_input,
)
if typed and not state.chat_taken:  # the first run of a session, which knows of no callback yet
    ask(str(typed))
    st.rerun()
state.chat_taken = False

messages: list[Message] = []
live: LiveAnswer | None = None
#: Where the footer of an answer comes whose text and sources are drawn already.
footer: DeltaGenerator | None = None
if conversation is not None:
    # The answer first: should it end in between, its message is whole.
    live = running.answers.active(identity, conversation.id)
    messages = running.conversations.messages(identity, conversation.id, last=2 * state.chat_turns + 1)
    if len(messages) > 2 * state.chat_turns:
        messages = messages[1:]
        earlier.button(_("Show earlier messages"), key="chat_earlier", type="tertiary", on_click=show_more_turns)
elif shared is None:
    with welcome.container():
        draw_welcome(now)

if now.collections:
    with filter_slot.container(width="content"):
        now.draw_filter()
if state.chat_problem:
    problem.error(plain(state.chat_problem), icon=":material/error:")
has_dialog = draw_dialog(
    running.conversations, identity, conversation, open_conversation, address=running.settings.own_address
)
if state.chat_source is not None and not has_dialog:
    cited, cited_page = state.chat_source
    open_page_view(
        running.documents,
        identity,
        cited.document_id,
        page=cited_page,
        chunk_id=cited.chunk_id,
        section=cited.section,
        passage=cited.passage,
        terms=cited.matched_terms,
        on_close=close_source,
    )

reading = Reading(
    on_open=show_source,
    on_rate=rate,
    on_ask_person=ask_person,
    on_again=ask,
    on_edit=edit,
    searched_as=searched_as,
    with_figures=identity.may(Role.MANAGER),
)
#: What the latest answer answers.
question = next((message.content for message in reversed(messages) if message.role == "user"), "")
if conversation is not None and any(message.help_status not in ("", "open") for message in messages):
    running.help_requests.mark_seen(identity, conversation.id)
with log:
    if shared is not None:
        draw_shared(shared, show_source)
    for message in messages[:-1]:
        draw_message(message, reading, is_last=False)
    # The latest answer has one place, while it is written and after: it does not jump when it is done.
    answer = st.container(key="chat_now").empty()

if live is not None:
    stop_slot.container(width="content").button(
        _("Stop"), key="chat_stop", icon=":material/stop_circle:", on_click=live.stop
    )
    with answer.container():
        follow(live, pulse_seconds=running.answers.pulse_seconds())
    if not live.wait(SOON_SECONDS):
        # Sources do not wait for next questions, which are another call to the model.
        with answer.container():
            draw_message(as_written(messages[-1], live), reading, is_last=True)
            footer = st.empty()
        while not live.wait(running.answers.pulse_seconds()):
            be_interrupted()
    # What is stored replaces what was written, in this run: another would draw the whole page once more.
    stop_slot.empty()
    messages = running.conversations.messages(identity, live.conversation_id, last=1)

if messages and footer is not None:
    if messages[-1].outcome is not None:
        with footer.container():
            draw_footer(messages[-1], reading, question=question)
elif messages:
    with answer.container():
        draw_message(messages[-1], reading, is_last=True, question=question)

if messages and (finished := running.answers.find(identity, messages[-1].id)) and finished.follow_ups:
    with next_questions.container():
        draw_question_buttons(finished.follow_ups, key=f"chat_next_{finished.message_id}", on_ask=ask)
