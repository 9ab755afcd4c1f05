"""Questions and answers as they stand in a conversation, and an answer while it is being written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import streamlit as st

from rag.answering.citations import citation_from_json, citation_to_json
from rag.answering.events import StepEvent
from rag.answering.jobs import LiveAnswer
from rag.errors import RagError
from rag.language import N_, _
from rag.types import Citation, Message, MessageState, Outcome
from rag.ui.formats import count, duration, money
from rag.ui.live_text import place_of
from rag.ui.source_cards import draw_source_cards
from rag.ui.text import answer_markdown, lines, plain
from rag.ui.theme import MARK

STEP_LABELS = {
    "rewriting": N_("Reading the question"),
    "translating": N_("Translating the question"),
    "searching": N_("Searching the documents"),
    "reranking": N_("Comparing passages"),
    "writing": N_("Writing"),
}

OpenSource = Callable[[Citation], None]
Rate = Callable[[UUID], None]
SearchedAs = Callable[[Message], str]


def draw_message(
    message: Message, *, is_last: bool, on_open: OpenSource, on_rate: Rate, searched_as: SearchedAs | None = None
) -> None:
    """Draw a stored message. The last answer has its sources open, older ones have them on demand.

    `on_open` is called with the citation whose page is wanted, `on_rate` with the id of an answer whose widgets
    `chat_rating_…` or `chat_comment_…` changed. `searched_as` says what was searched for, when it is asked.
    """
    if message.role == "user":
        with st.chat_message("user", avatar=":material/person:"):
            # Line breaks stay as they were typed.
            st.markdown(lines(message.content))
        return
    citations = [citation_from_json(stored) for stored in message.citations]
    anchor = f"s{message.id.hex[:8]}"
    with st.chat_message("assistant", avatar=MARK), st.container(gap="small"):
        _draw_answer(message, [c.number for c in citations], anchor)
    if citations:
        _draw_sources(message, citations, anchor, on_open, is_last=is_last)
    if message.removed_sources:
        st.caption(f":material/delete_sweep: {_removed_words(message.removed_sources)}")
    if message.outcome is not None:
        draw_footer(message, on_rate=on_rate, searched_as=searched_as)


def as_written(message: Message, live: LiveAnswer) -> Message:
    """Return a message whose answer is written but not stored, because next questions are still being thought of."""
    written = live.written
    if written is None:
        return message
    return replace(
        message,
        content=live.text,
        state=written.state,
        notice=written.notice,
        citations=[citation_to_json(citation, written.kind) for citation in written.citations],
    )


def follow(live: LiveAnswer, *, pulse_seconds: float) -> None:
    """Draw what an answer is doing and the place where its text grows, until it is written.

    The browser follows the text itself (`live_text.py`): as messages of Streamlit's elements, the pieces of a hundred
    answers are more than one process can draw. Every pulse gives a click the chance to end the run.
    """
    with st.chat_message("assistant", avatar=MARK), st.container(gap="small"):
        st.html(place_of(live.message_id))
        steps = st.empty()
        steps.markdown(f":small[:shimmer[{_(STEP_LABELS['rewriting'])}]]")
        for step in live.follow_steps(pulse_seconds):
            if step is None:
                be_interrupted()
            else:
                steps.markdown(f":small[:shimmer[{_step_label(step)}]]")
        while not live.wait_until_written(pulse_seconds):
            be_interrupted()
        # The stored answer is drawn over this one in the same run; what it has nothing for would stay.
        steps.empty()


def be_interrupted() -> None:
    """Let a click end this run here. Streamlit looks for one at each use of its session state; nothing is sent."""
    _ = "chat_now" in st.session_state


def _step_label(step: StepEvent) -> str:
    if step.name == "found":
        return _("{detail} found", detail=count(int(step.detail or 0), "passage"))
    return _(STEP_LABELS.get(step.name, N_("Working")))


def _draw_answer(message: Message, numbers: list[int], anchor: str) -> None:
    if message.content:
        st.markdown(answer_markdown(message.content, numbers, anchor))
    notice = plain(message.notice)
    kept = _("What was written is kept.") if message.content else _("Nothing had been written yet.")
    if message.state is MessageState.STOPPED:
        st.caption(f":material/stop_circle: {_('Stopped.')} {notice or kept}")
    elif message.state is MessageState.CUT:
        st.warning(notice or _("The answer ended early. {kept}", kept=kept), icon=":material/content_cut:")
    elif message.state is MessageState.FAILED:
        st.error(notice or plain(RagError().message), icon=":material/error:")
    elif notice:
        st.caption(f":material/info: {notice}")


def _removed_words(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return _("Source {numbers} was removed since: its document has been deleted.", numbers=numbers[0])
    shown = ", ".join(str(number) for number in numbers[:-1])
    return _(
        "Sources {shown} and {numbers} were removed since: their documents have been deleted.",
        shown=shown,
        numbers=numbers[-1],
    )


def _is_nearest_only(message: Message) -> bool:
    """Tell whether the passages only came closest: the answer is not in them."""
    return message.outcome is Outcome.NO_CONTEXT or any(c.get("kind") == "nearest" for c in message.citations)


def _draw_sources(
    message: Message, citations: list[Citation], anchor: str, on_open: OpenSource, *, is_last: bool
) -> None:
    is_answered = not _is_nearest_only(message)
    label, icon = (
        (_("Sources"), ":material/menu_book:") if is_answered else (_("Nearest passages"), ":material/travel_explore:")
    )
    if is_last:
        st.markdown(f"{icon} **{label}**")
        draw_source_cards(citations, anchor=anchor, on_open=on_open, with_match=is_answered)
        return
    cards = st.expander(
        f"{label} ({len(citations)})", key=f"chat_sources_{message.id}", on_change="rerun", type="compact"
    )
    if cards.open:
        with cards:
            draw_source_cards(citations, anchor=anchor, on_open=on_open, with_match=is_answered)


def draw_footer(message: Message, *, on_rate: Rate, searched_as: SearchedAs | None = None) -> None:
    """Return what a stored answer took and cost, and where it is rated."""
    citation_count = len(message.citations)
    parts = [duration(message.total_ms)] if message.total_ms is not None else []
    if citation_count and not _is_nearest_only(message):
        parts.append(count(citation_count, "source"))
    parts.append(_("no charge") if message.cost == 0 else plain(money(message.cost)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        rating = st.feedback(
            "thumbs", key=f"chat_rating_{message.id}", default=message.rating, on_change=on_rate, args=(message.id,)
        )
        if rating is not None:
            with (
                st.popover(_("Comment"), type="tertiary", icon=":material/add_comment:", key=f"chat_why_{message.id}"),
                st.form(f"chat_form_{message.id}", border=False),
            ):
                st.text_area(
                    _("What was good?") if rating else _("What was wrong or missing?"),
                    key=f"chat_comment_{message.id}",
                    max_chars=2000,
                    placeholder=_("Your administrator reads this."),
                )
                st.form_submit_button(_("Send comment"), on_click=on_rate, args=(message.id,))
        st.markdown(f":small[:gray[{' · '.join(parts)}]]", width="content")
        if searched_as is not None and message.chat_log_id is not None and _was_searched(message):
            _draw_searched_as(message, searched_as)


def _was_searched(message: Message) -> bool:
    """Tell whether a search was made: not for small talk, nor for whole documents, whose passages have no score."""
    if message.outcome in (Outcome.SMALL_TALK, Outcome.ASKED_BACK):
        return False
    return not message.citations or any(citation.get("score") for citation in message.citations)


def _draw_searched_as(message: Message, searched_as: SearchedAs) -> None:
    """Return how the question was understood, on demand."""
    view = st.popover(
        _("Searched for"),
        type="tertiary",
        icon=":material/search:",
        key=f"chat_searched_{message.id}",
        on_change="rerun",
    )
    if view.open:
        with view:
            text = searched_as(message)
            st.markdown(plain(text) if text else _("The question as it was asked."))
