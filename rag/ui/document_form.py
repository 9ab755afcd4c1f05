"""Draw what people write about a document, its test box, and the questions that were answered from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import PurePath
from threading import Event
from typing import Any
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.answering.events import CitationsEvent, DoneEvent, TextEvent
from rag.answering.pipeline import Answerer
from rag.errors import RagError
from rag.ingestion.collections import LANGUAGES
from rag.ingestion.particulars import MOST_TAGS, DocumentParticulars, Particulars, Shelves
from rag.language import N_, _, day, listed, ngettext
from rag.profiles import profile_of
from rag.types import AnsweredQuestion, Collection, Document, DocumentName, DocumentStatus, Identity, Question
from rag.ui.document_library import all_folders
from rag.ui.formats import language_name, pages
from rag.ui.text import answer_markdown, plain
from rag.ui.widgets import document_labels, name_labels, time_column

#: What an answer is called in the list of a document's questions.
OUTCOMES: Mapping[str, str] = {
    "answered": N_("Answered"),
    "perhaps": N_("Answered in part"),
    "no_context": N_("Not answered"),
    "failed": N_("Failed"),
    "stopped": N_("Stopped"),
    "refused": N_("Refused"),
}


def draw_form(
    identity: Identity,
    document: Document,
    particulars: DocumentParticulars,
    owners: Mapping[UUID, str],
    shelves: Shelves,
    *,
    today: date,
) -> None:
    """Draw title, language, folder, tags, owner and dates of a document to change, for all its versions."""
    problem, saved = st.empty(), st.empty()
    labels = name_labels({**owners, **({document.owner_id: document.owner_name} if document.owner_id else {})})
    languages = name_labels({code: language_name(code) for code in LANGUAGES})
    folders = list(dict.fromkeys([*all_folders(shelves.folders), *([document.folder] if document.folder else [])]))
    key = f"{document.id}_{document.updated_at:%s%f}"
    if remark := date_remark(document, today):
        st.warning(remark, icon=":material/event_busy:")
    with st.form(f"documents_form_{key}", border=False):
        title = st.text_input(_("Title"), document.title, key=f"documents_form_title_{key}", max_chars=300)
        with st.grid(2, min_column_width=240, vertical_alignment="bottom"):
            language = st.selectbox(
                _("Language"),
                list(languages),
                index=list(languages).index(document.language) if document.language in languages else None,
                format_func=languages.of,
                key=f"documents_form_language_{key}",
                help=_("The language its words are searched in. Reading the file again does not change it."),
            )
            owner = st.selectbox(
                _("Owner"),
                list(labels),
                index=list(labels).index(document.owner_id) if document.owner_id else None,
                format_func=labels.of,
                placeholder=_("Nobody"),
                key=f"documents_form_owner_{key}",
                help=_("Is reminded on this page when the document is to be reviewed or no longer valid."),
            )
            folder = st.selectbox(
                _("Folder"),
                folders,
                index=folders.index(document.folder) if document.folder else None,
                accept_new_options=True,
                placeholder=_("No folder"),
                key=f"documents_form_folder_{key}",
            )
            tags = st.multiselect(
                _("Tags"),
                list(dict.fromkeys([*shelves.tags, *document.tags])),
                document.tags,
                accept_new_options=True,
                max_selections=MOST_TAGS,
                key=f"documents_form_tags_{key}",
            )
        with st.grid(3, min_column_width=150):
            valid_from = st.date_input(_("Valid from"), document.valid_from, key=f"documents_form_from_{key}")
            valid_until = st.date_input(
                _("Valid until"),
                document.valid_until,
                key=f"documents_form_until_{key}",
                help=_("Its last day. After that it goes on answering, and each answer from it says so."),
            )
            review_on = st.date_input(_("Review on"), document.review_on, key=f"documents_form_review_{key}")
        if st.form_submit_button(_("Save"), icon=":material/check:", type="primary"):
            changes = Particulars(
                title=title if title != document.title else None,
                language=language if language and language != document.language else None,
                folder=folder or "",
                tags=tags,
                with_owner=True,
                owner_id=owner,
                with_dates=True,
                valid_from=_day(valid_from),
                valid_until=_day(valid_until),
                review_on=_day(review_on),
            )
            try:
                particulars.change(identity, [document.id], changes)
            except RagError as error:
                problem.error(plain(error.message), icon=":material/error:")
            else:
                saved.success(_("Saved, for all versions of this document."), icon=":material/check_circle:")
                st.rerun()


def _day(value: Any) -> date | None:
    return value if isinstance(value, date) else None


def date_remark(document: Document, today: date) -> str:
    """Return what the document's dates ask for; nothing when all is well."""
    if document.valid_until is not None and document.valid_until < today:
        return _("No longer valid since {day}. Answers from it say so.", day=day(document.valid_until))
    if document.valid_from is not None and document.valid_from > today:
        return _("Valid from {day} only. Answers from it say so.", day=day(document.valid_from))
    if document.review_on is not None and document.review_on <= today:
        return _("To be reviewed since {day}.", day=day(document.review_on))
    return ""


