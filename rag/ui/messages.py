"""Draw a conversation's questions and answers, and an answer in progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rag import language
from rag.answering.citations import citation_from_json, citation_to_json, quoted
from rag.answering.events import QUEUED, StepEvent
from rag.answering.jobs import LiveAnswer
from rag.answering.readers import notice_for
from rag.errors import RagError
from rag.language import N_, _, ngettext
from rag.records.conversations import SharedConversation
from rag.types import Citation, Message, MessageState, Outcome
from rag.ui.formats import count, duration, money
from rag.ui.live_text import place_of
from rag.ui.sources import copy_html, draw_source_cards, source_lines, sources_html
from rag.ui.text import answer_markdown, lines, plain
from rag.ui.theme import MARK
from rag.ui.widgets import drawn, name_labels

STEP_LABELS = {
    "rewriting": N_("Reading the question"),
    "translating": N_("Translating the question"),
    "searching": N_("Searching the documents"),
    "reranking": N_("Comparing passages"),
    "writing": N_("Writing"),
}

OpenSource = Callable[[Citation], None]
#: Reasons an answer may be bad, in a reader's words.
REASONS: Mapping[str, str] = {
    "wrong": N_("The answer is wrong"),
    "incomplete": N_("Something is missing"),
    "outdated": N_("The answer is out of date"),
    "wrong_source": N_("The source does not say this"),
}
ASK_HELP = N_("Sends your question to the people in charge. Their answer comes back into this conversation.")
#: The longest delay for the rest of a page while its answer has no first words.
HOLD_SECONDS = 2.0
#: Height of the comment field: the parts below stay in sight when an answer near the lower edge is rated.
COMMENT_PIXELS = 72
#: Height of the comment form, without and with the reasons for a thumbs-down.
FORM_PIXELS, REASONS_PIXELS = 170, 220
#: Outcomes which leave a question open.
OPEN_ENDED = frozenset({Outcome.NO_CONTEXT, Outcome.PERHAPS, Outcome.REFUSED})


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """A reader's view of a conversation, and the allowed actions."""

    #: Called with the citation whose page to open.
    on_open: OpenSource
    #: Called with an answer's id when its widgets `chat_rating_…`, `chat_reason_…` or `chat_comment_…` change.
    on_rate: Callable[[UUID], None] | None = None
    #: Passes a question to the people in charge: the answer's id, and whether there was an answer.
    on_ask_person: Callable[[UUID, bool], None] | None = None
    #: Called with a question, to ask it again or to edit it first.
    on_again: Callable[[str], None] | None = None
    on_edit: Callable[[str], None] | None = None
    #: Called with a question the chosen documents did not answer, to ask all documents.
    on_everywhere: Callable[[str], None] | None = None
    #: Returns the searched wordings when called.
    searched_as: Callable[[Message], str] | None = None
    #: Whether to show cost and time; only for people managing the answers.
    with_figures: bool = False


def replaced_answers(messages: Sequence[Message]) -> set[UUID]:
    """Return the ids of replaced answers, which are followed by the same question, asked again.

    An answer forwarded to a person is not replaced, because the person's reply appears there.
    """
    return {
        answer.id
        for question, answer, again in zip(messages, messages[1:], messages[2:], strict=False)
        if answer.role == "assistant"
        and question.role == again.role == "user"
        and question.content == again.content
        and not answer.help_status
    }


def draw_message(
    message: Message, viewer: Viewer, *, is_last: bool, question: str = "", is_replaced: bool = False
) -> DeltaGenerator | None:
    """Draw a message; for an answer, return the container for time and cost.

    `question` is the question which the message answers. The sources are open for the last answer, and closed for older
    answers. A replaced answer is collapsed, including its sources and actions.
    """
    if is_replaced:
        folded = st.expander(
            _("An earlier answer to the same question"),
            icon=":material/history:",
            key=f"chat_replaced_{message.id}",
            on_change="rerun",
            type="compact",
        )
        if folded.open:
            with folded:
                draw_message(message, viewer, is_last=False)
        return None
    if message.role == "user":
        with st.chat_message("user", avatar=":material/person:"):
            # Keep line breaks as typed.
            st.markdown(lines(message.content))
        return None
    citations = [citation_from_json(stored) for stored in message.citations]
    anchor = f"s{message.id.hex[:8]}"
    with st.chat_message("assistant", avatar=MARK), st.container(gap="small"):
        _draw_answer(message, [c.number for c in citations], anchor, is_for_operators=viewer.with_figures)
    if citations:
        _draw_sources(message, citations, anchor, viewer, is_last=is_last)
    if message.removed_sources:
        st.caption(f":material/delete_sweep: {_removed_words(message.removed_sources)}")
    if message.outcome is None:
        return None
    return _draw_footer(message, viewer, is_last=is_last, question=question)


