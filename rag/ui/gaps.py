"""Draw the questions the documents do not answer, and the ways to handle them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import streamlit as st

from rag.access.sessions import require_admin
from rag.errors import RagError
from rag.ingestion.loaders.format_table import formats_in_words
from rag.language import N_, _, ngettext, translated
from rag.records.analytics import Filters, Period
from rag.records.gaps import Gap, State, answered_by, written_answer
from rag.records.help_requests import HelpRequest
from rag.services import services
from rag.types import Collection, Document, DocumentFilters, DocumentStatus, Identity, Role, UploadOptions
from rag.ui import actions, lists
from rag.ui.formats import language_name, money, pages, status_badge, stored_cost
from rag.ui.text import plain
from rag.ui.widgets import choose_word, dialog, document_labels, name_labels

PROBLEM = "analytics_gap_problem"
#: Session state key for counting the people notified about the answer to their question.
NOTIFIED = "analytics_gap_told"
STATES: dict[State, str] = {
    "open": N_("Unanswered"),
    "off topic": N_("Off topic"),
    "solved": N_("Now answered"),
    "dismissed": N_("Dismissed"),
}
NONE: dict[State, str] = {
    "open": N_("There are no unanswered questions in this period."),
    "off topic": N_("No question in this period was off topic."),
    "solved": N_("None in this period."),
    "dismissed": N_("None in this period."),
}
NEAREST = 3
FOLLOWED_EVERY_SECONDS = 2
#: A written answer is due for review after a year, unless its author chooses a different date.
REVIEW_DAYS = 365
MOST_DOCUMENTS = 200


def draw_gaps(identity: Identity, period: Period, filters: Filters, draw_details: Callable[[UUID], None]) -> None:
    """Draw a period's unanswered questions, grouped into gaps, and the selected gap with its actions.

    `draw_details` draws the gap's latest question.
    """
    gaps = services().gaps
    gaps.group_soon(identity.tenant_id)  # Group questions asked before grouping became immediate.
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(
            _("Questions that the documents do not answer, or whose answers were rated as not helpful. Questions "
              "with the same meaning are grouped, in any wording and language. Add answers to the most frequent ones "
              "first."),
            width="stretch",
        )  # fmt: skip
        status = choose_word(_("Status"), STATES, key="analytics_gap_state", default="open")
    actions.draw_problem(PROBLEM)
    notified = st.session_state.pop(NOTIFIED, None)
    if notified is not None:
        words = ngettext(
            "Now answered. {count} person is told in their conversation.",
            "Now answered. {count} people are told in their conversations.",
            notified,
        )
        st.toast(plain(words) if notified else _("Now answered"), icon=":material/mark_chat_read:")
    rows = gaps.list(identity, period, filters, status=status)
    if not rows:
        st.caption(_(NONE[status]))
        return
    chosen = lists.choose_row(
        rows,
        {
            # On a small screen the last columns are out of sight.
            _("Question"): lists.texts((gap.question for gap in rows), 215),
            _("Waiting"): lists.numbers(
                (gap.waiting or None for gap in rows),
                65,
                help_text=_("People who asked a person this question and are waiting for an answer."),
            ),
            _("How often"): lists.bars((gap.times for gap in rows), 80),
            _("Before"): lists.numbers(
                (gap.times_before for gap in rows),
                62,
                help_text=_("For comparison: how often the question was asked in the previous period."),
            ),
            _("Last asked"): lists.times((gap.last_asked_at for gap in rows), 102, with_year=False, with_time=False),
            _("Most similar document"): lists.texts((gap.nearest or "–" for gap in rows), 180),
            _("Assigned to"): lists.texts((gap.assignee or "–" for gap in rows), 106),
            _("Groups"): lists.texts((", ".join(gap.user_groups) for gap in rows), 110),
            _("Languages"): lists.texts((", ".join(map(language_name, gap.languages)) for gap in rows), 82),
            _("Wordings"): lists.numbers((gap.wordings for gap in rows), 75),
        },
        key="analytics_gaps",
        alt=_("Questions the documents could not answer"),
    )
    st.caption(
        ngettext("{count} question.", "{count} questions.", len(rows))
        + " "
        + _("Select a row (Shift + Space on the keyboard) to see what can be done.")
    )
    if chosen is not None:
        with st.container(border=True):
            _draw_gap(identity, chosen, gaps.wordings(identity, chosen.id, period, filters))
        with st.container(border=True):
            draw_details(chosen.latest_id)


def _draw_gap(identity: Identity, gap: Gap, wordings: Sequence[str]) -> None:
    gaps = services().gaps
    st.header(plain(gap.question), anchor=False)
    other_wordings = [wording for wording in wordings if wording != gap.question]
    if other_wordings:
        st.markdown("\n".join(f"- {plain(wording)}" for wording in other_wordings[:8]))
    facts = [ngettext("asked once", "asked {count} times", gap.times)]
    if gap.people:
        facts.append(ngettext("by one person", "by {count} people", gap.people))
    if gap.badly_rated:
        facts.append(ngettext("one rated as not helpful", "{count} rated as not helpful", gap.badly_rated))
    if gap.solved_by:
        facts.append(_("now answered by {title}", title=gap.solved_by))
    if gap.reason:
        facts.append(_("dismissed: {reason}", reason=gap.reason))
    st.caption(plain(" · ".join(facts)))
    _draw_nearest(identity, gap)
    key = f"analytics_gap_{gap.id}"
    if gap.status != "open":
        if st.button(_("Open again"), icon=":material/undo:", key=f"{key}_reopen"):
            actions.attempt(PROBLEM, gaps.reopen, identity, gap.id)
            st.rerun()
        for request in gaps.waiting(identity, gap.id):
            _draw_waiting(identity, request)
        return
    if gap.awaits_id is not None:
        _draw_awaited(identity, gap, gap.awaits_id)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if identity.may(Role.ADMIN):
            if st.button(_("Write an answer"), icon=":material/edit_note:", type="primary", key=f"{key}_write"):
                _write_answer(identity, gap)
            if st.button(_("Upload a document"), icon=":material/upload_file:", key=f"{key}_upload"):
                _upload_document(identity, gap)
            if st.button(_("A document answers this question"), icon=":material/description:", key=f"{key}_solve"):
                _choose_document(identity, gap)
        if st.button(_("Dismiss"), icon=":material/do_not_disturb_on:", key=f"{key}_dismiss"):
            _dismiss(identity, gap)
        people = name_labels({person.id: person.name for person in gaps.people(identity)})
        ids = list(people)
        chosen = st.selectbox(
            _("Assigned to"),
            ids,
            index=ids.index(gap.assigned_to) if gap.assigned_to in ids else None,
            format_func=people.of,
            placeholder=_("Nobody"),
            key=f"{key}_assign_{gap.assigned_to}",
            width=220,
        )
        if chosen != gap.assigned_to:
            actions.attempt(PROBLEM, gaps.assign, identity, gap.id, chosen)
            st.rerun()
    for request in gaps.waiting(identity, gap.id):
        _draw_waiting(identity, request)
    if not identity.may(Role.ADMIN):
        st.caption(_("Only administrators can add documents and answers. Assign this question to one of them."))


def _draw_nearest(identity: Identity, gap: Gap) -> None:
    near = [hit for hit in services().analytics.found_passages(identity, gap.latest_id) if hit.title]
    if not near:
        return
    with st.expander(_("Most similar passages"), icon=":material/near_me:"):
        for passage in near[:NEAREST]:
            where = f"{passage.title} · {pages(passage.first_page or 0, passage.last_page or 0)}"
            st.caption(plain(where))
            st.text(" ".join(passage.preview.split()) or "–")


def _draw_waiting(identity: Identity, request: HelpRequest) -> None:
    asker = plain(request.asker) or _("A person who has left")
    with st.expander(_("{asker} asked a person", asker=asker), icon=":material/contact_support:"):
        st.markdown(plain(request.question))
        if request.comment:
            st.markdown(f"“{plain(request.comment)}”")
        with st.form(f"analytics_gap_reply_{request.id}", border=False):
            text = st.text_area(_("Answer"), help=_("Your answer appears in their conversation, under your name."))
            if st.form_submit_button(_("Send"), icon=":material/send:"):
                answer = services().help_requests.answer
                if actions.attempt(PROBLEM, answer, identity, request.id, text):
                    st.rerun()


@dialog(N_("Write an answer"), width="medium", icon=":material/edit_note:")
def _write_answer(identity: Identity, gap: Gap) -> None:
    st.caption(
        _("Your answer becomes a document of the collection. The assistant uses and cites it for everybody who may "
          "read the collection.")
    )  # fmt: skip
    if gap.waiting:
        words = ngettext(
            "{count} person waits for an answer. Your answer appears in their conversation, under your name.",
            "{count} people wait for an answer. Your answer appears in their conversations, under your name.",
            gap.waiting,
        )
        st.info(plain(words), icon=":material/mark_chat_unread:")
    _draw_nearest(identity, gap)
    today = datetime.now(UTC).date()
    with st.form(f"analytics_gap_answer_{gap.id}", border=False):
        question = st.text_input(_("Question"), gap.question)
        answer = st.text_area(_("Answer"), height=220, placeholder=_("The answer in full sentences."))
        with st.container(horizontal=True):
            owner = st.text_input(
                _("Owner"), identity.name or identity.email, help=_("The person who knows whether the answer is right.")
            )
            review = st.date_input(_("Review by"), today + timedelta(days=REVIEW_DAYS), min_value=today)
        sent = st.form_submit_button(_("Add to the documents"), type="primary")
    if sent:
        with st.spinner(_("Adding the answer")):
            actions.finish(
                publish_answer, identity, gap, question=question, answer=answer, owner=owner,
                review_on=review if isinstance(review, date) else None,
            )  # fmt: skip


def publish_answer(
    identity: Identity, gap: Gap, *, question: str, answer: str, owner: str, review_on: date | None
) -> UUID:
    """Store an answer as a document in the gap's collection, mark the gap as solved, and return the document's id."""
    require_admin(identity)
    running = services()
    running.gaps.check_open(identity, gap.id)
    name, content = written_answer(question, answer, owner=owner, review_on=review_on)
    collection = next(c for c in running.documents.collections(identity) if c.id == gap.collection_id)
    result = running.pipeline.process_document(
        file=content, file_name=name, tenant_id=identity.tenant_id, collection=collection, identity=identity,
        options=UploadOptions(generate_metadata=False),
    )  # fmt: skip
    title = " ".join(question.split())
    running.gaps.note_answer(identity, result.document_id, title=title, owner=owner, review_on=review_on)
    _solve(identity, gap, result.document_id, answer)
    return result.document_id


@dialog(N_("Upload a document"), icon=":material/upload_file:")
def _upload_document(identity: Identity, gap: Gap) -> None:
    running = services()
    collection = next(c for c in running.documents.collections(identity) if c.id == gap.collection_id)
    st.caption(
        _("The document is added to {collection}. When it is ready, the question counts as answered, and people who "
          "asked to be told are told in their conversations.", collection=plain(collection.name))
    )  # fmt: skip
    file = st.file_uploader(_("Document"), key=f"analytics_gap_file_{gap.id}", help=plain(formats_in_words()))
    sent = st.button(_("Upload"), type="primary", disabled=file is None, key=f"analytics_gap_upload_now_{gap.id}")
    if sent and file is not None:
        with st.spinner(_("Adding the document")):
            actions.finish(upload_for, identity, gap, collection, file.name, file.getvalue())


def upload_for(identity: Identity, gap: Gap, collection: Collection, file_name: str, content: bytes) -> Document:
    """Upload a document which answers a gap, link the gap to it, and return the document."""
    require_admin(identity)
    running = services()
    running.gaps.check_open(identity, gap.id)
    document = running.documents.upload(
        identity,
        collection,
        file_name,
        content,
        UploadOptions(confirmed_up_to=running.documents.spending_limit(identity)),
    )
    running.gaps.await_document(identity, gap.id, document.id)
    return document


def _draw_awaited(identity: Identity, gap: Gap, document_id: UUID) -> None:
    @st.fragment(run_every=FOLLOWED_EVERY_SECONDS)
    def follow() -> None:
        running = services()
        notified = running.gaps.solve_awaiting(identity.tenant_id)
        if gap.id in notified:
            st.session_state[NOTIFIED] = notified[gap.id]
        try:
            running.gaps.check_open(identity, gap.id)
            document = running.documents.get(identity, document_id)
        except RagError:  # solved, or the document was deleted
            st.rerun()
        _draw_progress(identity, document)

    follow()


def _draw_progress(identity: Identity, document: Document) -> None:
    words, color = status_badge(document.status)
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f":{color}-badge[{plain(words)}] {plain(document.title)}", width="stretch")
        if document.status is DocumentStatus.ESTIMATED and identity.may(Role.ADMIN):
            words = _("Process the file ({estimate})", estimate=money(stored_cost(document.estimate or {}, "total")))
            if st.button(plain(words), icon=":material/play_arrow:", key=f"analytics_gap_process_{document.id}"):
                actions.attempt(PROBLEM, services().documents.confirm, identity, document.id)
                st.rerun()
        if identity.may(Role.ADMIN):
            opened = st.button(_("Open"), icon=":material/open_in_new:", key=f"analytics_gap_open_{document.id}")
            if opened:
                st.switch_page("documents.py", query_params={"document": str(document.id)})
    if document.message:
        st.caption(plain(translated(document.message)))


@dialog(N_("A document answers this question"), icon=":material/description:")
def _choose_document(identity: Identity, gap: Gap) -> None:
    running = services()
    ready = DocumentFilters(statuses=(DocumentStatus.COMPLETED,), collection_id=gap.collection_id)
    titles = document_labels(running.documents.names(identity, ready, limit=MOST_DOCUMENTS))
    chosen = st.selectbox(
        _("Document"), list(titles), index=None, format_func=titles.of, placeholder=_("Choose a document"),
        key=f"analytics_gap_document_{gap.id}",
    )  # fmt: skip
    if (
        st.button(_("This document answers the question"), type="primary", disabled=chosen is None)
        and chosen is not None
    ):
        actions.finish(_solve, identity, gap, chosen, answered_by(titles.of(chosen)))


def _solve(identity: Identity, gap: Gap, document_id: UUID, answer: str) -> None:
    st.session_state[NOTIFIED] = services().gaps.solve(identity, gap.id, document_id, answer)


@dialog(N_("Dismiss"), icon=":material/do_not_disturb_on:")
def _dismiss(identity: Identity, gap: Gap) -> None:
    usual = [_("Not about our company"), _("Somebody else answers such questions"), _("Not to be answered here")]
    reason = st.selectbox(
        _("Reason"), usual, index=None, accept_new_options=True, placeholder=_("Choose or write a reason"),
        key="analytics_gap_reason",
    )  # fmt: skip
    if st.button(_("Dismiss"), type="primary", disabled=not reason, key=f"analytics_gap_dismiss_{gap.id}"):
        actions.finish(services().gaps.dismiss, identity, gap.id, reason or "")
