"""Ask the documents: streamed answers with sources and their pages, and all past conversations.

An answer is a job in `LiveAnswers`; this page only shows the progress. After a refresh, the page shows the answer
again, and a second tab shows the same answer. Closing the tab does not stop the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rag.answering.extras import extra
from rag.answering.jobs import LiveAnswer
from rag.errors import NotFound, RagError
from rag.language import _, current
from rag.records.conversations import SharedConversation
from rag.services import require, services
from rag.types import Citation, Conversation, Message, MessageState, Question, Role
from rag.ui import actions
from rag.ui.budgets import draw_question_to_go_on
from rag.ui.chat_scope import ChatScope, forget_narrowing, take_up_narrowing
from rag.ui.conversation_list import draw_dialog, draw_recent
from rag.ui.frame import draw_sidebar, reader_address, unseen_heading
from rag.ui.messages import (
    Viewer,
    as_written,
    be_interrupted,
    draw_figures,
    draw_message,
    draw_place,
    draw_shared,
    follow,
    hold_back,
    replaced_answers,
)
from rag.ui.page_view import open_page_view, page_of, turn_to
from rag.ui.text import plain
from rag.ui.widgets import draw_question_buttons

#: A long history is the most expensive part of a run: older turns are loaded on demand.
EXCHANGES_SHOWN = 10
#: If an answer is stored within this time after its last word, only the stored version is drawn.
SOON_SECONDS = 0.2

identity = require(Role.EMPLOYEE)
running = services()
state = st.session_state
state.setdefault("chat_turns", EXCHANGES_SHOWN)
state.setdefault("chat_problem", "")
state.setdefault("chat_source", None)
state.setdefault("chat_dialog", None)
state.setdefault("chat_taken", False)
state.setdefault("chat_asked", None)
state.setdefault("chat_place", (None, 0))
state.setdefault("chat_moved", None)


# Actions for clicks and questions; callbacks run before the page is drawn again.


def open_conversation(conversation_id: UUID | None) -> None:
    opened = str(conversation_id) if conversation_id is not None else ""
    if previous := st.query_params.get("c"):
        state.chat_moved = (previous, opened)
    st.query_params.clear()
    if opened:
        st.query_params["c"] = opened
    state.chat_turns = EXCHANGES_SHOWN
    state.chat_source = None
    state.chat_problem = ""
    state.chat_chose = False
    forget_narrowing()


def ask(text: str, *, is_again: bool = False) -> None:
    """Start an answer. An unfinished answer in this conversation is stopped and keeps its text."""
    if state.get("chat_new"):  # Clicked shortly before; both arrive together.
        open_conversation(None)
    state.chat_problem = ""
    state.chat_source = None
    chat_scope = scope()
    conversation = chat_scope.conversation
    try:
        if conversation is not None and (unfinished := running.answers.active(identity, conversation.id)):
            unfinished.stop()
            for _piece in unfinished.tail():
                pass
        with running.limits.question(identity):
            question = Question(
                text=text,
                identity=identity,
                collection=chat_scope.collection,
                others=chat_scope.others,
                document_ids=chat_scope.document_ids,
                reader_languages=reader_languages(),
            )
            live = running.answers.ask(
                question,
                conversation_id=conversation.id if conversation else None,
                options=chat_scope.options,
                is_again=is_again,
            )
    except RagError as exc:
        state.chat_problem = exc.message
        # Back into the field, to be shortened or sent again.
        state.chat_question = text
    else:
        st.query_params["c"] = str(live.conversation_id)
        state.chat_narrowed_of = live.conversation_id
        state.chat_asked = live.message_id


def ask_from_input() -> None:
    state.chat_taken = True
    if text := state.chat_question:
        ask(str(text))


def ask_everywhere(text: str) -> None:
    """Ask a question in all documents, after the chosen documents did not answer."""
    forget_narrowing()
    ask(text)


def edit(question: str) -> None:
    """Put a question back into the input field, to be changed and asked again."""
    state.chat_question = question


def rate(message_id: UUID) -> None:
    rating = state[f"chat_rating_{message_id}"]
    if rating is not None:
        comment, reason = (state.get(f"chat_{part}_{message_id}") or "" for part in ("comment", "reason"))
        if not succeeds(partial(running.feedback.rate, identity, message_id, rating, comment, reason)):
            return
        # A thumbs-down asks for the reason at once; the form closes when it is sent.
        state[f"chat_why_{message_id}"] = rating == 0 and not (comment or reason)
        if comment or reason:
            st.toast(_("Thank you. Your comment is saved."), icon=":material/check:")


def ask_person(message_id: UUID, is_answered: bool) -> None:
    """Pass the question behind an answer on to the managers, with the complaint about the answer."""
    comment, reason = (state.get(f"chat_{part}_{message_id}") or "" for part in ("comment", "reason"))
    why = reason or ("other" if is_answered else "unanswered")

    def send() -> None:
        if is_answered:
            running.feedback.rate(identity, message_id, 0, comment, reason)
        running.help_requests.open(identity, message_id, reason=why, comment=comment)

    if succeeds(send):
        state[f"chat_why_{message_id}"] = False
        st.toast(_("Sent. The answer will appear in this conversation."), icon=":material/support_agent:")


def succeeds(action: Callable[[], object]) -> bool:
    if actions.attempt("chat_problem", action):
        return True
    # The open form hides the page.
    st.toast(plain(state.chat_problem), icon=":material/error:", duration="long")
    return False


def searched_as(message: Message) -> str:
    """Return the search queries made for an answer.

    The database is read only when the user opens the search details.
    """
    if live is not None and live.context is not None and live.message_id == message.id:
        return live.context.rag_details.query.searched_as  # not stored yet
    return running.chat_logs.searched_as(identity, message.chat_log_id) if message.chat_log_id else ""


def show_source(citation: Citation) -> None:
    state.chat_source = (citation, page := page_of(running.documents, identity, citation))
    turn_to(page)


def close_source() -> None:
    state.chat_source = None


def show_more_exchanges() -> None:
    state.chat_turns += EXCHANGES_SHOWN


# What the page is about.


def opened_conversation() -> Conversation | None:
    """Return the conversation named in the address, if the conversation belongs to this person, else `None`."""
    conversation_id = requested_conversation_id()
    try:
        return running.conversations.get(identity, conversation_id) if conversation_id is not None else None
    except NotFound:
        return None


def requested_conversation_id() -> UUID | None:
    """Return the conversation id in the address, even if the conversation does not belong to this person."""
    if state.chat_moved is not None and st.query_params.get("c") == state.chat_moved[0]:
        # A question was sent right after a click on another conversation, before the browser had the new address.
        st.query_params.from_dict({"c": state.chat_moved[1]} if state.chat_moved[1] else {})
    try:
        return UUID(st.query_params["c"])
    except (KeyError, ValueError):
        return None


def shared_conversation() -> SharedConversation | None:
    """Return the conversation named in the address, if a colleague shared the conversation with this person, else
    `None`.
    """
    try:
        return running.conversations.shared(identity, UUID(st.query_params["c"]))
    except (KeyError, ValueError, NotFound):
        return None


def reader_languages() -> list[str]:
    """Return the browser's languages."""
    return [st.context.locale] if st.context.locale else []


