"""Where documents come in: what is chosen for them, the files themselves, and archives of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from rag.errors import InvalidInput
from rag.ingestion.extracted import ExtractionLimits
from rag.ingestion.loaders import ENDINGS, formats_in_words
from rag.ingestion.sources.folder import files_in_archive
from rag.profiles import profile_of
from rag.types import Collection
from rag.ui.document_cards import Refused, UploadOptions
from rag.ui.document_kinds import draw_fields
from rag.ui.document_names import METHOD_HELP, METHODS, PDF_TYPE_HELP, PDF_TYPES
from rag.ui.labels import keep_chosen, name_labels
from rag.ui.text import plain

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
    """The card for new documents. Files are handed over in this run, and the uploader is emptied after it.

    `default` is the collection that is chosen beforehand.
    """
    with st.container(border=True):
        st.subheader("Add documents", anchor=False)
        if not collections:
            st.info("There is no collection to add documents to yet.", icon=":material/folder_off:")
            return
        beforehand = next((c for c in collections if default is not None and c.id == default.id), collections[0])
        options = _options(collections, beforehand)
        files = st.file_uploader(
            "Choose or drop as many files as you like",
            type=[*ENDINGS, ".zip"],  # with their points: "text" alone is Streamlit's word for every kind of text
            accept_multiple_files=True,
            max_upload_size=limits.maximum_bytes // 2**20,
            key=f"documents_upload_{st.session_state.documents_upload_number}",
            help=f"Choose {formats_in_words()}, or a ZIP archive of them. Each is checked and read at once. "
            "Nothing is spent before you confirm its estimate.",
        )
        if files:
            _hand_over(files, options, limits, on_take, on_refuse)


def _options(collections: Sequence[Collection], collection: Collection) -> UploadOptions:
    """What holds for the files to come; the collection's own settings are chosen beforehand."""
    with st.grid(3, min_column_width=220, vertical_alignment="bottom", gap="medium"):
        if len(collections) > 1:
            names = name_labels({c.id: c.name for c in collections}, gone="Deleted collection")
            keep_chosen("documents_collection")
            chosen = st.selectbox(
                "Collection",
                list(names),
                index=list(names).index(collection.id),
                format_func=names.of,
                key="documents_collection",
            )
            collection = next((c for c in collections if c.id == chosen), collection)
        profile = profile_of(collection)
        methods = list(METHODS)
        method = st.selectbox(
            "Chunking",
            methods,
            index=methods.index(profile.chunking.chunking_method),
            format_func=METHODS.__getitem__,
            # Part of the key: another collection begins with its own way.
            key=f"documents_method_{collection.id}_{profile.chunking.chunking_method}",
        )
        pdf_type = st.segmented_control(
            "Kind of PDFs",
            list(PDF_TYPES),
            default=profile.reading.pdf_type,
            required=True,
            format_func=PDF_TYPES.__getitem__,
            key=f"documents_pdf_type_{collection.id}_{profile.reading.pdf_type}",
            help=PDF_TYPE_HELP,
        )
    st.caption(f"{METHODS[method]}: {METHOD_HELP[method][0].lower()}{METHOD_HELP[method][1:]}")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        metadata = draw_fields(profile, f"documents_say_{collection.id}")
    wants_metadata = st.toggle(
        "Generate metadata",
        value=True,
        key="documents_metadata",
        help="Summary, topics and sample questions per document, written by the language model. "
        "Its cost is part of the estimate.",
    )
    return UploadOptions(collection, method, wants_metadata, pdf_type or profile.reading.pdf_type, metadata)


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
        bar.progress(position / len(files), text=f"Checking {plain(file.name)} ({position + 1:,} of {len(files)})")
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
    """Hand over the readable files of an archive; yields those that may not be unpacked."""
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
        sentence = f"There is no file in this archive that can be read. It should hold {formats_in_words()}."
        yield Refused(file.file_id, file.name, file.size, sentence, None, options)
