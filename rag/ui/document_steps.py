"""Draw an administrator's actions on documents: run a step again, repair, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from rag import language
from rag.ingestion.loaders.ocr import LOCAL, engine_title
from rag.language import N_, _
from rag.library.documents import QueueState
from rag.profiles.legal.references import ReferenceDocument
from rag.types import ChunkingMethod, Document, DocumentStatus, PdfType, Step
from rag.ui.formats import METHODS, PDF_TYPE_HELP, PDF_TYPES, count, status_badge, thousands
from rag.ui.page_view import is_pdf
from rag.ui.text import plain
from rag.ui.widgets import draw_step, red, words_of

RunStep = Callable[[Document, Step, bool, ChunkingMethod | None], None]


def draw_steps(
    document: Document, *, engine: str | None, on_run: RunStep, on_read: Callable[[Document, PdfType], None]
) -> None:
    """Draw the menu with steps to run again for a searchable document: reading, chunking, embedding, tagging."""
    with st.popover(_("Run again"), icon=":material/replay:", key=f"documents_steps_{document.id}"):
        st.caption(
            _("The document stays searchable. Steps that cost money are estimated first and wait for you to confirm.")
        )
        _draw_reading(document, engine, on_read)
        method = st.selectbox(
            _("Split into passages again"),
            list(METHODS),
            index=list(METHODS).index(document.chunking_method),
            format_func=words_of(METHODS),
            key=f"documents_again_method_{document.id}",
        )
        buttons = (
            (
                _("Split again"),
                Step.CHUNK,
                False,
                method,
                _("Makes a new version: the text is split into passages and prepared for the search again."),
            ),
            (
                _("Prepare the remaining passages for the search"),
                Step.EMBED,
                True,
                None,
                _("Prepares only those passages that cannot be searched by meaning yet."),
            ),
            (
                _("Prepare all passages for the search again"),
                Step.EMBED,
                False,
                None,
                _("Makes a new version: the passages stay the same and are prepared for the search again."),
            ),
            (_("Tag the remaining passages"), Step.TAG, True, None, _("Writes tags only for passages that have none.")),
            (_("Tag all passages again"), Step.TAG, False, None, _("Writes all tags again.")),
        )
        for words, step, only_missing, chosen, text in buttons:
            st.button(
                words,
                key=f"documents_again_{step.name.capitalize()}_{only_missing}_{document.id}",
                help=text,
                width="stretch",
                on_click=on_run,
                args=(document, step, only_missing, chosen),
            )


def _draw_reading(document: Document, engine: str | None, on_read: Callable[[Document, PdfType], None]) -> None:
    chosen: PdfType = "auto"
    if is_pdf(document):
        chosen = st.selectbox(
            _("Read the file again as"),
            list(PDF_TYPES),
            format_func=words_of(PDF_TYPES),
            index=list(PDF_TYPES).index(document.pdf_type),
            key=f"documents_again_pdf_type_{document.id}",
            help=_(PDF_TYPE_HELP)
            if engine
            else _("{pdf_type_help} Text recognition is not set up here.", pdf_type_help=_(PDF_TYPE_HELP)),
        )
    st.button(
        _("Read the file again"),
        key=f"documents_again_read_{document.id}",
        help=_("Makes a new version: the same file is read, split and prepared for the search again."),
        width="stretch",
        on_click=on_read,
        args=(document, chosen),
    )


def draw_queue_state(state: QueueState) -> None:
    """Draw a line with the numbers of running, waiting and delayed jobs. Without jobs, nothing is drawn."""
    words = []
    if state.running:
        words.append(_("{running} under way", running=count(state.running, "job")))
    if state.waiting:
        words.append(_("{waiting} waiting", waiting=thousands(state.waiting)))
    if state.later:
        later = thousands(state.later)
        words.append(
            _(
                "{later} waiting for another attempt, the next at {next_try_at} UTC",
                later=later,
                next_try_at=f"{state.next_try_at:%H:%M:%S}",
            )
            if state.next_try_at
            else _("{later} waiting for another attempt", later=later)
        )
    if words:
        st.caption(f":material/queue: {_('Queue: {words}', words=', '.join(words))}")


def draw_meaning(done: int, passages: int) -> None:
    """Draw a line with the number of passages which still lack a vector from the built-in model, if any."""
    if done < passages:
        st.caption(
            ":material/translate: "
            + _(
                "Search by meaning: {done} of {passages} prepared. Questions that use the same words as this "
                "document already find it. Other questions find more of its passages as the preparation goes on.",
                done=thousands(done),
                passages=count(passages, "passage"),
            )
        )


OnOne = Callable[[Document], None]


def draw_reference_steps(
    document: Document,
    reference: ReferenceDocument,
    *,
    on_chunk: Callable[[Document, str], None],
    on_tag: OnOne,
    on_embed: OnOne,
) -> None:
    """Draw a reference document's progress in chunks, tags and vectors, with a button for the next step."""
    chunks = reference.chunks
    with st.container(border=True, key=f"documents_reference_{document.id}", gap="small"):
        st.markdown(_("**Steps of this reference document**"))
        with st.container(horizontal=True, vertical_alignment="center"):
            draw_step(_("Passages"), count(chunks, "passage") if chunks else _("none yet"), is_done=chunks > 0)
            draw_step(
                _("Tags"),
                _("{tagged} of {chunks}", tagged=thousands(reference.tagged), chunks=thousands(chunks)),
                is_done=0 < chunks == reference.tagged,
            )
            draw_step(
                _("Prepared for search"),
                _("{embedded} of {chunks}", embedded=thousands(reference.embedded), chunks=thousands(chunks)),
                is_done=0 < chunks == reference.embedded,
            )
        if reference.source_description:
            st.caption(plain(reference.source_description))
        with st.container(horizontal=True, vertical_alignment="center"):
            with (
                st.popover(
                    _("Add text"), icon=":material/content_paste:", key=f"documents_reference_text_{document.id}"
                ),
                st.form(f"documents_reference_form_{document.id}", border=False),
            ):
                text = st.text_area(
                    _("Text of the document"), height=220, key=f"documents_reference_value_{document.id}"
                )
                if chunks:
                    st.caption(_("This text replaces the present text, including its passages and tags."))
                if st.form_submit_button(_("Split into passages"), icon=":material/content_cut:") and text.strip():
                    on_chunk(document, text)
                    st.rerun()
            st.button(
                _("Tag the remaining passages"),
                key=f"documents_reference_tag_{document.id}",
                icon=":material/label:",
                disabled=not chunks or reference.tagged == chunks,
                on_click=on_tag,
                args=(document,),
            )
            st.button(
                _("Prepare the remaining passages for the search"),
                key=f"documents_reference_embed_{document.id}",
                icon=":material/scatter_plot:",
                disabled=not chunks or reference.embedded == chunks,
                help=_(
                    "This document can be used for questions and opinions as soon as every passage is prepared for "
                    "the search."
                ),
                on_click=on_embed,
                args=(document,),
            )


