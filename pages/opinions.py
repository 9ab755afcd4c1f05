"""Draft legal opinions on a page with the case, the references found, the streamed draft, and stored drafts.

Administrators also add references here, name them and tag their passages. A draft is visible only to its author.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.errors import RagError
from rag.ingestion.tagging import tag_names, vocabulary_of
from rag.language import N_, _, translated
from rag.profiles import REFERENCE_PROFILES, profile_of
from rag.profiles.legal.opinions import FoundReferences, Opinion, OpinionCase, as_docx, reference_block, reference_query
from rag.profiles.legal.references import DescribedReference, ReferenceDocument
from rag.services import require, services
from rag.types import Collection, PdfType, Role, SearchResult
from rag.ui.actions import ask_to_remove, attempt, draw_done, draw_problem, draw_undo
from rag.ui.formats import ago, count, field_label, money, thousands
from rag.ui.text import answer_markdown, lines, plain
from rag.ui.widgets import choose_collection, name_labels, red

identity = require(Role.EMPLOYEE)
running = services()
is_admin = identity.may(Role.ADMIN)
state = st.session_state
for name, value in (
    ("opinions_found", None),
    ("opinions_written", None),
    ("opinions_problem", ""),
    ("opinions_done", ""),
    ("references_added", 0),
):
    state.setdefault(name, value)
STATES = {"complete": (N_("Complete"), "green"), "cut": (N_("Incomplete"), "orange"), "failed": (N_("Failed"), "red"),
          "writing": (N_("Being written"), "blue")}  # fmt: skip
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PER_PAGE = 20
#: The fields of a new reference.
FIELDS = ("title", "source", "category", "file", "scanned", "text")


# The draft


def find(collection: Collection) -> None:
    """Search references for the case, and tick all references found."""
    state.opinions_problem, state.opinions_found, state.opinions_written = "", None, None
    kind = (state.opinions_kind or "").strip()
    if not kind or not state.opinions_facts.strip():
        state.opinions_problem = _("Choose the kind of opinion and write down the facts of the case first.")
        return
    tags = profile_of(collection).search.metadata_filters
    filters = {tag: value for tag in tags if (value := state.get(f"opinions_filter_{tag}"))}
    try:
        with running.limits.question(identity):
            state.opinions_found = running.opinions.find_references(
                identity,
                collection,
                reference_query(profile_of(collection), kind, summary=state.opinions_facts),
                filters=filters,
            )
    except RagError as error:
        state.opinions_problem = error.message


def draw_case(collection: Collection) -> None:
    profile = profile_of(collection)
    words = vocabulary_of(profile.reading.tag_values)
    with st.container(border=True):
        st.selectbox(
            _("Kind of opinion"),
            list(dict(profile.search.opinion_queries)),
            index=None,
            key="opinions_kind",
            accept_new_options=True,
            placeholder=_("Choose or type a kind"),
        )
        st.text_area(
            _("Facts of the case"),
            key="opinions_facts",
            height=160,
            max_chars=200_000,
            help=_(
                "The draft uses only the facts in this text. The beginning of the text is used to search for "
                "references."
            ),
        )
        filters = [tag for tag in profile.search.metadata_filters if words.get(tag)]
        if filters:
            with st.container(horizontal=True):
                for tag in filters:
                    st.selectbox(
                        plain(field_label(tag)),
                        list(dict.fromkeys(words[tag])),
                        index=None,
                        key=f"opinions_filter_{tag}",
                        placeholder=_("All"),
                        accept_new_options=True,
                        width=220,
                    )
        st.button(
            _("Find references"),
            key="opinions_find",
            type="primary",
            icon=":material/search:",
            on_click=find,
            args=(collection,),
        )


def draw_reference(result: SearchResult) -> bool:
    """Draw a reference with a tick box; return whether the box is ticked."""
    tags = [str(result.metadata[name]) for name in ("topic", "crime_type") if result.metadata.get(name)]
    with st.container(border=True, gap="small"):
        ticked = st.checkbox(
            f"{plain(result.title)}, p. {result.first_page}", value=True, key=f"opinions_use_{result.chunk_id}"
        )
        if tags:
            st.markdown(" ".join(f":blue-badge[{plain(tag)}]" for tag in tags))
        if summary := str(result.metadata.get("summary") or ""):
            st.caption(plain(summary))
        with st.expander(_("Passage")):
            st.markdown(lines(result.content))
    return ticked


def write(collection: Collection, references: FoundReferences, chosen: list[SearchResult]) -> None:
    """Draw the draft while it is written, and remember the draft's id."""
    slot, text = st.empty(), ""
    try:
        with running.limits.question(identity):
            draft = running.opinions.begin(
                identity,
                collection,
                OpinionCase(
                    opinion_type=state.opinions_kind or "",
                    facts=state.opinions_facts,
                    instructions=state.opinions_wanted,
                ),
                references=chosen,
                query=references.query,
            )
        with st.spinner(_("Writing the draft")):
            for piece in draft.pieces:
                text += piece
                slot.markdown(answer_markdown(text))
        state.opinions_written = draft.id
    except RagError as error:
        state.opinions_problem = error.message
    slot.empty()
    st.rerun()


