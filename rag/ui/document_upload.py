"""Draw documents on their way into the library: chosen, refused, estimated, processed, ready."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from rag import language
from rag.errors import InvalidInput
from rag.ingestion.loaders import ENDINGS, ExtractionLimits, formats_in_words
from rag.ingestion.sources.folder import files_in_archive
from rag.language import N_, _
from rag.profile import Profile
from rag.profiles import profile_of
from rag.types import ChunkingMethod, Collection, Document, DocumentFigures, DocumentStatus, PdfType, Step
from rag.ui.document_details import cost_line, page_ranges
from rag.ui.document_library import draw_cost_table
from rag.ui.formats import (
    METHOD_HELP,
    METHODS,
    PDF_TYPE_HELP,
    PDF_TYPES,
    count,
    duration,
    field_label,
    file_size,
    known_cost,
    money,
    status_badge,
    thousands,
)
from rag.ui.text import plain
from rag.ui.widgets import choose_collection, words_of


class UploadOptions(NamedTuple):
    """Options chosen for a file before its upload."""

    collection: Collection
    chunking_method: ChunkingMethod
    generate_metadata: bool
    pdf_type: PdfType = "auto"
    #: What searches may be narrowed by.
    metadata: Mapping[str, str] = MappingProxyType({})


class Refused(NamedTuple):
    """A file that was not accepted. Its content is kept only while its password is asked for."""

    key: str
    name: str
    size_bytes: int
    sentence: str
    content: bytes | None
    options: UploadOptions


#: Takes one file: its name, bytes, options and a key that is its own.
Take = Callable[[str, bytes, UploadOptions, str], None]


def draw_upload(
    collections: Sequence[Collection],
    limits: ExtractionLimits,
    *,
    default: Collection | None,
    on_take: Take,
    on_refuse: Callable[[Refused], None],
) -> None:
    """Draw the card for new documents. Hand the files over in this run, then empty the uploader.

    `default` is the collection that is chosen beforehand.
    """
    with st.container(border=True):
        st.subheader(_("Add documents"), anchor=False)
        if not collections:
            st.info(_("There is no collection to add documents to yet."), icon=":material/folder_off:")
            return
        beforehand = next((c for c in collections if default is not None and c.id == default.id), collections[0])
        options = _options(collections, beforehand)
        files = st.file_uploader(
            _("Choose or drop as many files as you like"),
            type=[*ENDINGS, ".zip"],  # with their points: "text" alone is Streamlit's word for every kind of text
            accept_multiple_files=True,
            max_upload_size=limits.maximum_bytes // 2**20,
            key=f"documents_upload_{st.session_state.documents_upload_number}",
            help=_(
                "Choose {formats_in_words}, or a ZIP archive of them. Each is checked and read at once. Nothing is "
                "spent before you confirm its estimate.",
                formats_in_words=plain(formats_in_words()),
            ),
        )
        if files:
            _hand_over(files, options, limits, on_take, on_refuse)


def _options(collections: Sequence[Collection], collection: Collection) -> UploadOptions:
    """Draw the options of the upload; the collection's own settings are chosen beforehand."""
    with st.grid(3, min_column_width=220, vertical_alignment="bottom", gap="medium"):
        if len(collections) > 1:
            chosen = choose_collection(
                {c.id: c.name for c in collections}, key="documents_collection", chosen=collection.id
            )
            collection = next((c for c in collections if c.id == chosen), collection)
        profile = profile_of(collection)
        methods = list(METHODS)
        method = st.selectbox(
            _("Chunking"),
            methods,
            index=methods.index(profile.chunking.chunking_method),
            format_func=words_of(METHODS),
            # Part of the key: another collection begins with its own way.
            key=f"documents_method_{collection.id}_{profile.chunking.chunking_method}",
        )
        pdf_type = st.segmented_control(
            _("Kind of PDFs"),
            list(PDF_TYPES),
            default=profile.reading.pdf_type,
            required=True,
            format_func=words_of(PDF_TYPES),
            key=f"documents_pdf_type_{collection.id}_{profile.reading.pdf_type}",
            help=_(PDF_TYPE_HELP),
        )
    st.caption(f"{_(METHODS[method])}: {_after_colon(_(METHOD_HELP[method]))}")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        metadata = draw_fields(profile, f"documents_say_{collection.id}")
    wants_metadata = st.toggle(
        _("Generate metadata"),
        value=True,
        key="documents_metadata",
        help=_(
            "Summary, topics and sample questions per document, written by the language model. Its cost is part of "
            "the estimate."
        ),
    )
    return UploadOptions(collection, method, wants_metadata, pdf_type or profile.reading.pdf_type, metadata)


