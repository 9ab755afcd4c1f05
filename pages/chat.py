"""Ask the documents: streamed answers with their sources, the page behind each, and all past conversations.

An answer is a job of `LiveAnswers`; this page only watches it. Refreshing attaches again, a second tab follows, and
closing the tab loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import streamlit as st

from rag.answering.citations import citation_from_json
from rag.answering.events import StepEvent
from rag.answering.live import LiveAnswer
from rag.errors import NotFound, RagError
from rag.services import require, services
from rag.types import Citation, Collection, Conversation, DocumentStatus, Message, MessageState, Outcome, Role
from rag.ui.formats import count, duration, money
from rag.ui.page_view import open_page_view, turn_to
from rag.ui.source_cards import draw_source_cards
from rag.ui.text import answer_markdown, plain
from rag.ui.theme import MARK

#: A long history is what a run costs most: older turns come on demand.
TURNS_SHOWN = 10
RECENT_SHOWN = 10
STEP_LABELS = {
    "waiting": "Waiting for its turn",
    "rewriting": "Reading the question",
    "translating": "Translating the question",
    "searching": "Searching the documents",
    "reranking": "Comparing passages",
    "writing": "Writing",
}

identity = require(Role.EMPLOYEE)
running = services()
state = st.session_state
state.setdefault("chat_turns", TURNS_SHOWN)
state.setdefault("chat_all_recent", False)
state.setdefault("chat_problem", "")
state.setdefault("chat_source", None)
state.setdefault("chat_dialog", None)


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
    conversation = opened_conversation()
    documents = tuple(state.get("chat_documents") or ())
    try:
        if conversation is not None and (unfinished := running.answers.active(identity, conversation.id)):
            unfinished.stop()
            for _ in unfinished.tail():
                pass
        live = running.answers.ask(
            identity,
            conversation.id if conversation else None,
            chosen_collection(),
            text,
            document_ids=documents,
        )
    except RagError as exc:
        state.chat_problem = exc.message
        # Back into the field, to be shortened or sent again.
        state.chat_question = text
    else:
        st.query_params["c"] = str(live.conversation_id)


def ask_from_input() -> None:
    if text := state.chat_question:
        ask(str(text))


def ask_suggestion(key: str) -> None:
    if text := state[key]:
        ask(str(text))


def rate(message_id: UUID) -> None:
    rating = state[f"chat_rating_{message_id}"]
    if rating is not None:
        running.feedback.rate(identity, message_id, rating, state.get(f"chat_comment_{message_id}") or "")


def show_source(citation: Citation) -> None:
    state.chat_source = citation
    turn_to(citation.first_page)


def close_source() -> None:
    state.chat_source = None


def close_dialog() -> None:
    state.chat_dialog = None


def show_more_turns() -> None:
    state.chat_turns += TURNS_SHOWN


# What the page is about.


def opened_conversation() -> Conversation | None:
    """The conversation of the address, if it is this person's."""
    try:
        return running.conversations.get(identity, UUID(st.query_params["c"]))
    except (KeyError, ValueError, NotFound):
        return None


def chosen_collection() -> Collection:
    """The open conversation's collection, else the one chosen for a new one, else the first."""
    found = running.documents.collections(identity.tenant_id)
    conversation = opened_conversation()
    wanted = conversation.collection_id if conversation else state.get("chat_collection")
    chosen = next((c for c in found if c.id == wanted), found[0] if found else None)
    if chosen is None:
        raise NotFound("There are no documents yet. An administrator has to add some first.")
    return chosen


# Drawing.