def draw_results(collection: Collection, references: FoundReferences) -> None:
    st.header(_("References"), anchor=False)
    for notice in references.notices:
        st.info(plain(translated(notice)), icon=":material/info:")
    if not references.results:
        st.caption(_("No reference matches. Add references, or search without the filters."))
    chosen = [item for item in references.results if draw_reference(item)]
    block = reference_block(profile_of(collection), chosen)
    with st.expander(_("The exact text that the model gets"), icon=":material/data_object:"):
        st.code(block or _("No references."), language=None, wrap_lines=True)
    st.text_area(
        _("Your wishes for the draft"),
        key="opinions_wanted",
        height=80,
        max_chars=20_000,
        placeholder=_("For example: ask for probation, two pages"),
    )
    if st.button(_("Write the draft"), key="opinions_write", type="primary", icon=":material/edit_document:"):
        write(collection, references, chosen)


def draw_opinion(opinion: Opinion, place: str) -> None:
    """Draw an opinion's draft with cost, cited passages and buttons. `place` makes widget keys unique."""
    words, color = STATES[opinion.state]
    with st.container(border=True):
        st.markdown(
            f"**{plain(opinion.opinion_type)}** :{color}-badge[{_(words)}] "
            f":gray[{plain(opinion.model)} · {plain(money(opinion.cost))} · {ago(opinion.created_at)}]"
        )
        if opinion.message:
            st.caption(plain(translated(opinion.message)))
        st.markdown(answer_markdown(opinion.content))
        for item in opinion.cited:
            with st.expander(plain(f"[{item['cited']}] {item['title']}, p. {item['page_number']}")):
                st.markdown(lines(str(item["content"])))
        with st.container(horizontal=True):
            st.download_button(
                _("Save as Word"),
                lambda: as_docx(opinion),
                f"{opinion.opinion_type}.docx",
                DOCX,
                icon=":material/download:",
                key=f"opinions_docx_{place}_{opinion.id}",
                on_click="ignore",
            )
            if st.button(
                red(_("Delete this opinion")),
                key=f"opinions_delete_{place}_{opinion.id}",
                icon=":material/delete:",
                type="tertiary",
            ):
                ask_to_remove(
                    "opinions",
                    _("Delete this opinion?"),
                    _(
                        "Immediately after deleting, you can still undo this. The cost of the opinion stays in the "
                        "analytics."
                    ),
                    action=_("Delete this opinion"),
                    removed_sentence=_("The opinion “{name}” is deleted.", name=opinion.opinion_type),
                    take=partial(running.opinions.delete, identity, opinion.id),
                    put_back=partial(running.opinions.put_back, identity),
                    problem="opinions_problem",
                    key="opinions_delete",
                )


def draw_shown(shown: int, total: int) -> None:
    st.caption(_("The latest {shown} of {total} are shown.", shown=thousands(shown), total=thousands(total)))


def draw_drafts() -> None:
    drafts, total = running.opinions.list(identity, limit=PER_PAGE)
    if not drafts:
        st.caption(_("There are no drafts yet. Your drafts are kept here, and only you can see them."))
    for opinion in drafts:
        draw_opinion(opinion, "kept")
    if total > len(drafts):
        draw_shown(len(drafts), total)


# References


def add_reference(collection: Collection) -> None:
    """Add a PDF or a pasted text as a reference: read, split, embed and tag, showing the progress.

    The form is emptied after success only.
    """
    fields = {name: state[f"references_{name}_{state.references_added}"] for name in FIELDS}
    title, text, file = fields["title"].strip(), fields["text"].strip(), fields["file"]
    described = DescribedReference(title=title, source_description=fields["source"], category=fields["category"])
    if not title or not (text or file):
        state.opinions_problem = _("A reference needs a title and either a PDF or a text.")
        return
    state.opinions_problem = ""
    try:
        with st.status(_("Reading, splitting, preparing for search and tagging")) as status:
            if file:
                kind: PdfType = "scanned" if fields["scanned"] else "digital"
                reference = running.references.ingest(
                    identity, collection, described, file_name=file.name, content=file.getvalue(), pdf_type=kind
                )
            else:
                reference = running.references.register(identity, collection, described)
                status.update(label=_("Splitting"))
                running.references.chunk(identity, reference.id, page_texts={1: text})
                status.update(label=_("Tagging"))
                running.references.tag(identity, reference.id)
                status.update(label=_("Preparing for search"))
                reference = running.references.embed(identity, reference.id)
        state.references_added += 1
        state.opinions_done = _(
            "{title} is added: {passages}.", title=reference.title, passages=count(reference.chunks, "passage")
        )
    except RagError as error:
        state.opinions_problem = error.message


