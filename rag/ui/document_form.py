"""Draw a document's editable fields, its test box, and the questions answered from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import PurePath
from threading import Event
from typing import Any, NamedTuple
from uuid import UUID

import streamlit as st

from rag.answering.events import CitationsEvent, DoneEvent, TextEvent
from rag.answering.pipeline import Answerer
from rag.errors import RagError
from rag.language import N_, _, day, listed, ngettext
from rag.library.collections import LANGUAGES
from rag.library.metadata import MOST_TAGS, DocumentMetadata, MetadataChanges, Shelves
from rag.profiles import profile_of
from rag.types import AnsweredQuestion, Collection, Document, DocumentName, DocumentStatus, Identity, Question
from rag.ui import lists
from rag.ui.document_library import all_folders
from rag.ui.formats import language_name, pages
from rag.ui.text import answer_markdown, plain
from rag.ui.widgets import document_labels, name_labels

#: Outcome names in a document's list of questions.
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
    metadata: DocumentMetadata,
    owners: Mapping[UUID, str],
    shelves: Shelves,
    *,
    today: date,
) -> None:
    """Draw a form for a document's title, language, folder, tags, owner and dates. They apply to all its versions.

    Unsaved changes stay in the session until they are saved or discarded, even after the panel closes.
    """
    state = st.session_state
    edits: dict[str, Any] = unsaved_edits(document.id)
    problem = st.empty()
    labels = name_labels({**owners, **({document.owner_id: document.owner_name} if document.owner_id else {})})
    languages = name_labels({code: language_name(code) for code in LANGUAGES})
    key = f"{document.id}_{document.updated_at:%s%f}_{state.get('documents_form_turn', 0)}"
    if remark := date_remark(document, today):
        st.warning(remark, icon=":material/event_busy:")

    def note(name: str) -> None:
        value = state[f"documents_form_{name}_{key}"]
        state.pop("documents_form_saved", None)
        if (value or None) == (_stored(document, name) or None):
            edits.pop(name, None)
        else:
            edits[name] = value
        keep_edits(document, edits)

    def field(name: str) -> dict[str, Any]:
        return {"key": f"documents_form_{name}_{key}", "on_change": note, "args": (name,)}

    def at_first(name: str) -> Any:
        return edits.get(name, _stored(document, name))

    def place(options: Sequence[Any], name: str) -> int | None:
        chosen = at_first(name)
        return options.index(chosen) if chosen in options else None

    folders = list(dict.fromkeys([*all_folders(shelves.folders), *filter(None, [document.folder, at_first("folder")])]))
    # Not a Streamlit form: its fields would reach the server only when saved, and Escape would lose them.
    with st.container(key=f"documents_form_{key}"):
        title = st.text_input(_("Title"), at_first("title"), **field("title"))
        with st.grid(2, min_column_width=240, vertical_alignment="bottom"):
            language = st.selectbox(
                _("Language"),
                list(languages),
                index=place(list(languages), "language"),
                format_func=languages.of,
                help=_(
                    "The language in which the words of this document are searched. Reading the file again does not "
                    "change this language."
                ),
                **field("language"),
            )
            owner = st.selectbox(
                _("Owner"),
                list(labels),
                index=place(list(labels), "owner"),
                format_func=labels.of,
                placeholder=_("Nobody"),
                help=_(
                    "This person is reminded on this page when the document has to be reviewed or is no longer valid."
                ),
                **field("owner"),
            )
            folder = st.selectbox(
                _("Folder"),
                folders,
                index=place(folders, "folder"),
                accept_new_options=True,
                placeholder=_("No folder"),
                **field("folder"),
            )
            tags = st.multiselect(
                _("Tags"),
                list(dict.fromkeys([*shelves.tags, *document.tags, *at_first("tags")])),
                at_first("tags"),
                accept_new_options=True,
                max_selections=MOST_TAGS,
                **field("tags"),
            )
        with st.grid(3, min_column_width=150):
            valid_from = st.date_input(
                _("Valid from"),
                at_first("valid_from"),
                help=_(
                    "The first day on which this version is valid. Until then, answers come from the previous version."
                ),
                **field("valid_from"),
            )
            valid_until = st.date_input(
                _("Valid until"),
                at_first("valid_until"),
                help=_(
                    "The last day on which this version is valid. Later answers still use this version and say "
                    "that it is no longer valid."
                ),
                **field("valid_until"),
            )
            review_on = st.date_input(_("Review on"), at_first("review_on"), **field("review_on"))
        # The same height with and without a remark: the button must not move away from a click which also ends typing.
        with st.container(horizontal=True, vertical_alignment="center"):
            is_saved = st.button(
                _("Save"), icon=":material/check:", type="primary", key=f"documents_form_save_{document.id}"
            )
            if edits:
                st.button(
                    _("Discard the changes"),
                    key=f"documents_form_discard_{document.id}",
                    type="tertiary",
                    on_click=discard_edits,
                    args=(document.id,),
                )
                st.markdown(f":orange[:material/edit: {_('Not saved yet')}]", width="content")
            elif state.get("documents_form_saved") == document.id:
                saved = _(
                    "Saved. “Valid from” and “Valid until” apply to this version, and everything else applies to all "
                    "versions."
                )
                st.markdown(f":green[:material/check_circle: {saved}]", width="content")
    if is_saved:
        changes = MetadataChanges(
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
            metadata.change(identity, [document.id], changes)
        except RagError as error:
            problem.error(plain(error.message), icon=":material/error:")
        else:
            discard_edits(document.id)
            state.documents_form_saved = document.id
            st.rerun()


class UnsavedEdits(NamedTuple):
    """A person's unsaved changes to a document."""

    title: str
    edits: dict[str, Any]