def _after_colon(text: str) -> str:
    """Return a sentence as it goes on after a colon: in English with a small letter."""
    return text[0].lower() + text[1:] if language.current() == language.ENGLISH else text


def _hand_over(
    files: Sequence[UploadedFile],
    options: UploadOptions,
    limits: ExtractionLimits,
    on_take: Take,
    on_refuse: Callable[[Refused], None],
) -> None:
    """Hand over every file, then give the uploader a new key: that frees the memory its files took."""
    handled: set[str] = st.session_state.documents_handled
    bar = st.progress(0.0)
    for position, file in enumerate(files):
        # A run can be cut short by the next click and begin again: no file is handed over twice.
        if file.file_id in handled:
            continue
        bar.progress(
            position / len(files),
            text=_(
                "Checking {name} ({position} of {files})",
                name=plain(file.name),
                position=thousands(position + 1),
                files=len(files),
            ),
        )
        if file.name.lower().endswith(".zip"):
            for refused in _from_archive(file, options, limits, on_take):
                on_refuse(refused)
        else:
            on_take(file.name, file.getvalue(), options, file.file_id)
        handled.add(file.file_id)
    st.session_state.documents_upload_number += 1
    st.rerun()


def _from_archive(
    file: UploadedFile, options: UploadOptions, limits: ExtractionLimits, on_take: Take
) -> Iterator[Refused]:
    """Hand over the readable files of an archive; yield those that may not be unpacked."""
    handled: set[str] = st.session_state.documents_handled
    content = file.getvalue()
    found_any = False
    try:
        for found in files_in_archive(io.BytesIO(content), limits):
            found_any = True
            key = f"{file.file_id}/{found.place}"
            if key in handled:
                continue
            if found.refusal:
                yield Refused(key, found.place, 0, found.refusal, None, options)
            else:
                on_take(found.name, found.content, options, key)
            handled.add(key)
    except InvalidInput as exc:
        yield Refused(file.file_id, file.name, file.size, exc.message, None, options)
        return
    if not found_any:
        sentence = _(
            "There is no file in this archive that can be read. It should hold {formats_in_words}.",
            formats_in_words=formats_in_words(),
        )
        yield Refused(file.file_id, file.name, file.size, sentence, None, options)


STEP_NAMES = {
    Step.EXTRACT: N_("Read"),
    Step.RECOGNISE: N_("Recognise text"),
    Step.CHUNK: N_("Chunk"),
    Step.EMBED: N_("Embed"),
    Step.TAG: N_("Metadata"),
    Step.PUBLISH: N_("Publish"),
}