def scope() -> ChatScope:
    """Return the present scope: the chosen collection, documents and filters.

    Callbacks call this, because they run before the page reads the scope.
    """
    return ChatScope(running.documents, identity, running.documents.collections(identity), opened_conversation())


# Drawing.


def draw_welcome(chat_scope: ChatScope) -> None:
    searchable = running.documents.searchable_collections(identity)
    first_name = identity.name.split()[0] if identity.name.split() else ""
    st.space("large")
    st.title(
        _("How can I help, {first_name}?", first_name=plain(first_name)) if first_name else _("How can I help?"),
        anchor=False,
    )
    if not searchable:
        st.caption(_("There are no documents yet, so no question can be answered."))
        if identity.may(Role.ADMIN):
            st.page_link("documents.py", label=_("Add documents"), icon=":material/upload_file:")
        return
    st.caption(_("Answers come only from the documents here, and each answer names the page that it comes from."))
    if len(chat_scope.collections) > 1:
        chat_scope.draw_choice()
        if chat_scope.collection.id not in searchable:
            st.caption(_("No document in this collection is ready for questions yet."))
    languages = [current(), *reader_languages()]
    questions: list[str] = []
    if chat_scope.options.filters is None:  # which questions the rest answers is not known
        with extra("suggested questions"):
            questions = running.documents.suggested_questions(
                identity,
                chat_scope.collection.id,
                other_ids=[collection.id for collection in chat_scope.others],
                document_ids=chat_scope.document_ids,
                languages=languages,
                limit=4,
            )
    if questions:
        st.space("small")
        draw_question_buttons(questions, key="chat_suggestion", on_ask=ask)


