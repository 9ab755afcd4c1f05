"""Ask a logged question again with another profile or other settings, and draw both side by side."""

from __future__ import annotations

from uuid import UUID

import pandas as pd
import streamlit as st

from rag.errors import RagError
from rag.language import _
from rag.profiles import PROFILES, profile_by_name, profile_of
from rag.records.chat_logs import ChatLogEntry
from rag.services import services
from rag.types import Identity
from rag.ui import actions
from rag.ui.charts import outcome_names
from rag.ui.formats import duration, money
from rag.ui.text import answer_markdown, plain
from rag.ui.widgets import name_labels

OWN = "own"


def draw_run_again(identity: Identity, entry: ChatLogEntry) -> None:
    """Draw the choice of a profile and settings, and what came of asking again beside what was answered."""
    question = entry.question
    collections = {collection.id: collection for collection in services().documents.collections(identity)}
    if question.collection_id not in collections or not question.question:
        return
    collection = collections[question.collection_id]
    key = f"analytics_again_{question.id}"
    with st.expander(_("Run again with other settings"), icon=":material/replay:"):
        labels = name_labels({OWN: _("The collection's settings")} | {p.name: p.title for p in PROFILES.values()})
        with st.form(key, border=False):
            with st.container(horizontal=True, vertical_alignment="bottom"):
                name = st.selectbox(_("Profile"), list(labels), format_func=labels.of, key=f"{key}_profile")
                top_k = st.number_input(_("Passages"), 1, 50, value=None, placeholder=_("as set"), key=f"{key}_top_k")
                reranks = st.toggle(_("Rerank"), value=True, key=f"{key}_rerank")
            sent = st.form_submit_button(_("Run again"), icon=":material/replay:")
        if sent:
            profile = profile_of(collection) if name in (OWN, None) else profile_by_name(name)
            try:
                changes = {"top_k": int(top_k)} if top_k else {}
                profile = profile.changed(reranking=profile.ranking.reranking and reranks, **changes)
                with st.spinner(_("Asking again")):
                    asked = services().evaluations.ask_again(identity, collection, question.question, profile)
                    st.session_state[f"{key}_log"] = asked
            except RagError as error:
                actions.draw_error(error)
        found: UUID | None = st.session_state.get(f"{key}_log")
        if found is not None:
            _draw_beside(entry, services().analytics.question(identity, found))


def _draw_beside(before: ChatLogEntry, after: ChatLogEntry) -> None:
    words = outcome_names()
    for column, title, entry in zip(st.columns(2), (_("As it was"), _("Now")), (before, after), strict=True):
        with column:
            st.markdown(f"**{plain(title)}**")
            question = entry.question
            facts = [words.get(question.outcome or "", question.outcome or ""), duration(question.total_ms)]
            facts.append(money(question.cost if question.is_priced else None))
            st.caption(plain(" · ".join(facts)))
            with st.container(border=True):
                st.markdown(answer_markdown(question.answer) or "–")
    places = {p.chunk_id: p for p in before.passages}
    st.dataframe(
        pd.DataFrame(
            {
                _("Now"): [p.new_rank or p.position for p in after.passages],
                _("Before"): pd.array(
                    [places[p.chunk_id].new_rank or places[p.chunk_id].position if p.chunk_id in places else None
                     for p in after.passages],
                    dtype="Int64",
                ),
                _("Document"): [p.title or "–" for p in after.passages],
                _("Page"): [p.first_page for p in after.passages],
                _("Similarity"): [p.similarity for p in after.passages],
                _("Passage"): [" ".join(p.preview.split()) for p in after.passages],
            }
        ).sort_values(_("Now")),
        hide_index=True,
        key=f"analytics_again_passages_{after.question.id}",
        placeholder="–",
        alt=_("Passages now, with their places before"),
    )  # fmt: skip