def draw_refused(refused: Refused, *, on_dismiss: Callable[[str], None], on_unlock: Callable[[Refused], None]) -> None:
    """Say why a file was refused; where a password is missing, ask for it."""
    with st.container(border=True, key=f"documents_refused_{refused.key}", gap="xsmall"):
        icon = ":orange[:material/lock:]" if refused.content else ":red[:material/error:]"
        _draw_head(
            f"{icon} **{plain(refused.name)}** :gray[{file_size(refused.size_bytes)}]",
            f"documents_dismiss_{refused.key}",
            on_dismiss,
            refused.key,
        )
        st.markdown(plain(refused.sentence))
        if refused.content is None:
            return
        with (
            st.form(f"documents_unlock_{refused.key}", border=False),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            st.text_input(
                _("Password of this PDF"),
                type="password",
                autocomplete="off",
                key=f"documents_password_{refused.key}",
                width=280,
            )
            st.form_submit_button(_("Unlock"), icon=":material/lock_open:", on_click=on_unlock, args=(refused,))


def draw_estimate(
    document: Document,
    *,
    is_only: bool,
    on_confirm: Callable[[Document], None],
    on_discard: Callable[[Document], None],
) -> None:
    """Draw what a document holds and what processing it would cost, to confirm or discard."""
    estimate = document.estimate or {}
    with st.container(border=True, key=f"documents_estimate_{document.id}", gap="xsmall"):
        st.markdown(f"**{plain(document.title)}** :gray[{plain(document.file_name)}]")
        facts = (
            count(estimate.get("pages", document.page_count), "page"),
            count(estimate.get("characters", document.character_count), "character"),
            _("about {get}", get=count(estimate.get("tokens", 0), "token")),
            _("about {get}", get=count(estimate.get("chunks", 0), "chunk")),
        )
        st.markdown(" · ".join(facts))
        st.markdown(f":gray[{cost_line(estimate)}]")
        draw_remarks(document)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                _("Confirm ({estimate})", estimate=plain(money(known_cost(estimate, "total")))),
                key=f"documents_confirm_{document.id}",
                icon=":material/check:",
                type="primary" if is_only else "secondary",
                on_click=on_confirm,
                args=(document,),
            )
            st.button(
                _("Discard"),
                key=f"documents_discard_{document.id}",
                icon=":material/close:",
                type="tertiary",
                on_click=on_discard,
                args=(document,),
            )


def draw_progress(document: Document) -> None:
    """Draw the progress of the current step, and the steps that are done."""
    has_recognition = document.step is Step.RECOGNISE or document.ocr_pages
    steps = [
        *([Step.RECOGNISE] if has_recognition else []),
        Step.CHUNK,
        Step.EMBED,
        *([Step.TAG] if document.generate_metadata else []),
        Step.PUBLISH,
    ]
    with st.container(key=f"documents_progress_{document.id}", gap="xsmall"):
        part = document.steps_done / document.steps_total if document.steps_total else 0.0
        st.progress(min(part, 1.0), text=f"**{plain(document.title)}** · {plain(step_words(document))}")
        if document.status is DocumentStatus.PROCESSING and document.step in steps:
            at = steps.index(document.step)
            colors = ["green" if i < at else "blue" if i == at else "gray" for i in range(len(steps))]
            marks = [f":{color}-badge[{_(STEP_NAMES[step])}]" for color, step in zip(colors, steps, strict=True)]
            st.markdown(" ".join(marks))
        if document.message:
            st.caption(plain(document.message))


def draw_finished(document: Document, *, on_dismiss: Callable[[str], None]) -> None:
    """Draw a document that became ready while this page was open, with its cost."""
    with st.container(border=True, key=f"documents_finished_{document.id}", gap="xsmall"):
        _draw_head(
            _(":green[:material/check_circle:] **{title}** is ready", title=plain(document.title)),
            f"documents_done_{document.id}",
            on_dismiss,
            str(document.id),
        )
        facts = [count(document.page_count, "page"), count(document.chunk_count, "chunk")]
        st.markdown(" · ".join([*facts, f"processed in {plain(duration(document.processing_ms))}"]))
        st.markdown(f":gray[{cost_line(document.costs)}]")
        draw_remarks(document)


def draw_remarks(document: Document) -> None:
    """Draw a document's message, else its pages without text."""
    if document.message:
        st.caption(plain(document.message))
    elif document.empty_pages and document.status is not DocumentStatus.FAILED:
        word = "page" if len(document.empty_pages) == 1 else "pages"
        st.caption(
            _(
                ":orange[:material/image:] No text on {word} {empty_pages}",
                word=word,
                empty_pages=plain(page_ranges(document.empty_pages)),
            )
        )