def draw_ask(identity: Identity, document: Document, collection: Collection, answerer: Answerer) -> None:
    """Draw a box that answers from this document alone, to try what it is good for."""
    if document.status is not DocumentStatus.COMPLETED:
        st.caption(_("It can be asked as soon as it is ready."))
        return
    st.caption(_("Answers from this document only. It counts as a question of yours, with its cost."))
    with (
        st.form(f"documents_ask_form_{document.id}", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        text = st.text_input(
            _("Ask this document"), key=f"documents_ask_{document.id}", placeholder=_("What would an employee ask?")
        )
        is_asked = st.form_submit_button(_("Ask"), icon=":material/send:", type="primary")
    if not is_asked or not text.strip():
        return
    question = Question(text=text.strip(), identity=identity, collection=collection, document_ids=(document.id,))
    place, answer = st.empty(), ""
    place.caption(_(":shimmer[Looking in this document]"))
    ending: CitationsEvent | None = None
    try:
        for event in answerer.answer(question, profile=profile_of(collection), cancel=Event()):
            if isinstance(event, TextEvent):
                answer = event.text if event.starts_over else answer + event.text
                place.markdown(answer_markdown(answer))
            elif isinstance(event, CitationsEvent):
                ending = event
            elif isinstance(event, DoneEvent) and not answer:
                place.info(
                    plain(" ".join(event.notices)) or _("This document does not say it."), icon=":material/search_off:"
                )
    except RagError as error:
        place.error(plain(error.message), icon=":material/error:")
        return
    if ending is None:
        return
    if answer:
        place.markdown(answer_markdown(answer, [c.number for c in ending.citations]))
    if ending.citations:
        st.caption(_("The passages that came nearest") if ending.kind == "nearest" else _("Passages it answers from"))
    for citation in ending.citations:
        with st.container(border=True, gap="xxsmall"):
            page = plain(pages(citation.first_page, citation.last_page))
            st.markdown(f"**[{citation.number}]** {page} :gray[{plain(citation.section)}]")
            st.caption(plain(citation.passage[:400]))


def draw_questions(asked: Sequence[AnsweredQuestion]) -> None:
    """Draw the questions that were answered from a document."""
    if not asked:
        st.caption(_("No question has been answered from this document yet."))
        return
    st.dataframe(
        pd.DataFrame(
            {
                _("Question"): [question.question for question in asked],
                _("Answer"): [_(OUTCOMES.get(question.outcome, question.outcome)) for question in asked],
                _("Asked"): [question.created_at for question in asked],
            }
        ),
        key="documents_questions",
        hide_index=True,
        column_config={
            _("Question"): st.column_config.TextColumn(width=420),
            _("Asked"): time_column(),
        },
        alt=_("Questions that were answered from this document, the latest first"),
    )


OnFile = Callable[[Document, str, bytes], None]


def draw_replacing(document: Document, *, largest_mb: int, on_file: OnFile) -> None:
    """Draw a box that takes the file for the next version of a document, whatever its name."""
    turn = st.session_state.setdefault("documents_replace_turn", 0)
    file = st.file_uploader(
        _("New file for {title}", title=plain(document.title)),
        max_upload_size=largest_mb,
        key=f"documents_replace_{document.id}_{turn}",
        help=_("It is read, and you see which pages differ. The present version answers until you decide."),
    )
    if file is not None:
        st.session_state.documents_replace_turn = turn + 1
        on_file(document, file.name, file.getvalue())
        st.rerun()


OnFiles = Callable[[list[tuple[UUID, str, bytes]]], None]


def letters_of(name: str) -> str:
    """Return what names of files and titles are compared by: no ending, no digits, no signs, no single letters."""
    return "".join(re.findall(r"[^\W\d_]{2,}", PurePath(name).stem.casefold()))


def pair(files: Sequence[str], documents: Sequence[DocumentName]) -> list[UUID | None]:
    """Return for each file the document it is meant for: that of its name, else of like letters; each document once."""
    found: list[UUID | None] = [None] * len(files)
    left = list(documents)
    for is_meant in (
        lambda name, document: name.casefold() == document.file_name.casefold(),
        lambda name, document: letters_of(name) in {letters_of(document.file_name), letters_of(f"{document.title}.")},
    ):
        for place, name in enumerate(files):
            fitting = [document for document in left if is_meant(name, document)]
            if found[place] is None and len(fitting) == 1:
                found[place] = fitting[0].id
                left.remove(fitting[0])
    return found


def draw_replacing_several(documents: Sequence[DocumentName], *, largest_mb: int, on_files: OnFiles) -> None:
    """Draw a box that takes new files for several documents, and which file is meant for which of them.

    `on_files` is called with a document's id, the file's name and its bytes for each that is not left out.
    """
    turn = st.session_state.setdefault("documents_replace_turn", 0)
    files = st.file_uploader(
        ngettext("New file for {count} document", "New files for {count} documents", len(documents)),
        accept_multiple_files=True,
        max_upload_size=largest_mb,
        key=f"documents_replace_several_{turn}",
        help=_("It is read, and you see which pages differ. The present version answers until you decide."),
    )
    labels = document_labels(documents)
    meant = pair([file.name for file in files], documents)
    chosen: list[UUID | None] = []
    for place, file in enumerate(files):
        options = list(labels)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(file.name)}** :material/arrow_forward:", width=260)
            chosen.append(
                st.selectbox(
                    _("Replaces"),
                    options,
                    index=options.index(found) if (found := meant[place]) is not None else None,
                    format_func=labels.of,
                    placeholder=_("Nothing: this file is left out"),
                    label_visibility="collapsed",
                    key=f"documents_replace_{file.file_id}",
                )
            )
    taken = [document_id for document_id in chosen if document_id is not None]
    twice = sorted({labels.of(document_id) for document_id in taken if taken.count(document_id) > 1})
    if twice:
        st.error(
            _("Two files are meant for {name}. Leave one out.", name=plain(listed(twice))), icon=":material/error:"
        )
    elif taken and (rest := [labels.of(document.id) for document in documents if document.id not in taken]):
        st.caption(_("As they are: {names}", names=plain(listed(rest))))
    if st.button(
        ngettext("Show what changes in {count} document", "Show what changes in {count} documents", len(taken))
        if taken
        else _("Show what changes"),
        key="documents_replace_several_show",
        type="primary",
        icon=":material/difference:",
        disabled=not taken or bool(twice),
    ):
        st.session_state.documents_replace_turn = turn + 1
        on_files([(i, f.name, f.getvalue()) for i, f in zip(chosen, files, strict=True) if i is not None])
        st.rerun()
