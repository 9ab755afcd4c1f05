"""Ask the documents: streamed answers with their sources, the page behind each, and all past conversations.

An answer is a job of `LiveAnswers`; this page only watches it. Refreshing attaches again, a second tab follows, and
closing the tab loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import streamlit as st

from rag.answering.live import LiveAnswer
from rag.errors import NotFound, RagError
from rag.profiles import NOTICES, profile_by_name, with_overrides
from rag.retrieval.options import Options
from rag.retrieval.posts import category_of
from rag.services import require, services
from rag.types import Citation, Collection, Conversation, DocumentStatus, Message, Role, SearchFilters
from rag.ui.document_kinds import field_label
from rag.ui.formats import count
from rag.ui.messages import draw_message, follow
from rag.ui.page_view import open_page_view, turn_to
from rag.ui.question_buttons import draw_question_buttons
from rag.ui.recent import draw_dialog, draw_recent
from rag.ui.text import plain

#: So many collections stand side by side to choose from; more are in a list.
SIDE_BY_SIDE = 4
#: Height of a field that a search is narrowed by, and of the sentence above them.
FIELD_PIXELS, SENTENCE_PIXELS = 84, 58
#: A long history is what a run costs most: older turns come on demand.
TURNS_SHOWN = 10

identity = require(Role.EMPLOYEE)
running = services()
state = st.session_state
state.setdefault("chat_turns", TURNS_SHOWN)
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
    documents = chosen_documents()
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
            options=chosen_options(),
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


def rate(message_id: UUID) -> None:
    rating = state[f"chat_rating_{message_id}"]
    if rating is not None:
        comment = state.get(f"chat_comment_{message_id}") or ""
        running.feedback.rate(identity, message_id, rating, comment)
        if comment:
            st.toast("Thank you. Your comment is saved.", icon=":material/check:")


def searched_as(message: Message) -> str:
    """What was searched for in place of the question before an answer, read only when somebody wants to see it."""
    return running.chat_logs.searched_as(identity, message.chat_log_id) if message.chat_log_id else ""


def show_source(citation: Citation) -> None:
    state.chat_source = citation
    turn_to(citation.first_page)


def close_source() -> None:
    state.chat_source = None


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
    found = running.documents.collections(identity)
    conversation = opened_conversation()
    wanted = conversation.collection_id if conversation else state.get("chat_collection")
    chosen = next((c for c in found if c.id == wanted), found[0] if found else None)
    if chosen is None:
        raise NotFound("There are no documents yet. An administrator has to add some first.")
    return chosen


def chosen_documents() -> tuple[UUID, ...]:
    """The documents to ask in, as far as they are in the collection that is asked; empty means all."""
    wanted = state.get("chat_documents") or ()
    if not wanted:
        return ()
    here = {d.id for d in running.documents.list(identity, collection_id=chosen_collection().id)}
    return tuple(document_id for document_id in wanted if document_id in here)


def chosen_options() -> Options:
    """What the search is narrowed by, as far as the collection that is asked has it."""
    collection = chosen_collection()
    profile = with_overrides(profile_by_name(collection.profile), collection.overrides)
    wanted = {field: state.get(f"chat_narrow_{collection.id}_{field}") for field in profile.metadata_filters}
    filters = SearchFilters(
        metadata={field: value for field, value in wanted.items() if value}, categories=chosen_categories()
    )
    return Options() if filters.is_empty else Options(filters=filters)


def chosen_categories() -> tuple[str, ...]:
    """The categories of a notice board to ask in, none for all; those of another collection do not count."""
    wanted = state.get("chat_categories") or ()
    known = categories_of(chosen_collection()) if wanted else {}
    return tuple(slug for slug in wanted if slug in known)


def categories_of(collection: Collection) -> dict[str, str]:
    """Names of the categories of a notice board's posts by their slugs; none where it is no board."""
    if collection.profile != NOTICES.name:
        return {}
    found = running.documents.list(identity, collection_id=collection.id)
    return {str(d.metadata["categorySlug"]): category_of(d.metadata) for d in found if d.metadata.get("categorySlug")}


def forget_documents() -> None:
    """Another collection has other documents."""
    state.chat_documents = []
    state.chat_categories = []


# Drawing.


def draw_welcome(collections: Sequence[Collection]) -> None:
    documents = running.documents.list(identity)
    first_name = identity.name.split()[0] if identity.name.split() else ""
    st.space("large")
    st.title(f"How can I help, {plain(first_name)}?" if first_name else "How can I help?", anchor=False)
    if not any(d.status is DocumentStatus.COMPLETED for d in documents):
        st.caption("There are no documents to answer from yet.")
        if identity.may(Role.ADMIN):
            st.page_link("documents.py", label="Add documents", icon=":material/upload_file:")
        return
    st.caption("Answers come only from the documents here, with the page they come from.")
    if len(collections) > 1:
        draw_choice(collections)
        if not any(
            d.status is DocumentStatus.COMPLETED and d.collection_id == chosen_collection().id for d in documents
        ):
            st.caption("Nothing in this collection can be searched yet.")
    languages = [st.context.locale] if st.context.locale else []
    if questions := running.documents.suggested_questions(
        identity, chosen_collection().id, languages=languages, limit=4
    ):
        st.space("small")
        draw_question_buttons(questions, key="chat_suggestion", on_ask=ask)