def draw_shared(shared: SharedConversation, on_open: OpenSource) -> None:
    """Draw a colleague's shared conversation, read-only."""
    by = plain(shared.shared_by) or _("a colleague")
    st.markdown(f"**{plain(shared.conversation.title)}**")
    st.caption(f":material/share: {_('Shared by {by}. Ask below to begin a conversation of your own.', by=by)}")
    viewer = Viewer(on_open=on_open)
    with st.container(key="chat_shared"):
        for message in shared.messages:
            draw_message(message, viewer, is_last=message is shared.messages[-1])


def as_written(message: Message, live: LiveAnswer) -> Message:
    """Return a message with text and sources from `live`, an answer which is finished but not yet stored.

    Follow-up questions are not included.
    """
    finished = live.written
    if finished is None:
        return message
    return replace(
        message,
        content=live.text,
        state=finished.state,
        notice=finished.notice,
        outcome=finished.outcome,
        citations=[citation_to_json(citation, finished.kind) for citation in finished.citations],
    )


def draw_place(live: LiveAnswer) -> DeltaGenerator:
    """Draw the placeholder for an answer's growing text. Return the container for the steps shown before the text.

    The browser fetches the text itself (`live_text.py`), because sending the pieces of 100 answers as Streamlit
    elements would overload a process.
    """
    with st.chat_message("assistant", avatar=MARK), st.container(gap="small"):
        st.html(place_of(live.message_id))
        steps = st.empty()
        steps.markdown(f":small[:shimmer[{_(STEP_LABELS['rewriting'])}]]")
    return steps


def hold_back(live: LiveAnswer, is_rushed: Callable[[], bool], *, pulse_seconds: float) -> None:
    """If many people are waiting, delay the rest of the page until this answer has its first words.

    When fifty people ask within a second, drawing the conversation list, the menu and the rest is a quarter of the work
    before their first words. The delay is limited, because Streamlit fades elements which a run has not redrawn after
    half a second.
    """
    until = time.monotonic() + HOLD_SECONDS
    while is_rushed() and time.monotonic() < until and not live.wait_until_begun(min(pulse_seconds, HOLD_SECONDS)):
        be_interrupted()


def follow(live: LiveAnswer, steps: DeltaGenerator, *, pulse_seconds: float) -> None:
    """Show an answer's steps until the answer is written.

    Every `pulse_seconds`, the run checks for clicks, and ends if there was a click.
    """
    for step in live.follow_steps(pulse_seconds):
        if step is None:
            be_interrupted()
        elif step is live.steps[-1]:
            steps.markdown(f":small[:shimmer[{_step_label(step)}]]")
    while not live.wait_until_written(pulse_seconds):
        be_interrupted()
    # The stored answer is drawn over this one in the same run; parts without a replacement would stay.
    steps.empty()


def be_interrupted() -> None:
    """End this page run here if the person has clicked something.

    Streamlit checks for clicks at each use of the session state.
    """
    _ = "chat_now" in st.session_state


def _step_label(step: StepEvent) -> str:
    if step.name == QUEUED:
        return _place_in_line(int(step.detail))
    if step.name == "found":
        return _("{detail} found", detail=count(int(step.detail or 0), "passage"))
    return _(STEP_LABELS.get(step.name, N_("Working")))


def _place_in_line(before: int) -> str:
    if not before:
        return _("Many people are asking at this moment. Your question is next.")
    return ngettext(
        "Many people are asking at this moment. {count} question is before yours.",
        "Many people are asking at this moment. {count} questions are before yours.",
        before,
    )


