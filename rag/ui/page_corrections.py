"""Draw a page's corrections, and let an administrator correct its text.

Typed text stays in the session until it is saved or cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from html import escape
from typing import NamedTuple, Protocol

import streamlit as st

from rag.errors import RagError, TextChanged
from rag.ingestion.corrections import (
    CorrectionPlan,
    Corrections,
    fingerprint,
    missing,
    not_applied,
    of_page,
)
from rag.ingestion.passages import EXPORT_TYPE
from rag.language import _
from rag.types import Document, DocumentPage, DocumentStatus, Identity, PageCorrection
from rag.ui.actions import draw_problem
from rag.ui.formats import count, date_time, money, stored_cost, time_zone
from rag.ui.text import plain

#: Words shown around a change.
WORDS_AROUND = 8
PIECES = re.compile(r"\w+|\s+|[^\w\s]")
REMOVED = "background:rgba(220,60,60,.22);text-decoration:line-through"
ADDED = "background:rgba(40,160,80,.26);text-decoration:none"
CHANGES = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:.86rem;line-height:1.6;max-height:320px;overflow:auto"


class OnSaved(Protocol):
    def __call__(self, document: Document, page: int) -> None: ...


class Correcting(NamedTuple):
    """The person who corrects, the corrections, and the callback which receives the new version."""

    identity: Identity
    corrections: Corrections
    on_saved: OnSaved


@dataclass
class Draft:
    """A correction being typed. `seen` is the fingerprint of the page's text when typing started."""

    document: Document
    page: int
    text: str
    seen: str
    problem: str = ""
    #: The current text after a change by somebody else.
    other: str = ""
    plan: CorrectionPlan | None = None


def draw_waiting(
    document: Document, pages: Sequence[DocumentPage], history: Sequence[PageCorrection], correcting: Correcting
) -> None:
    """Draw the corrections which only an earlier version has, with buttons to apply or dismiss each correction."""
    if st.session_state.pop("documents_correction_saved", False):
        st.rerun()  # the panel opens the new version
    texts = {page.number: page.text for page in pages}
    waiting = [(correction, correction.page, True) for correction in not_applied(history, pages)]
    if document.status is DocumentStatus.COMPLETED:
        waiting += [(correction, number, False) for number, correction in missing(history, pages).items()]
    for correction, number, is_other_reading in waiting:
        key = f"documents_waiting_{correction.id}"
        facts = {"page": number, "day": _day(correction), "name": _name(correction)}
        sentence = (
            _(
                "The text of page {page} has changed, so the correction of {day} by {name} was not applied.",
                **facts,
            )
            if is_other_reading
            else _("The correction of page {page} that {name} made on {day} is not in this version.", **facts)
        )
        with st.container(border=True, key=key, gap="xsmall"):
            st.markdown(f":orange[:material/warning:] {plain(sentence)}")
            with st.expander(
                _("What the correction would change"), type="compact", key=f"{key}_text", on_change="rerun"
            ) as box:
                if box.open:
                    _draw_waiting_text(document, number, correction, texts, correcting)
            with st.container(horizontal=True):
                if number in texts:
                    st.button(
                        _("Apply the correction"),
                        key=f"{key}_apply",
                        icon=":material/check:",
                        help=_(
                            "The page gets this text. Only passages that change are sent to the search model again."
                        ),
                        on_click=_apply,
                        args=(document, number, correction, texts[number], correcting),
                    )
                if is_other_reading:
                    st.button(
                        _("Dismiss"),
                        key=f"{key}_dismiss",
                        type="tertiary",
                        on_click=_dismiss,
                        args=(document, correction, correcting),
                    )
    draw_problem("documents_correction_problem", is_once=True)


def _draw_waiting_text(
    document: Document, number: int, correction: PageCorrection, texts: dict[int, str], correcting: Correcting
) -> None:
    text = correction.text_after or ""
    if number not in texts:
        st.caption(_("This version does not have this page. The corrected text was:"))
        st.html(changes_html("", text))
        return
    st.html(changes_html(texts[number], text))
    try:
        plan = correcting.corrections.plan(correcting.identity, document.id, number, text)
    except RagError as error:
        st.caption(plain(error.message))
    else:
        st.caption(cost_words(plan))