#: Advice by failed step.
ADVICE = {
    Step.EXTRACT: N_("Export the file again from its source and upload it under the same name, or try again."),
    Step.RECOGNISE: N_("Try again. Pages whose text was recognised are kept and not paid for twice."),
    Step.CHUNK: N_("Try again, or delete the document and upload it with another way of splitting."),
    Step.EMBED: N_("Try again when the provider answers. Finished passages are kept and not paid for twice."),
    Step.TAG: N_("Try again. Finished passages are kept and not paid for twice."),
    Step.PUBLISH: N_("Try again. Finished passages are kept and not paid for twice."),
}


#: Shown if no engine for text recognition is available.
NO_ENGINE = N_(
    "Text recognition is not set up here. Paste a key of Upstage on the page Set-up, or install Tesseract on the "
    "server. Then read the document again. You can also upload the file that this document was printed from."
)


def draw_trouble(
    document: Document, *, engine: str | None, on_retry: Callable[..., None], retry: tuple[Any, ...]
) -> bool:
    """Draw a failed document with the possible actions. Return True if the person asks to delete the document.

    `engine` is the engine which recognises text in scans, or `None`.
    """
    words, color = status_badge(document.status)
    with st.container(border=True, key=f"documents_troubled_{document.id}", gap="xsmall"):
        version = _(" (version {version})", version=document.version) if document.version > 1 else ""
        st.markdown(f"**{plain(document.title)}**{version} :{color}-badge[{words}]")
        st.markdown(plain(language.translated(document.message) or _("This document could not be processed.")))
        if document.status is DocumentStatus.FAILED:
            st.caption(_(ADVICE[document.step]))
        is_scan = document.status is DocumentStatus.NEEDS_OCR
        if is_scan:
            if engine is None:
                st.caption(_(NO_ENGINE))
            elif engine in LOCAL:
                st.caption(
                    _("{engine} can recognise the text of this document, free of charge.", engine=engine_title(engine))
                )
            else:
                st.caption(
                    _(
                        "{engine} can recognise the text of this document. You see the cost before anything is spent.",
                        engine=engine_title(engine),
                    )
                )
        if document.version > 1:
            st.caption(_("Answers still come from the previous version."))
        with st.container(horizontal=True):
            st.button(
                _("Read the document again with text recognition") if is_scan and engine else _("Try again"),
                key=f"documents_retry_{document.id}",
                icon=":material/refresh:",
                on_click=on_retry,
                args=retry,
            )
            return bool(
                st.button(
                    red(_("Delete this document")),
                    key=f"documents_remove_{document.id}",
                    icon=":material/delete:",
                    type="tertiary",
                    help=_("The document goes to the bin. You can restore it from there."),
                )
            )
