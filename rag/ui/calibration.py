"""A collection's threshold: from which similarity on a passage is evidence, where the figure is from, measured anew."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

import streamlit as st

from rag.profile import Profile
from rag.providers import Embedder
from rag.types import Collection
from rag.ui.formats import count, date_time
from rag.ui.profile_words import embedder_name
from rag.ui.text import plain


def threshold_sentences(collection: Collection, profile: Profile, embedder: Embedder, zone: tzinfo) -> list[str]:
    """What decides, and what was measured; `profile` is the collection's own with its changes."""
    name = embedder_name(collection.embedding_model)
    if embedder.provider == "builtin":
        return ["The built-in embedder compares words, so that a question's words decide and not a similarity."]
    used = profile.threshold(embedder.default_threshold, collection.calibrated_threshold)
    decides = f"Passages count as evidence from a similarity of {used:.3f} on."
    if profile.search.threshold_mode == "absolute" and profile.search.similarity_threshold is not None:
        decides += " It is set for this collection."
        if used > embedder.default_threshold:
            decides += (
                f" {name} has {embedder.default_threshold:.3f} by itself: where no passage reaches the one set, "
                "a lower one counts, so that an answer does not stay empty."
            )
    elif profile.search.threshold_mode == "calibrated" and collection.calibrated_threshold is not None:
        decides += " It was measured on this collection."
    else:
        decides += f" It is the one of {name}."
    return [decides, _measured(collection, profile, zone)]


def _measured(collection: Collection, profile: Profile, zone: tzinfo) -> str:
    if collection.calibrated_threshold is None:
        return "Nothing has been measured on this collection yet. Measuring embeds some 200 short texts."
    sentence = f"Measured: {collection.calibrated_threshold:.3f}, on {date_time(collection.calibrated_at, zone)}"
    if collection.calibrated_passages and collection.calibrated_model:
        passages = count(collection.calibrated_passages, "passage")
        sentence += f", on {passages} of this collection with {embedder_name(collection.calibrated_model)}"
    if profile.search.threshold_mode != "calibrated":
        sentence += ". It does not count while the threshold is not calibrated"
    return f"{sentence}."


def draw_threshold(
    collection: Collection, profile: Profile, embedder: Embedder, *, zone: tzinfo, on_measure: Callable[[], None]
) -> None:
    """The sentences in a box, with a button that measures."""
    with st.container(border=True, gap="small", key="collections_threshold"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown("**Least similarity**", width="content")
            if embedder.provider != "builtin":
                st.button(
                    "Measure" if collection.calibrated_threshold is None else "Measure again",
                    key="collections_calibrate",
                    icon=":material/straighten:",
                    type="tertiary",
                    on_click=on_measure,
                    help="On the collection's own text. Worth it once its documents are there.",
                )
        st.markdown("  \n".join(plain(text) for text in threshold_sentences(collection, profile, embedder, zone)))