def _apply(document: Document, number: int, correction: PageCorrection, now: str, correcting: Correcting) -> None:
    draft = Draft(document, number, correction.text_after or "", fingerprint(now))
    _save_if_free(document, number, draft, correcting)
    if draft.plan is not None:
        key = f"documents_correcting_{document.original_id}_{number}"
        st.session_state.pop(f"{key}_text", None)
        st.session_state[key] = draft
        st.session_state[f"documents_page_{document.id}"] = number
    st.session_state.documents_correction_problem = draft.problem


def _dismiss(document: Document, correction: PageCorrection, correcting: Correcting) -> None:
    try:
        correcting.corrections.dismiss(correcting.identity, document.id, correction.id)
    except RagError as error:
        st.session_state.documents_correction_problem = error.message
    else:
        st.session_state.documents_correction_saved = True  # The document's message is drawn above.


def corrected_words(page: DocumentPage, pages: Sequence[DocumentPage], history: Sequence[PageCorrection]) -> str:
    """Say who corrected a page, and when; "" if nobody did."""
    if not page.is_corrected:
        return ""
    _corrections, correction = of_page(page.number, pages, history)
    if correction is None or correction.text_after != page.text:
        return _("A person corrected the text of this page.")
    return _("{name} corrected the text of this page on {day}.", name=_name(correction), day=_day(correction))


def may_correct(document: Document) -> bool:
    """Return whether the text can be corrected in the current state."""
    is_ready = document.status in (DocumentStatus.COMPLETED, DocumentStatus.PROCESSING)
    return is_ready and document.mime_type != EXPORT_TYPE


def draw_corrector(document: Document, page: DocumentPage, correcting: Correcting) -> bool:
    """Draw a page's buttons, or the editor. Return whether the editor is open."""
    key = _key(document, page)
    draft = st.session_state.get(key)
    if isinstance(draft, Draft):  # also in a superseded version: the typed text is kept
        _draw_editor(document, page, draft, correcting)
        return True
    if not may_correct(document):
        return False
    with st.container(horizontal=True):
        advice = _(
            "Use this if a word was read wrongly, or words are in the wrong order. The file itself does not change."
        )
        begin, back = partial(_begin, document, page, page.text), partial(_begin, document, page, page.as_read)
        st.button(
            _("Correct the text"),
            key=f"{key}_begin",
            icon=":material/edit:",
            type="tertiary",
            help=advice,
            on_click=begin,
        )
        if page.is_corrected:
            st.button(
                _("Return to the text read from the file"),
                key=f"{key}_back",
                icon=":material/undo:",
                type="tertiary",
                on_click=back,
            )
    return False


def draw_history(
    document: Document, page: DocumentPage, pages: Sequence[DocumentPage], history: Sequence[PageCorrection]
) -> None:
    """Draw a page's corrections, latest first, each with an undo."""
    corrections, _holding = of_page(page.number, pages, history)
    if not corrections:
        return
    key = _key(document, page)
    words = _("Corrections of this page: {number}", number=len(corrections))
    with st.expander(words, type="compact", key=f"{key}_history", on_change="rerun") as box:
        if not box.open:
            return
        for correction in corrections:
            with st.container(border=True, gap="xsmall", key=f"{key}_entry_{correction.id}"):
                kind = _("Return to the text read from the file") if correction.text_after is None else _("Corrected")
                st.caption(" · ".join(map(plain, (_day(correction), _name(correction), kind))))
                after = page.as_read if correction.text_after is None else correction.text_after
                st.html(changes_html(correction.text_before, after))
                if may_correct(document):
                    st.button(
                        _("Put back what was there before"),
                        key=f"{key}_undo_{correction.id}",
                        icon=":material/undo:",
                        type="tertiary",
                        on_click=_begin,
                        args=(document, page, correction.text_before),
                    )


def drafts() -> dict[str, Draft]:
    return {str(key): value for key, value in st.session_state.items() if isinstance(value, Draft)}


def _begin(document: Document, page: DocumentPage, text: str) -> None:
    key = _key(document, page)
    st.session_state[key] = Draft(document, page.number, text, fingerprint(page.text))
    st.session_state.pop(f"{key}_text", None)


def _keep(key: str, draft: Draft) -> None:
    """Keep the typed text, even if the panel closes before the next run."""
    draft.text, draft.plan, draft.problem = str(st.session_state[f"{key}_text"]), None, ""