def draw_recent(opened: Conversation | None) -> None:
    st.button(
        "New chat",
        key="chat_new",
        icon=":material/edit_square:",
        width="stretch",
        shortcut="Mod+Shift+O",
        on_click=open_conversation,
        args=(None,),
    )
    conversations = running.conversations.list(identity)
    if not conversations:
        return
    shown = conversations
    if len(conversations) > RECENT_SHOWN and state.chat_all_recent:
        wanted = st.text_input(
            "Search conversations",
            key="chat_search",
            placeholder="Search conversations",
            label_visibility="collapsed",
            icon=":material/search:",
        )
        shown = [c for c in conversations if wanted.casefold() in c.title.casefold()]
    elif len(conversations) > RECENT_SHOWN:
        shown = conversations[:RECENT_SHOWN]
    with st.container(key="chat_recent", gap=None):
        st.caption("Recent")
        for conversation in shown:
            draw_recent_row(conversation, is_open=opened is not None and conversation.id == opened.id)
        if not shown:
            st.caption("No conversation has this in its name.")
    if len(conversations) > RECENT_SHOWN:
        st.button(
            "Show fewer" if state.chat_all_recent else f"Show all {len(conversations)}",
            key="chat_more_recent",
            type="tertiary",
            icon=":material/unfold_less:" if state.chat_all_recent else ":material/unfold_more:",
            on_click=lambda: state.update(chat_all_recent=not state.chat_all_recent),
        )


def draw_recent_row(conversation: Conversation, *, is_open: bool) -> None:
    if not is_open:
        st.button(
            plain(conversation.title),
            key=f"chat_open_{conversation.id}",
            type="tertiary",
            width="stretch",
            wrap=False,
            on_click=open_conversation,
            args=(conversation.id,),
        )
        return
    with st.container(horizontal=True, vertical_alignment="center", gap=None, wrap=False):
        st.button(
            f"**{plain(conversation.title)}**",
            key=f"chat_open_{conversation.id}",
            type="tertiary",
            width="stretch",
            wrap=False,
            on_click=open_conversation,
            args=(conversation.id,),
        )
        action = st.menu_button(
            ":material/more_horiz:",
            ["Rename", "Delete"],
            key="chat_actions",
            type="tertiary",
            help="Rename or delete this conversation",
        )
        if action:
            state.chat_dialog = action


@st.dialog("Rename conversation", on_dismiss=close_dialog)
def rename_dialog(conversation: Conversation) -> None:
    with st.form("chat_rename", border=False):
        title = st.text_input("Name", value=conversation.title, max_chars=200)
        if st.form_submit_button("Save", type="primary"):
            try:
                running.conversations.rename(identity, conversation.id, title)
            except RagError as exc:
                st.error(exc.message)
            else:
                close_dialog()
                st.rerun()


@st.dialog("Delete conversation", on_dismiss=close_dialog)
def delete_dialog(conversation: Conversation) -> None:
    st.markdown(f"**{plain(conversation.title)}** will be deleted for good, with its questions and answers.")
    with st.container(horizontal=True):
        if st.button("Delete", key="chat_delete_yes", type="primary"):
            running.conversations.delete(identity, conversation.id)
            close_dialog()
            open_conversation(None)
            st.rerun()
        if st.button("Keep", key="chat_delete_no"):
            close_dialog()
            st.rerun()


def draw_welcome(collections: Sequence[Collection]) -> None:
    documents = running.documents.list(identity.tenant_id)
    first_name = identity.name.split()[0] if identity.name.split() else ""
    st.space("large")
    st.title(f"How can I help, {plain(first_name)}?" if first_name else "How can I help?", anchor=False)
    if not any(d.status is DocumentStatus.COMPLETED for d in documents):
        st.caption("There are no documents to answer from yet.")
        if identity.may(Role.ADMIN):
            st.page_link("documents.py", label="Add documents", icon=":material/upload_file:")
        return
    st.caption("Answers come only from your company's documents, with the page they come from.")
    if len(collections) > 1:
        names = {c.id: c.name for c in collections}
        st.selectbox("Ask about", list(names), format_func=lambda i: names[i], key="chat_collection")
    if questions := running.documents.suggested_questions(identity.tenant_id, chosen_collection().id, limit=4):
        st.space("small")
        st.pills(
            "Suggested questions",
            questions,
            format_func=plain,
            key="chat_suggestion",
            label_visibility="collapsed",
            on_change=ask_suggestion,
            args=("chat_suggestion",),
        )