def place_of_answer(around: DeltaGenerator, *, is_emptied: bool) -> DeltaGenerator:
    """Return a container for the latest answer, different from the previous answer's container.

    A browser keeps a container's content until new content is drawn there. In the same container, the previous answer's
    sources would stay below the new answer in progress.
    """
    answered, place = state.chat_place
    if messages and messages[-1].id != answered:
        place = 1 - place
        state.chat_place = (messages[-1].id, place)
    with around:
        places = [st.empty() if is_emptied or number != place else st.container() for number in range(2)]
    chosen: DeltaGenerator = places[place]
    return chosen


def draw_around() -> None:
    """Draw everything except the latest question and its answer."""
    draw_sidebar()
    with state.frame_sidebar:
        draw_recent(running.conversations, identity, history.recent, conversation, open_conversation)
    if conversation is None and shared is None:
        with welcome.container():
            draw_welcome(now)
    else:
        welcome.html(unseen_heading(conversation.title if conversation is not None else _("Chat")))
    if len(history.messages) > len(messages):
        earlier.button(_("Show earlier messages"), key="chat_earlier", type="tertiary", on_click=show_more_exchanges)
    if now.collections:
        with filter_slot.container(width="content"):
            now.draw_filter()
    if state.chat_problem:
        problem.error(plain(state.chat_problem), icon=":material/error:")
    has_dialog = draw_dialog(
        running.conversations, identity, conversation, open_conversation, address=reader_address(running.settings)
    )
    if state.chat_source is not None and not has_dialog:
        cited, cited_page = state.chat_source
        open_page_view(
            running.documents,
            identity,
            cited.document_id,
            page=cited_page,
            cited=cited,
            on_close=close_source,
        )
    with before:
        if shared is not None:
            draw_shared(shared, show_source)
        replaced = replaced_answers(messages)
        for message in messages[:-2]:
            draw_message(message, viewer, is_last=False, is_replaced=message.id in replaced)


# The page.

conversation_id = requested_conversation_id()
# Read the live answer first: if it ends in between, its message is complete.
live: LiveAnswer | None = (
    running.answers.active_here(identity, conversation_id) if conversation_id is not None else None
)
history = running.conversations.page(identity, conversation_id, last=2 * state.chat_turns + 1)
if live is None and history.messages and history.messages[-1].state is MessageState.STREAMING:
    # Another process is writing the answer or has died, or the answer has just ended.
    live = running.answers.active(identity, history.messages[-1].conversation_id)
    history = running.conversations.page(identity, conversation_id, last=2 * state.chat_turns + 1)
conversation = history.opened
take_up_narrowing(conversation)
now = ChatScope(running.documents, identity, state.frame_collections, conversation)
messages = list(history.messages[-2 * state.chat_turns :])
shared = shared_conversation() if conversation is None and "c" in st.query_params else None
if conversation is None and shared is None and "c" in st.query_params:
    st.query_params.clear()
    st.toast(_("This conversation does not exist. It may have been deleted."), icon=":material/info:")
