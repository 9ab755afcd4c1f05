"""A document that could not be processed: why, and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from rag.types import Document, DocumentStatus, Step
from rag.ui.document_names import ENGINES, STATUSES
from rag.ui.text import plain

#: What helps, by the step that failed.
ADVICE = {
    Step.EXTRACT: "Export the file again from its source and upload it under the same name, or try again.",
    Step.RECOGNISE: "Try again. Pages whose text was recognised are kept and not paid for twice.",
    Step.CHUNK: "Try again; or delete it and upload it with another way of chunking.",
    Step.EMBED: "Try again once the provider answers. What was embedded is kept and not paid for twice.",
    Step.TAG: "Try again. What was embedded is kept and not paid for twice.",
    Step.PUBLISH: "Try again. What was embedded is kept and not paid for twice.",
}


#: Where no engine is there to recognise text with.
NO_ENGINE = (
    "Text recognition is not set up here: set UPSTAGE_API_KEY, or install Tesseract, restart, and read it again. "
    "Or upload the document as it was before it was printed."
)


def draw_trouble(
    document: Document, *, engine: str | None, on_retry: Callable[..., None], retry: tuple[Any, ...]
) -> bool:
    """Draw the card; True when the document is to be deleted. `engine` is what text would be recognised with."""
    words, color = STATUSES[document.status]
    with st.container(border=True, key=f"documents_troubled_{document.id}", gap="xsmall"):
        version = f" (version {document.version})" if document.version > 1 else ""
        st.markdown(f"**{plain(document.title)}**{version} :{color}-badge[{words}]")
        st.markdown(plain(document.message or "It could not be processed."))
        if document.status is DocumentStatus.FAILED:
            st.caption(ADVICE[document.step])
        is_scan = document.status is DocumentStatus.NEEDS_OCR
        if is_scan:
            cost = ", whose cost is shown before anything is spent" if engine == "upstage" else ", free of charge"
            st.caption(f"{ENGINES[engine]} can recognise its text{cost}." if engine else NO_ENGINE)
        if document.version > 1:
            st.caption("The version before it goes on answering.")
        with st.container(horizontal=True):
            st.button(
                "Read it again with OCR" if is_scan and engine else "Try again",
                key=f"documents_retry_{document.id}",
                icon=":material/refresh:",
                on_click=on_retry,
                args=retry,
            )
            return bool(
                st.button("Delete", key=f"documents_remove_{document.id}", icon=":material/delete:", type="tertiary")
            )