def draw_document_filter() -> None:
    """Ask in some documents only. The list is read only while the popover is open."""
    chosen = state.get("chat_documents") or []
    label = f"Only in {count(len(chosen), 'document')}" if chosen else "All documents"
    chooser = st.popover(
        label, type="tertiary", icon=":material/filter_list:", key="chat_filter", on_change="rerun", wrap=False
    )
    if chooser.open:
        with chooser:
            found = running.documents.list(identity.tenant_id, collection_id=chosen_collection().id)
            titles = {d.id: d.title for d in found if d.status is DocumentStatus.COMPLETED}
            st.multiselect(
                "Ask only in",
                list(titles),
                format_func=lambda i: titles.get(i, "Deleted document"),
                key="chat_documents",
                placeholder="All documents",
                persist_state="page",
            )


def draw_message(message: Message, *, is_last: bool) -> None:
    if message.role == "user":
        with st.chat_message("user", avatar=":material/person:"):
            st.markdown(plain_lines(message.content))
        return
    citations = [citation_from_json(c) for c in message.citations]
    anchor = f"s{message.id.hex[:8]}"
    with st.chat_message("assistant", avatar=MARK):
        if is_last:
            with st.container(key="chat_now", gap="small"):
                draw_answer(message, citations, anchor)
        else:
            draw_answer(message, citations, anchor)
    if citations:
        draw_sources(message, citations, anchor, is_last=is_last)
    if message.outcome is not None:
        draw_footer(message, citations)


def draw_answer(message: Message, citations: list[Citation], anchor: str) -> None:
    if message.content:
        st.markdown(answer_markdown(message.content, [c.number for c in citations], anchor))
    notice = plain(message.notice)
    if message.state is MessageState.STOPPED:
        st.caption(f":material/stop_circle: {notice or 'Stopped. What was written is kept.'}")
    elif message.state is MessageState.CUT:
        st.warning(notice or "The answer ended early. What was written is kept.", icon=":material/content_cut:")
    elif message.state is MessageState.FAILED:
        st.error(notice or RagError().message, icon=":material/error:")
    elif notice:
        st.caption(f":material/info: {notice}")


def draw_sources(message: Message, citations: list[Citation], anchor: str, *, is_last: bool) -> None:
    is_nearest = is_nearest_only(message)
    label = "Nearest passages" if is_nearest else "Sources"
    if is_last:
        st.markdown(f":material/menu_book: **{label}**" if not is_nearest else f":material/travel_explore: **{label}**")
        draw_source_cards(citations, anchor=anchor, on_open=show_source)
        return
    shut = st.expander(
        f"{label} ({len(citations)})", key=f"chat_sources_{message.id}", on_change="rerun", type="compact"
    )
    if shut.open:
        with shut:
            draw_source_cards(citations, anchor=anchor, on_open=show_source)


def is_nearest_only(message: Message) -> bool:
    """Whether the passages only came closest: the answer is not in them."""
    return message.outcome is Outcome.NO_CONTEXT or any(c.get("kind") == "nearest" for c in message.citations)