def _draw_answer(message: Message, numbers: list[int], anchor: str, *, is_for_operators: bool) -> None:
    if message.content:
        st.markdown(answer_markdown(message.content, numbers, anchor))
    notice = plain(notice_for(message.notice, is_for_operators=is_for_operators))
    remark = _("What was written is kept.") if message.content else _("Nothing had been written yet.")
    if message.state is MessageState.STOPPED:
        st.caption(f":material/stop_circle: {_('Stopped.')} {notice or remark}")
    elif message.state is MessageState.CUT:
        st.warning(notice or _("The answer ended early. {kept}", kept=remark), icon=":material/content_cut:")
    elif message.state is MessageState.FAILED:
        st.error(notice or plain(RagError().message), icon=":material/error:")
    elif notice:
        st.caption(f":material/info: {notice}")


def _removed_words(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return _("Source {numbers} is no longer shown, because its document was deleted.", numbers=numbers[0])
    earlier = ", ".join(str(number) for number in numbers[:-1])
    return _(
        "Sources {shown} and {numbers} are no longer shown, because their documents were deleted.",
        shown=earlier,
        numbers=numbers[-1],
    )


def _is_nearest_only(message: Message) -> bool:
    """Whether the answer's sources are only the closest passages, because no passage answers the question."""
    return message.outcome is Outcome.NO_CONTEXT or any(c.get("kind") == "nearest" for c in message.citations)


def _draw_sources(message: Message, citations: list[Citation], anchor: str, viewer: Viewer, *, is_last: bool) -> None:
    is_answered = not _is_nearest_only(message)
    label, icon = (
        (_("Sources"), ":material/menu_book:")
        if is_answered
        else (_("Most similar passages"), ":material/travel_explore:")
    )
    places = quoted(message.content, citations)
    st.html(sources_html(citations, anchor, message.id, places))
    if is_last:
        st.markdown(f"{icon} **{label}**")
        draw_source_cards(citations, anchor=anchor, on_open=viewer.on_open, places=places)
        return
    cards = st.expander(
        f"{label} ({len(citations)})", key=f"chat_sources_{message.id}", on_change="rerun", type="compact"
    )
    if cards.open:
        with cards:
            draw_source_cards(citations, anchor=anchor, on_open=viewer.on_open, places=places)


def _draw_footer(message: Message, viewer: Viewer, *, is_last: bool, question: str) -> DeltaGenerator | None:
    figures = None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if viewer.on_rate is not None:
            _draw_rating(message, viewer)
        if message.content:
            st.html(copy_html(with_sources(message), message.id.hex), width="content")
        if is_last and question:
            _draw_question_actions(message, viewer, question)
        if viewer.searched_as is not None and message.chat_log_id is not None and _was_searched(message):
            _draw_search_details(message, viewer, viewer.searched_as)
        if viewer.with_figures:
            figures = st.empty()
            draw_figures(figures, message)
    if is_last and question and message.outcome is Outcome.NO_CONTEXT and viewer.on_everywhere is not None:
        st.button(
            _("Ask in all documents"),
            key=f"chat_everywhere_{message.id}",
            icon=":material/filter_list_off:",
            on_click=viewer.on_everywhere,
            args=(question,),
        )
    if is_last and message.outcome in OPEN_ENDED and not message.help_status and viewer.on_ask_person is not None:
        st.button(
            _("Ask HR"),
            key=f"chat_person_{message.id}",
            icon=":material/support_agent:",
            help=_(ASK_HELP),
            on_click=viewer.on_ask_person,
            args=(message.id, False),
        )
    if message.help_status:
        _draw_help(message)
    return figures


def draw_figures(place: DeltaGenerator, message: Message) -> None:
    """Draw an answer's time and cost into `place`. Call this after the follow-up questions, whose cost is included."""
    if message.total_ms is not None or message.cost is not None:
        place.markdown(f":small[:gray[{' · '.join(_format_figures(message))}]]", width="content")


def with_sources(message: Message) -> str:
    """Return an answer with a line for each source, for copying and exporting."""
    citations = [citation_from_json(stored) for stored in message.citations]
    return "\n\n".join(filter(None, [message.content.strip(), "\n".join(source_lines(citations))]))


def _draw_rating(message: Message, viewer: Viewer) -> None:
    rating = st.feedback(
        "thumbs", key=f"chat_rating_{message.id}", default=message.rating, on_change=viewer.on_rate, args=(message.id,)
    )
    if rating is None:
        return
    label = _("Comment") if rating else _("What was wrong?")
    with (
        st.popover(
            label, type="tertiary", icon=":material/add_comment:", key=f"chat_why_{message.id}", on_change="rerun"
        ),
        # Reserve the height before adding content: a form growing after it opened would reach below the window.
        st.container(
            height=FORM_PIXELS if rating else REASONS_PIXELS, border=False, key=f"chat_form_room_{message.id}"
        ),
        st.form(f"chat_form_{message.id}", border=False),
    ):
        if not rating:
            labels = name_labels({reason: _(words) for reason, words in REASONS.items()})
            st.pills(
                _("What was wrong?"),
                list(labels),
                format_func=drawn(labels),
                key=f"chat_reason_{message.id}",
                label_visibility="collapsed",
            )
        st.text_area(
            _("What was good?") if rating else _("What was wrong or missing?"),
            key=f"chat_comment_{message.id}",
            height=COMMENT_PIXELS,
            placeholder=_("Your administrator reads this."),
        )
        with st.container(horizontal=True):
            st.form_submit_button(_("Send comment"), on_click=viewer.on_rate, args=(message.id,))
            if not rating and viewer.on_ask_person is not None and not message.help_status:
                st.form_submit_button(
                    _("Ask HR"),
                    type="primary",
                    icon=":material/support_agent:",
                    help=_(ASK_HELP),
                    on_click=viewer.on_ask_person,
                    args=(message.id, True),
                )


def _draw_question_actions(message: Message, viewer: Viewer, question: str) -> None:
    if viewer.on_again is not None and message.outcome is not Outcome.SMALL_TALK:
        st.button(
            _("Ask again"),
            key=f"chat_again_{message.id}",
            icon=":material/refresh:",
            type="tertiary",
            help=_("Asks the same question again, for another answer."),
            on_click=viewer.on_again,
            args=(question,),
        )
    if viewer.on_edit is not None:
        st.button(
            _("Edit question"),
            key=f"chat_edit_{message.id}",
            icon=":material/edit:",
            type="tertiary",
            help=_("Puts the question into the field below, where you can change it."),
            on_click=viewer.on_edit,
            args=(question,),
        )


def _draw_help(message: Message) -> None:
    if message.help_status == "open":
        st.caption(f":material/support_agent: {_('Passed on to the people in charge. Their answer will appear here.')}")
        return
    who = plain(message.help_by) or _("the people in charge")
    day = language.day(message.help_at.date()) if message.help_at else ""
    if message.help_status == "dismissed":
        closed = _("{who} closed your question on {day}.", who=who, day=day)
        st.caption(f":material/support_agent: {closed} {plain(message.help_answer)}")
        return
    with st.chat_message("assistant", avatar=":material/support_agent:"):
        st.markdown(f":green-badge[:material/person: {_('A person answered: {who}, {day}', who=who, day=day)}]")
        st.markdown(lines(message.help_answer))


def _format_figures(message: Message) -> list[str]:
    parts = [duration(message.total_ms)] if message.total_ms is not None else []
    if message.citations and not _is_nearest_only(message):
        parts.append(count(len(message.citations), "source"))
    return [*parts, _("no charge") if message.cost == 0 else plain(money(message.cost))]


def _was_searched(message: Message) -> bool:
    """Whether passages were searched for this answer. False for small talk, and for answers from whole documents."""
    if message.outcome in (Outcome.SMALL_TALK, Outcome.ASKED_BACK):
        return False
    return not message.citations or any(citation.get("score") for citation in message.citations)


def _draw_search_details(message: Message, viewer: Viewer, searched_as: Callable[[Message], str]) -> None:
    view = st.popover(
        _("How this answer was found"),
        type="tertiary",
        icon=":material/search:",
        key=f"chat_searched_{message.id}",
        on_change="rerun",
    )
    if view.open:
        with view:
            text = searched_as(message)
            st.markdown(f"**{_('Searched for')}**")
            st.markdown(plain(text) if text else _("The question as it was asked."))
            for line in source_lines([citation_from_json(stored) for stored in message.citations]):
                st.markdown(f":small[{plain(line)}]")