def draw_choice(collections: Sequence[Collection]) -> None:
    """Which collection the first question goes to: the oldest, unless another is chosen."""
    names = {c.id: c.name for c in collections}
    if state.get("chat_collection") not in names:
        state.chat_collection = collections[0].id

    def name(collection_id: UUID) -> str:
        return plain(names.get(collection_id, "Deleted collection"))

    if len(collections) <= SIDE_BY_SIDE:
        st.segmented_control(
            "Ask in",
            list(names),
            required=True,
            format_func=name,
            key="chat_collection",
            on_change=forget_documents,
        )
    else:
        st.selectbox("Ask in", list(names), format_func=name, key="chat_collection", on_change=forget_documents)


def draw_document_filter() -> None:
    """Ask in some documents only. The list is read only while the popover is open."""
    chosen = state.get("chat_documents") or []
    filters = chosen_options().filters
    narrowed = [str(value) for value in filters.metadata.values()] if filters else []
    if filters and filters.categories:
        names = categories_of(chosen_collection())
        narrowed += [names[slug] for slug in filters.categories]
    is_board = chosen_collection().profile == NOTICES.name
    everything = "All posts" if is_board else "All documents"
    if len(collections) > 1:
        # In a conversation nothing else says which collection it asks.
        everything = f"All of {chosen_collection().name}"
    label = f"Only in {count(len(chosen), 'post' if is_board else 'document')}" if chosen else everything
    label = plain(", ".join([*([label] if chosen or not narrowed else []), *narrowed]))
    chooser = st.popover(
        label, type="tertiary", icon=":material/filter_list:", key="chat_filter", on_change="rerun", wrap=False
    )
    profile = with_overrides(profile_by_name(chosen_collection().profile), chosen_collection().overrides)
    is_bound = len(collections) > 1 and conversation is not None
    fields = 1 + is_board + len(profile.metadata_filters)
    # The place is there before what stands in it: a popover that grew after it opened would go below the window.
    with chooser:
        inside = st.container(height=FIELD_PIXELS * fields + SENTENCE_PIXELS * is_bound, border=False)
    if chooser.open:
        with inside:
            if is_bound:
                st.caption(
                    f"This conversation asks in {plain(chosen_collection().name)}. A new chat can ask elsewhere."
                )
            found = running.documents.list(identity, collection_id=chosen_collection().id)
            titles = {d.id: d.title for d in found if d.status is DocumentStatus.COMPLETED}
            if names := categories_of(chosen_collection()):
                st.pills(
                    "Categories",
                    sorted(names, key=names.__getitem__),
                    selection_mode="multi",
                    format_func=lambda slug: plain(names.get(str(slug), str(slug))),
                    key="chat_categories",
                    help="None chosen: all of them.",
                    persist_state="page",
                )
            st.multiselect(
                "Ask only in",
                list(titles),
                format_func=lambda i: titles.get(i, "Deleted document"),
                key="chat_documents",
                placeholder="All posts" if is_board else "All documents",
                persist_state="page",
            )
            draw_narrowing(chosen_collection())


def draw_narrowing(collection: Collection) -> None:
    """A choice for each field of the metadata that the collection may be narrowed by and has values of."""
    profile = with_overrides(profile_by_name(collection.profile), collection.overrides)
    for field in profile.metadata_filters:
        if values := running.documents.metadata_values(identity, collection.id, field):
            st.selectbox(
                field_label(field),
                values,
                index=None,
                placeholder="Any",
                key=f"chat_narrow_{collection.id}_{field}",
                persist_state="page",
            )


# The page.

collections = running.documents.collections(identity)
conversation = opened_conversation()
if conversation is None and "c" in st.query_params:
    st.query_params.clear()
    st.toast("This conversation does not exist, or no longer.", icon=":material/info:")

with state.frame_sidebar:
    draw_recent(running.conversations, identity, conversation, open_conversation)

# Slots with fixed places, all filled before the answer streams: what is not redrawn until then would stay grey.
welcome, earlier, log = st.empty(), st.empty(), st.container()
next_questions, problem = st.empty(), st.empty()
with st.bottom.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    filter_slot, stop_slot = st.empty(), st.empty()
asked_in = chosen_collection().name if len(collections) > 1 else ""
st.chat_input(
    f"Ask in {asked_in}" if asked_in else "Ask about your documents", key="chat_question", on_submit=ask_from_input
)

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
has_dialog = conversation is not None and draw_dialog(running.conversations, identity, conversation, open_conversation)
if state.chat_source is not None and not has_dialog:
    cited: Citation = state.chat_source
    open_page_view(
        running.documents,
        identity,
        cited.document_id,
        page=cited.first_page,
        chunk_id=cited.chunk_id,
        section=cited.section,
        passage=cited.passage,
        terms=cited.matched_terms,
        on_close=close_source,
    )

with log:
    for message in messages[:-1]:
        draw_message(message, is_last=False, on_open=show_source, on_rate=rate, searched_as=searched_as)
    # The latest answer has one place, while it is written and after: it does not jump when it is done.
    answer = st.container(key="chat_now").empty()

if live is not None:
    stop_slot.container(width="content").button(
        "Stop", key="chat_stop", icon=":material/stop_circle:", on_click=live.stop
    )
    with answer.container():
        follow(live, every_seconds=running.answers.pace_seconds)
    # What is stored replaces what was written, in this run: another would draw the whole page once more.
    stop_slot.empty()
    messages = running.conversations.messages(identity, live.conversation_id, last=1)

if messages:
    with answer.container():
        draw_message(messages[-1], is_last=True, on_open=show_source, on_rate=rate, searched_as=searched_as)

if messages and (finished := running.answers.find(identity, messages[-1].id)) and finished.follow_ups:
    with next_questions.container():
        draw_question_buttons(finished.follow_ups, key=f"chat_next_{finished.message_id}", on_ask=ask)