def draw_add(collection: Collection) -> None:
    with (
        st.expander(_("Add a reference"), icon=":material/add:"),
        st.form("references_add", border=False),
    ):
        # New keys empty the form: a file field cannot be emptied in another way.
        number = state.references_added
        st.text_input(_("Title"), key=f"references_title_{number}")
        st.text_input(_("Source or description"), key=f"references_source_{number}")
        st.text_input(_("Category"), key=f"references_category_{number}")
        st.file_uploader(_("PDF"), type="pdf", key=f"references_file_{number}")
        st.checkbox(_("The pages are scanned: recognise their text"), key=f"references_scanned_{number}")
        st.text_area(_("Or paste the text"), key=f"references_text_{number}")
        added = st.form_submit_button(_("Add"), type="primary", icon=":material/check:")
    if added:
        add_reference(collection)
        st.rerun()


def save_reference(document_id: UUID) -> None:
    values = {name: state[f"reference_{name}_{document_id}"] for name in ("title", "source_description", "category")}
    if attempt("opinions_problem", running.references.change, identity, document_id, **values):
        st.toast(_("Saved."), icon=":material/check:")


def draw_tags(document: ReferenceDocument, collection: Collection) -> None:
    """Draw the passages' tags as an editable table."""
    profile = profile_of(collection)
    names = tag_names(profile.reading.chunk_tags)
    vocabulary = vocabulary_of(profile.reading.tag_values)
    chunks = running.documents.chunks(identity, document.id, limit=200)
    rows = [
        {
            _("Passage"): chunk.content[:160],
            **{n: ", ".join(v) if isinstance(v := chunk.metadata.get(n), list) else v or "" for n in names},
        }
        for chunk in chunks
    ]
    table = pd.DataFrame(rows, columns=[_("Passage"), *names])
    edited = st.data_editor(
        table,
        key=f"reference_tags_{document.id}",
        hide_index=True,
        disabled=[_("Passage")],
        column_config={
            _("Passage"): st.column_config.TextColumn(width=260),
            **{
                n: st.column_config.TextColumn(
                    plain(field_label(n)), help=plain(", ".join(vocabulary.get(n, ()))) or None
                )
                for n in names
            },
        },
    )
    if st.button(_("Save tags"), key=f"reference_save_{document.id}", icon=":material/check:"):
        for chunk, before, after in zip(chunks, rows, edited.to_dict("records"), strict=True):
            changed: dict[str, str | Sequence[str] | None] = {
                name: value.split(",") if name == "keywords" else value
                for name in names
                if (value := str(after[name] or "")) != before[name]
            }
            if changed and not attempt(
                "opinions_problem", running.references.set_tags, identity, document.id, chunk.chunk_index, changed
            ):
                break
        else:
            state.opinions_done = _("Saved.")
        st.rerun()


def draw_references(collection: Collection) -> None:
    draw_add(collection)
    documents, total = running.references.list(identity, limit=1_000)
    if total > len(documents):
        draw_shown(len(documents), total)
    documents = [document for document in documents if document.collection_id == collection.id]
    if not documents:
        st.caption(_("No reference yet."))
        return
    st.caption(count(len(documents), "reference"))
    names = name_labels({document.id: document.title for document in documents})
    chosen = st.selectbox(_("Reference"), list(names), format_func=names.of, key="references_chosen")
    document = next(item for item in documents if item.id == chosen)
    with st.container(border=True):
        st.text_input(_("Title"), document.title, key=f"reference_title_{document.id}")
        st.text_input(
            _("Source or description"),
            document.source_description,
            key=f"reference_source_description_{document.id}",
        )
        st.text_input(_("Category"), document.category, key=f"reference_category_{document.id}")
        st.button(
            _("Save"),
            key=f"reference_keep_{document.id}",
            icon=":material/check:",
            on_click=save_reference,
            args=(document.id,),
        )
        st.caption(
            _(
                "{chunks}: {embedded} prepared for the search, {tagged} with tags",
                chunks=count(document.chunks, "passage"),
                embedded=thousands(document.embedded),
                tagged=thousands(document.tagged),
            )
            + (f". {plain(translated(document.message))}" if document.message else "")
        )
        draw_tags(document, collection)


# The page

st.title(_("Opinions"), anchor=False)
collections = [c for c in running.documents.collections(identity) if c.profile in REFERENCE_PROFILES]
if not collections:
    st.caption(
        _("There are no legal references. An administrator can make a collection of them on the page Collections.")
    )
    st.stop()
collection = collections[0]
if len(collections) > 1:
    collection_id = choose_collection(
        {c.id: c.name for c in collections}, key="opinions_collection", label=_("References"), width=320
    )
    collection = next((c for c in collections if c.id == collection_id), collection)
st.caption(
    _(
        "Drafts are based on the case you describe and the references you tick. You have to check and sign them "
        "yourself."
    )
)
draw_problem("opinions_problem")
draw_done("opinions_done")
draw_undo("opinions", problem="opinions_problem")
labels = [_("Draft"), _("Your drafts"), *([_("References")] if is_admin else [])]
draft_tab, drafts_tab, *admin_tabs = st.tabs(labels)
with draft_tab:
    draw_case(collection)
    if state.opinions_found is not None:
        draw_results(collection, state.opinions_found)
    if state.opinions_written is not None:
        try:
            draw_opinion(running.opinions.get(identity, state.opinions_written), "written")
        except RagError:
            state.opinions_written = None
with drafts_tab:
    draw_drafts()
for tab in admin_tabs:
    with tab:
        draw_references(collection)