def step_words(document: Document) -> str:
    """Describe the current step: `Reading page 12 of 105`."""
    done, total = document.steps_done, document.steps_total
    if document.is_waiting:
        return _("Waiting for the provider")
    if not total:
        return _("Waiting for its turn")
    return {
        Step.EXTRACT: f"Reading page {min(done + 1, total):,} of {total:,}",
        Step.RECOGNISE: f"Recognising the text of page {min(done + 1, total):,} of {total:,}",
        Step.CHUNK: "Splitting into chunks",
        Step.EMBED: f"Embedding chunk {min(done + 1, total):,} of {total:,}",
        Step.TAG: "Writing metadata",
        Step.PUBLISH: "Making it searchable",
    }[document.step]


def _draw_head(words: str, key: str, on_dismiss: Callable[[str], None], dismissed: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(words, width="stretch")
        st.button(
            _("Dismiss"), key=key, icon=":material/close:", type="tertiary", on_click=on_dismiss, args=(dismissed,)
        )


OnOne = Callable[[Document], None]


def draw_estimates(
    estimated: Sequence[Document],
    figures: Sequence[DocumentFigures],
    *,
    on_confirm: OnOne,
    on_confirm_all: Callable[[datetime], None],
    on_discard: OnOne,
) -> None:
    """Draw the documents that wait longest for confirmation, and one button for all of `figures`."""
    waiting = [f for f in figures if f.status is DocumentStatus.ESTIMATED]
    number = max(sum(f.documents for f in waiting), len(estimated))
    total = money(sum((f.estimated for f in waiting), Decimal(0)))
    words = _("{total} + unpriced", total=total) if any(f.unpriced_estimates for f in waiting) else total
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(_("Confirm before anything is spent"), anchor=False, width="content")
        if number > 1 and waiting:
            st.button(
                _("Confirm all {number} ({words})", number=number, words=plain(words)),
                key="documents_confirm_all",
                icon=":material/done_all:",
                type="primary",
                on_click=on_confirm_all,
                # What was estimated after this total was made is not confirmed with it.
                args=(max(f.updated_at for f in waiting),),
            )
    for document in estimated:
        draw_estimate(document, is_only=number == 1, on_confirm=on_confirm, on_discard=on_discard)
    draw_rest(number - len(estimated), "waits", "wait", DocumentStatus.ESTIMATED)


def draw_rest(number: int, one: str, many: str, status: DocumentStatus) -> None:
    """Say how many more documents there are than cards, and where to find them."""
    if number > 0:
        verb = one if number == 1 else many
        st.caption(
            _(
                "{number} {verb}: choose {statuses} in the library to see them.",
                number=count(number, "more document"),
                verb=verb,
                statuses=status_badge(status)[0],
            )
        )


def draw_many_finished(ready: Sequence[Document], number: int, *, on_dismiss: Callable[[], None]) -> None:
    """Draw one card for the `number` that became ready while this page was open, the latest as a table."""
    with st.container(border=True, key="documents_finished", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(
                _(":green[:material/check_circle:] **{number} documents** are ready", number=thousands(number)),
                width="stretch",
            )
            st.button(
                _("Dismiss"),
                key="documents_done_all",
                icon=":material/close:",
                type="tertiary",
                on_click=on_dismiss,
            )
        draw_cost_table(ready)
        if number > len(ready):
            st.caption(_("The latest {ready} of them.", ready=len(ready)))


#: Fields that cutting finds by itself.
FOUND_BY_CUTTING = frozenset({"category", "year"})


def fields_to_say(profile: Profile) -> list[str]:
    """Return the metadata that people have to enter, because neither a model nor chunking finds it."""
    return [
        field
        for field in profile.search.metadata_filters
        if field not in FOUND_BY_CUTTING and field not in profile.reading.chunk_tags
    ]


def draw_fields(profile: Profile, key: str) -> dict[str, str]:
    """Draw inputs for the metadata of the files to come; return the values by field."""
    said = {}
    for field in fields_to_say(profile):
        said[field] = st.text_input(
            plain(field_label(field)),
            key=f"{key}_{field}",
            max_chars=120,
            width=200,
            help=_("Questions can be asked in these documents only. May stay empty."),
        )
    return {field: value for field, value in said.items() if value.strip()}