if shared is None:
    now.keep_chosen_in_address()

# Fixed slots, all filled before the answer streams: a slot not redrawn until then would stay grey.
welcome, earlier, log = st.empty(), st.empty(), st.container()
# Emptied only while an answer is written: otherwise the content stays until it is redrawn, without flicker.
next_questions, problem = st.container() if live is None and messages else st.empty(), st.empty()
with st.bottom.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    filter_slot, stop_slot = st.empty(), st.empty()
with st.bottom.container():
    draw_question_to_go_on(identity)
    # Drawn here, the undo is visible however far the page and the conversations are scrolled.
    actions.draw_undo("chat", problem="chat_problem")
collection_name = now.collection_name
hint = _("Ask in {asked_in}", asked_in=collection_name) if collection_name else _("Ask about your documents")
typed = st.chat_input(
    _("Ask in all collections") if now.asks_all else hint,
    key="chat_question",
    on_submit=ask_from_input,
)
if typed and not state.chat_taken:  # The first run in a session has no callbacks yet.
    ask(str(typed))
    st.rerun()
state.chat_taken = False

viewer = Viewer(
    on_open=show_source,
    on_rate=rate,
    on_ask_person=ask_person,
    on_again=partial(ask, is_again=True),
    on_edit=edit,
    on_everywhere=ask_everywhere if messages and now.is_narrowed else None,
    searched_as=searched_as,
    with_figures=identity.may(Role.MANAGER),
)
#: The latest answer's question.
question = next((message.content for message in reversed(messages) if message.role == "user"), "")
if conversation is not None and any(message.help_status not in ("", "open") for message in messages):
    running.help_requests.mark_seen(identity, conversation.id)
#: Place for the figures of an answer drawn before it is stored.
figures: DeltaGenerator | None = None
is_drawn = False
with log:
    before, latest_question = st.container(), st.container()
    # The latest answer stays in the same place while it is written and afterwards: it does not jump at the end.
    answer = place_of_answer(st.container(key="chat_now"), is_emptied=live is not None or not messages)
is_just_asked = live is not None and live.message_id == state.chat_asked
state.chat_asked = None
if not is_just_asked:
    draw_around()
if len(messages) > 1:
    with latest_question:
        draw_message(messages[-2], viewer, is_last=False)

if live is not None:
    # A click while follow-up questions are generated redraws the page, when there is nothing left to stop.
    if live.written is None:
        stop_slot.container(width="content").button(
            _("Stop"), key="chat_stop", icon=":material/stop_circle:", on_click=live.stop
        )
        with answer.container():
            steps = draw_place(live)
        if is_just_asked:
            hold_back(live, lambda: running.answers.is_rushed, pulse_seconds=running.answers.pulse_seconds())
            draw_around()
        follow(live, steps, pulse_seconds=running.answers.pulse_seconds())
        stop_slot.empty()
    elif is_just_asked:
        draw_around()
    if not live.wait(SOON_SECONDS):
        # Sources and buttons do not wait for follow-up questions, which need another model call.
        with answer.container():
            figures = draw_message(as_written(messages[-1], live), viewer, is_last=True, question=question)
        is_drawn = True
        while not live.wait(running.answers.pulse_seconds()):
            be_interrupted()
    # The stored answer replaces the streamed answer in this run: another run would redraw the whole page.
    messages = running.conversations.messages(identity, live.conversation_id, last=1)

if is_drawn:
    if figures is not None and messages:
        draw_figures(figures, messages[-1])
elif messages:
    with answer if live is None else answer.container():
        draw_message(messages[-1], viewer, is_last=True, question=question)

if messages and (finished := running.answers.find_here(identity, messages[-1].id)) and finished.follow_ups:
    with next_questions if live is None else next_questions.container():
        draw_question_buttons(finished.follow_ups, key=f"chat_next_{finished.message_id}", on_ask=ask)
state.chat_moved = None