def _draw_editor(document: Document, page: DocumentPage, draft: Draft, correcting: Correcting) -> None:
    key = _key(document, page)
    st.session_state.setdefault(f"{key}_text", draft.text)
    st.text_area(
        _("Text of page {number}", number=page.number),
        key=f"{key}_text",
        height=420,
        help=_("Separate the cells of a table with “ | ”, and write each row on a line of its own."),
        on_change=_keep,
        args=(key, draft),
    )
    with st.container(horizontal=True):
        st.button(
            _("Save") if draft.plan is None else _("Save at this cost"),
            key=f"{key}_save",
            icon=":material/check:",
            type="primary",
            on_click=_press_save,
            args=(document, page, draft, correcting),
        )
        st.button(_("Cancel"), key=f"{key}_cancel", type="tertiary", on_click=give_up, args=(key,))
    if draft.problem:
        st.error(plain(draft.problem), icon=":material/error:")
    if draft.plan is not None:
        st.info(cost_words(draft.plan), icon=":material/payments:")
    now = draft.other or page.text
    if draft.text != now:
        st.caption(_("Changes to the present text of the page:"))
        st.html(changes_html(now, draft.text))


def _press_save(document: Document, page: DocumentPage, draft: Draft, correcting: Correcting) -> None:
    """Save a text. If saving costs money, the first press shows the cost, and the second press saves."""
    if draft.plan is None:
        _save_if_free(document, page.number, draft, correcting)
    else:
        _save(document, page.number, draft, correcting)


def _save_if_free(document: Document, number: int, draft: Draft, correcting: Correcting) -> None:
    draft.problem = ""
    try:
        plan = correcting.corrections.plan(correcting.identity, document.id, number, draft.text)
    except RagError as error:
        draft.problem = error.message
        return
    if stored_cost(plan.estimate, "total") == 0:
        _save(document, number, draft, correcting)
    else:
        draft.plan = plan


def _save(document: Document, number: int, draft: Draft, correcting: Correcting) -> None:
    """Save a draft. If saving fails, the draft stays and shows the error."""
    draft.problem = ""
    try:
        saved = correcting.corrections.save(correcting.identity, document.id, number, draft.text, seen=draft.seen)
    except TextChanged as error:
        draft.problem, draft.plan = error.message, None
        draft.seen, draft.other = str(error.details["fingerprint"]), str(error.details["text"])
    except RagError as error:
        draft.problem = error.message
    else:
        give_up(f"documents_correcting_{document.original_id}_{number}")
        correcting.on_saved(saved, number)
        st.session_state.documents_correction_saved = True


def give_up(key: str) -> None:
    for name in (key, f"{key}_text"):
        st.session_state.pop(name, None)


def _key(document: Document, page: DocumentPage) -> str:
    # The same key for all versions: a draft outlives its version.
    return f"documents_correcting_{document.original_id}_{page.number}"


def cost_words(plan: CorrectionPlan) -> str:
    """Return a correction's cost in Markdown."""
    cost = stored_cost(plan.estimate, "total")
    passages = count(plan.passages, "passage")
    if cost == 0:
        return _("Saving sends {passages} to the search model again, free of charge.", passages=plain(passages))
    return _(
        "Saving sends {passages} to the search model again. Estimated cost: {cost}.",
        passages=plain(passages),
        cost=plain(money(cost)),
    )


def changes_html(before: str, after: str) -> str:
    """Return HTML which highlights the changes between two texts: removed words struck through, added words tinted."""
    old, new = PIECES.findall(before), PIECES.findall(after)
    pieces: list[str] = []
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(2 * WORDS_AROUND)
    for index, group in enumerate(groups):
        if index or group[0][1]:
            pieces.append("… ")
        for act, start, end, first, last in group:
            removed, added = escape("".join(old[start:end])), escape("".join(new[first:last]))
            if act == "equal":
                pieces.append(removed)
                continue
            pieces.append(f'<del style="{REMOVED}">{removed}</del>' if removed else "")
            pieces.append(f'<ins style="{ADDED}">{added}</ins>' if added else "")
        pieces.append(" …" if group[-1][2] < len(old) else "")
    body, label = "".join(pieces) or escape(_("Nothing changes.")), escape(_("What changes"), quote=True)
    return f'<div dir="auto" style="{CHANGES}" tabindex="0" role="region" aria-label="{label}">{body}</div>'


def _name(correction: PageCorrection) -> str:
    return correction.corrected_by_name or _("somebody")


def _day(correction: PageCorrection) -> str:
    return date_time(correction.created_at, time_zone(st.context.timezone))
