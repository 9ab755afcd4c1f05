"""What documents of one kind have and others have not: steps of reference documents, a repository's particulars, and
what searches may be narrowed by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from rag.ingestion.references import ReferenceDocument
from rag.profile import Profile
from rag.types import Document
from rag.ui.formats import count
from rag.ui.text import plain

#: Fields that cutting finds by itself.
FOUND_BY_CUTTING = frozenset({"category", "year"})

Step = Callable[[Document], None]


def fields_to_say(profile: Profile) -> list[str]:
    """What somebody has to say of a document, because neither a model nor cutting finds it."""
    return [
        field
        for field in profile.search.metadata_filters
        if field not in FOUND_BY_CUTTING and field not in profile.reading.chunk_tags
    ]


def field_label(field: str) -> str:
    """`crime_type` as "Crime type"."""
    return field.replace("_", " ").capitalize()


def draw_fields(profile: Profile, key: str) -> dict[str, str]:
    """Inputs for what is to be said of the files to come; their values by field."""
    said = {}
    for field in fields_to_say(profile):
        said[field] = st.text_input(
            plain(field_label(field)),
            key=f"{key}_{field}",
            max_chars=120,
            width=200,
            help="Questions can be asked in these documents only. May stay empty.",
        )
    return {field: value for field, value in said.items() if value.strip()}


def draw_reference_steps(
    document: Document,
    reference: ReferenceDocument,
    *,
    on_chunk: Callable[[Document, str], None],
    on_tag: Step,
    on_embed: Step,
) -> None:
    """How far a reference document is, and its next step: text into chunks, tags, vectors."""
    chunks = reference.chunks
    with st.container(border=True, key=f"documents_reference_{document.id}", gap="small"):
        st.markdown("**Steps of this reference document**")
        with st.container(horizontal=True, vertical_alignment="center"):
            _draw_step("Chunks", count(chunks, "chunk") if chunks else "none yet", is_done=chunks > 0)
            _draw_step("Tags", f"{reference.tagged:,} of {chunks:,}", is_done=0 < chunks == reference.tagged)
            _draw_step("Vectors", f"{reference.embedded:,} of {chunks:,}", is_done=0 < chunks == reference.embedded)
        if reference.source_description:
            st.caption(plain(reference.source_description))
        with st.container(horizontal=True, vertical_alignment="center"):
            with (
                st.popover("Add text", icon=":material/content_paste:", key=f"documents_reference_text_{document.id}"),
                st.form(f"documents_reference_form_{document.id}", border=False),
            ):
                text = st.text_area("Text of the document", height=220, key=f"documents_reference_value_{document.id}")
                if chunks:
                    st.caption("It takes the place of the text that is there, with its chunks, tags and vectors.")
                if st.form_submit_button("Cut into chunks", icon=":material/content_cut:") and text.strip():
                    on_chunk(document, text)
                    st.rerun()
            st.button(
                "Tag what is missing",
                key=f"documents_reference_tag_{document.id}",
                icon=":material/label:",
                disabled=not chunks or reference.tagged == chunks,
                on_click=on_tag,
                args=(document,),
            )
            st.button(
                "Embed what is missing",
                key=f"documents_reference_embed_{document.id}",
                icon=":material/scatter_plot:",
                disabled=not chunks or reference.embedded == chunks,
                help="Questions and opinions find it as soon as every chunk has its vector.",
                on_click=on_embed,
                args=(document,),
            )


def draw_repository(document: Document) -> None:
    """A repository's description, language, stars and topics; nothing for other documents."""
    known = document.metadata.get("repository")
    if not isinstance(known, dict):
        return
    facts = [f":material/star: {int(known.get('stars') or 0):,}"]
    facts += [plain(str(known["language"]))] if known.get("language") else []
    facts += [f"updated {plain(str(known['updatedAt'])[:10])}"] if known.get("updatedAt") else []
    st.markdown(" · ".join(facts))
    if topics := [str(topic) for topic in known.get("topics") or []]:
        st.markdown(" ".join(f":blue-badge[{plain(topic)}]" for topic in topics))
    if known.get("description"):
        st.caption(plain(str(known["description"])))


def columns_of_kinds(shown: Sequence[Document]) -> dict[str, list[Any]]:
    """Columns of the library that only some kinds have: stars and topics, department; none where nothing has them."""
    repositories = [d.metadata.get("repository") or {} for d in shown]
    columns: dict[str, list[Any]] = {}
    if any(repositories):
        columns["Stars"] = [r.get("stars") if r else None for r in repositories]
        columns["Topics"] = [", ".join(map(str, r.get("topics") or [])) for r in repositories]
    if any(d.metadata.get("department") for d in shown):
        columns["Department"] = [str(d.metadata.get("department") or "–") for d in shown]
    return columns


def column_settings() -> dict[str, Any]:
    """How these columns are drawn."""
    return {
        "Stars": st.column_config.NumberColumn(format="localized", width=70),
        "Topics": st.column_config.TextColumn(width=160),
        "Department": st.column_config.TextColumn(width=120),
    }


def _draw_step(label: str, words: str, *, is_done: bool) -> None:
    icon = ":green[:material/check_circle:]" if is_done else ":gray[:material/radio_button_unchecked:]"
    st.markdown(f"{icon} **{label}** :gray[{words}]", width="content")


__all__ = [
    "column_settings",
    "columns_of_kinds",
    "draw_fields",
    "draw_reference_steps",
    "draw_repository",
    "field_label",
    "fields_to_say",
]