def draw_footer(message: Message, citations: list[Citation]) -> None:
    parts = [duration(message.total_ms)] if message.total_ms is not None else []
    if citations and not is_nearest_only(message):
        parts.append(count(len(citations), "source"))
    parts.append("no charge" if message.cost == 0 else plain(money(message.cost)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        rating = st.feedback(
            "thumbs", key=f"chat_rating_{message.id}", default=message.rating, on_change=rate, args=(message.id,)
        )
        if rating is not None:
            with st.popover("Comment", type="tertiary", icon=":material/add_comment:", key=f"chat_why_{message.id}"):
                st.text_area(
                    "What was good?" if rating else "What was wrong or missing?",
                    key=f"chat_comment_{message.id}",
                    max_chars=2000,
                    on_change=rate,
                    args=(message.id,),
                )
                st.caption("Saved when you leave the field. Your administrator reads it.")
        st.markdown(f":small[:gray[{' · '.join(parts)}]]", width="content")


def step_label(step: StepEvent) -> str:
    if step.name == "found":
        return f"{count(int(step.detail or 0), 'passage')} found"
    return STEP_LABELS.get(step.name, "Working")


def follow(live: LiveAnswer) -> None:
    """Draw an answer as it is written. Every pulse makes a call of Streamlit, where a click can interrupt it."""
    with st.chat_message("assistant", avatar=MARK), st.container(key="chat_now", gap="small"):
        text_slot = st.empty()
        status = st.status(":shimmer[Reading the question]", type="compact")
        for step in live.follow_steps():
            if step is None:
                status.update(state="running")
                continue
            status.update(label=f":shimmer[{step_label(step)}]")
            status.markdown(f":small[{step_label(step)}]")
        written = ""
        for piece in live.tail():
            written += piece
            text_slot.markdown(answer_markdown(written))


def plain_lines(text: str) -> str:
    """A question as it was typed, line breaks kept."""
    return "  \n".join(plain(line) for line in text.strip().splitlines())


collections = running.documents.collections(identity.tenant_id)
conversation = opened_conversation()
if conversation is None and "c" in st.query_params:
    st.query_params.clear()
    st.toast("This conversation does not exist, or no longer.", icon=":material/info:")

with state.frame_sidebar:
    st.html("<style>.st-key-chat_recent button>div{justify-content:flex-start}</style>")
    draw_recent(conversation)

# Slots with fixed places, all filled before the answer streams: what is not redrawn until then would stay grey.
welcome, earlier, log = st.empty(), st.empty(), st.container()
next_questions, problem = st.empty(), st.empty()
with st.bottom.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    filter_slot, stop_slot = st.empty(), st.empty()
st.chat_input("Ask about your documents", key="chat_question", on_submit=ask_from_input)

messages: list[Message] = []
live: LiveAnswer | None = None
if conversation is not None:
    # The answer first: should it end in between, its message is whole.
    live = running.answers.active(identity, conversation.id)
    messages = running.conversations.messages(identity, conversation.id, last=2 * state.chat_turns + 1)
    if len(messages) > 2 * state.chat_turns:
        messages = messages[1:]
        earlier.button("Show earlier messages", key="chat_earlier", type="tertiary", on_click=show_more_turns)
else:
    with welcome.container():
        draw_welcome(collections)

if collections:
    with filter_slot.container(width="content"):
        draw_document_filter()
if state.chat_problem:
    problem.error(state.chat_problem, icon=":material/error:")
if state.chat_dialog and conversation is not None:
    (rename_dialog if state.chat_dialog == "Rename" else delete_dialog)(conversation)
elif state.chat_source is not None:
    cited: Citation = state.chat_source
    open_page_view(
        running.documents,
        identity.tenant_id,
        cited.document_id,
        page=cited.first_page,
        chunk_id=cited.chunk_id,
        section=cited.section,
        passage=cited.passage,
        terms=cited.matched_terms,
        on_close=close_source,
    )

with log:
    for message in messages:
        if live is None or message.id != live.message_id:
            draw_message(message, is_last=message is messages[-1])

if live is not None:
    stop_slot.container(width="content").button(
        "Stop", key="chat_stop", icon=":material/stop_circle:", on_click=live.stop
    )
    with log:
        follow(live)
    st.rerun()

if messages and (finished := running.answers.find(identity, messages[-1].id)) and finished.follow_ups:
    next_questions.container().pills(
        "Next questions",
        finished.follow_ups,
        format_func=plain,
        key=f"chat_next_{finished.message_id}",
        label_visibility="collapsed",
        on_change=ask_suggestion,
        args=(f"chat_next_{finished.message_id}",),
    )