def all_unsaved_edits() -> dict[UUID, UnsavedEdits]:
    """Return this session's unsaved changes, by document."""
    edits: dict[UUID, UnsavedEdits] = st.session_state.setdefault("documents_edits", {})
    return edits


def unsaved_edits(document_id: UUID) -> dict[str, Any]:
    unsaved = all_unsaved_edits().get(document_id)
    return dict(unsaved.edits) if unsaved else {}


def keep_edits(document: Document, edits: dict[str, Any]) -> None:
    """Keep a document's changes until they are saved or discarded."""
    if edits:
        all_unsaved_edits()[document.id] = UnsavedEdits(document.title, dict(edits))
    else:
        all_unsaved_edits().pop(document.id, None)


def discard_edits(document_id: UUID) -> None:
    """Discard a document's changes; its fields show the stored values again."""
    all_unsaved_edits().pop(document_id, None)
    st.session_state.documents_form_turn = st.session_state.get("documents_form_turn", 0) + 1


def _stored(document: Document, field: str) -> Any:
    return {
        "title": document.title,
        "language": document.language,
        "owner": document.owner_id,
        "folder": document.folder,
        "tags": list(document.tags),
        "valid_from": document.valid_from,
        "valid_until": document.valid_until,
        "review_on": document.review_on,
    }[field]


def _day(value: Any) -> date | None:
    return value if isinstance(value, date) else None


def date_remark(document: Document, today: date) -> str:
    """Return a sentence if the document is not valid today or is due for review; else ""."""
    if document.valid_until is not None and document.valid_until < today:
        return _("No longer valid since {day}. Answers from this document say so.", day=day(document.valid_until))
    if document.valid_from is not None and document.valid_from > today:
        return _("Not valid before {day}. Answers from this document say so.", day=day(document.valid_from))
    if document.review_on is not None and document.review_on <= today:
        return _("To be reviewed since {day}.", day=day(document.review_on))
    return ""


def draw_ask(identity: Identity, document: Document, collection: Collection, answerer: Answerer) -> None:
    """Draw a box for test questions, which are answered from this document alone."""
    if document.status is not DocumentStatus.COMPLETED:
        st.caption(_("You can ask about this document as soon as it is ready."))
        return
    st.caption(
        _(
            "Answers come from this document only. Each question here counts as one of your questions and costs the "
            "same as in the chat."
        )
    )
    with (
        st.form(f"documents_ask_form_{document.id}", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        text = st.text_input(
            _("Ask this document"), key=f"documents_ask_{document.id}", placeholder=_("What would an employee ask?")
        )
        is_submitted = st.form_submit_button(_("Ask"), icon=":material/send:", type="primary")
    if not is_submitted or not text.strip():
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
                    plain(" ".join(event.notices)) or _("This document does not answer the question."),
                    icon=":material/search_off:",
                )
    except RagError as error:
        place.error(plain(error.message), icon=":material/error:")
        return
    if ending is None:
        return
    if answer:
        place.markdown(answer_markdown(answer, [c.number for c in ending.citations]))
    if ending.citations:
        st.caption(_("The most similar passages") if ending.kind == "nearest" else _("Passages that the answer uses"))
    for citation in ending.citations:
        with st.container(border=True, gap="xxsmall"):
            page = plain(pages(citation.first_page, citation.last_page))
            st.markdown(f"**[{citation.number}]** {page} :gray[{plain(citation.section)}]")
            st.caption(plain(citation.passage[:400]))


def draw_questions(questions: Sequence[AnsweredQuestion]) -> None:
    if not questions:
        st.caption(_("No question has been answered from this document yet."))
        return
    lists.draw(
        {
            _("Question"): lists.texts((question.question for question in questions), 420),
            _("Answer"): [_(OUTCOMES.get(question.outcome, question.outcome)) for question in questions],
            _("Asked"): lists.times(question.created_at for question in questions),
        },
        key="documents_questions",
        alt=_("Questions that were answered from this document, the latest first"),
    )


OnFile = Callable[[Document, str, bytes], None]


def draw_replacing(document: Document, *, largest_mb: int, on_file: OnFile) -> None:
    """Draw a box to upload a document's next version; the file may have any name."""
    upload_number = st.session_state.setdefault("documents_replace_turn", 0)
    file = st.file_uploader(
        _("New file for {title}", title=plain(document.title)),
        max_upload_size=largest_mb,
        key=f"documents_replace_{document.id}_{upload_number}",
        help=_(
            "The new file is read, and you see which pages differ. Until you decide, answers come from the "
            "present version."
        ),
    )
    if file is not None:
        st.session_state.documents_replace_turn = upload_number + 1
        on_file(document, file.name, file.getvalue())
        st.rerun()


OnFiles = Callable[[list[tuple[UUID, str, bytes]]], None]


def comparable_name(name: str) -> str:
    """Reduce a file name or title for comparison: remove extension, digits, signs and single letters."""
    return "".join(re.findall(r"[^\W\d_]{2,}", PurePath(name).stem.casefold()))


def pair(files: Sequence[str], documents: Sequence[DocumentName]) -> list[UUID | None]:
    """Match each file with the document which it probably replaces, or with `None`. No document is matched twice.

    Files are matched by file name, then by `comparable_name`. If several documents match, none is chosen.
    """
    matches: list[UUID | None] = [None] * len(files)
    remaining = list(documents)
    for is_match in (
        lambda name, document: name.casefold() == document.file_name.casefold(),
        lambda name, document: (
            comparable_name(name) in {comparable_name(document.file_name), comparable_name(f"{document.title}.")}
        ),
    ):
        for place, name in enumerate(files):
            fitting = [document for document in remaining if is_match(name, document)]
            if matches[place] is None and len(fitting) == 1:
                matches[place] = fitting[0].id
                remaining.remove(fitting[0])
    return matches


def draw_replacing_several(documents: Sequence[DocumentName], *, largest_mb: int, on_files: OnFiles) -> None:
    """Draw a box to upload new versions of several documents, and let the person match files and documents.

    `on_files` is called with a document's id, the file's name and its bytes, for each file which the person keeps.
    """
    upload_number = st.session_state.setdefault("documents_replace_turn", 0)
    files = st.file_uploader(
        ngettext("New file for {count} document", "New files for {count} documents", len(documents)),
        accept_multiple_files=True,
        max_upload_size=largest_mb,
        key=f"documents_replace_several_{upload_number}",
        help=_(
            "The new file is read, and you see which pages differ. Until you decide, answers come from the "
            "present version."
        ),
    )
    labels = document_labels(documents)
    matches = pair([file.name for file in files], documents)
    chosen: list[UUID | None] = []
    for place, file in enumerate(files):
        options = list(labels)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(file.name)}** :material/arrow_forward:", width=260)
            chosen.append(
                st.selectbox(
                    _("Replaces"),
                    options,
                    index=options.index(match) if (match := matches[place]) is not None else None,
                    format_func=labels.of,
                    placeholder=_("No document: this file is left out"),
                    label_visibility="collapsed",
                    key=f"documents_replace_{file.file_id}",
                )
            )
    targets = [document_id for document_id in chosen if document_id is not None]
    twice = sorted({labels.of(document_id) for document_id in targets if targets.count(document_id) > 1})
    if twice:
        st.error(
            _("Two files would replace {name}. Remove one of them.", name=plain(listed(twice))), icon=":material/error:"
        )
    elif targets and (rest := [labels.of(document.id) for document in documents if document.id not in targets]):
        st.caption(_("Unchanged: {names}", names=plain(listed(rest))))
    if st.button(
        ngettext("Show what changes in {count} document", "Show what changes in {count} documents", len(targets))
        if targets
        else _("Show what changes"),
        key="documents_replace_several_show",
        type="primary",
        icon=":material/difference:",
        disabled=not targets or bool(twice),
    ):
        st.session_state.documents_replace_turn = upload_number + 1
        on_files([(i, f.name, f.getvalue()) for i, f in zip(chosen, files, strict=True) if i is not None])
        st.rerun()
