"""Draw an opened document: pages, chunks, costs, metadata and versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from rag import language
from rag.language import N_, _
from rag.library.documents import DocumentLibrary
from rag.types import Document, DocumentStatus
from rag.ui.document_pages import draw_chunks, draw_pages
from rag.ui.formats import (
    PDF_TYPES,
    count,
    date_time,
    duration,
    file_size,
    kind_name,
    language_name,
    method_name,
    money,
    status_badge,
    stored_cost,
    thousands,
)
from rag.ui.page_corrections import Correcting
from rag.ui.page_view import is_pdf
from rag.ui.text import code, plain

COST_STEPS = {
    "parsing": N_("Reading of the file"),
    "chunking": N_("Splitting"),
    "embedding": N_("Preparing for search"),
    "metadata": N_("Metadata"),
}


def _cost_steps() -> dict[str, str]:
    return {step: _(label) for step, label in COST_STEPS.items()}


def cost_line(values: Mapping[str, Any]) -> str:
    """Return the cost per step and in total, as a line in Markdown. For an estimate, the likely range is added."""
    steps = [f"{label} {plain(money(stored_cost(values, step)))}" for step, label in _cost_steps().items()]
    total = _("**Total {cost}**", cost=plain(money(stored_cost(values, "total"))))
    return " · ".join([*steps, total, *cost_range(stored_cost(values, "low"), stored_cost(values, "high"))])


def cost_range(low: Decimal | None, high: Decimal | None) -> list[str]:
    """Format the expected range for a bill as Markdown; empty if both limits are formatted alike."""
    least, most = money(low), money(high)
    return [] if least == most else [_("between {low} and {high}", low=plain(least), high=plain(most))]


def page_ranges(numbers: Sequence[int]) -> str:
    """Return `3, 7–9` for 3, 7, 8, 9."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


class DetailTabs(NamedTuple):
    """The further tabs in an opened document. Only the selected tab reads from the database."""

    details: Callable[[], None]
    ask: Callable[[], None]
    questions: Callable[[], None]
    replace: Callable[[], None]
    correcting: Correcting


def draw_document(
    document: Document,
    documents: DocumentLibrary,
    versions: Sequence[Document],
    tabs: DetailTabs,
    *,
    on_restore: Callable[[Document], None],
    on_open: Callable[[str], None],
) -> None:
    """Draw the tabs for an opened document. Only the selected tab reads from the database."""
    names = [
        _("Pages"),
        _("Details"),
        _("Try a question"),
        _("Questions answered"),
        _("Passages"),
        _("Versions"),
        _("Costs"),
    ]
    draws: list[Callable[[], None]] = [
        lambda: draw_pages(document, documents, tabs.correcting),
        lambda: _draw_details(document, documents, tabs.details),
        tabs.ask,
        tabs.questions,
        lambda: draw_chunks(document, documents),
        lambda: _draw_all_versions(document, versions, tabs.replace, on_restore, on_open),
        lambda: _draw_costs(document),
    ]
    opened = st.tabs(names, key=f"documents_tabs_{document.id}", on_change="rerun")
    for draw, tab in zip(draws, opened, strict=True):
        if tab.open:
            with tab:
                draw()


def _draw_details(document: Document, documents: DocumentLibrary, draw_form: Callable[[], None]) -> None:
    draw_form()
    with st.expander(_("About the file"), type="compact", expanded=True):
        _draw_about(document, _model_of(document, documents))


def _draw_all_versions(
    document: Document,
    versions: Sequence[Document],
    draw_replacing: Callable[[], None],
    on_restore: Callable[[Document], None],
    on_open: Callable[[str], None],
) -> None:
    if document.file_path and document.status is DocumentStatus.COMPLETED and not document.is_synced:
        draw_replacing()
    _draw_versions(document, versions, on_restore, on_open)


def _draw_versions(
    document: Document,
    versions: Sequence[Document],
    on_restore: Callable[[Document], None],
    on_open: Callable[[str], None],
) -> None:
    if len(versions) < 2:
        st.caption(
            _(
                "There is only one version so far. When you add another version, the present version stays listed "
                "here and can be restored."
            )
        )
    for version in versions:
        words, color = status_badge(version.status)
        when = version.published_at or version.created_at
        facts = [
            date_time(when),
            plain(method_name(version.chunking_method)),
            count(version.page_count, "page"),
            count(version.chunk_count, "passage"),
            file_size(version.file_size),
            code(version.sha256[:10]),
        ]
        with st.container(border=True, key=f"documents_version_{version.id}", gap="xsmall"):
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                st.markdown(
                    _(
                        "**Version {version}** :{color}-badge[{words}]",
                        version=version.version,
                        color=color,
                        words=words,
                    ),
                    width="content",
                )
                with st.container(horizontal=True, width="content"):
                    if version.id != document.id:
                        st.button(
                            _("Open"),
                            key=f"documents_open_version_{version.id}",
                            icon=":material/visibility:",
                            type="tertiary",
                            on_click=on_open,
                            args=(str(version.id),),
                        )
                    if version.status is DocumentStatus.SUPERSEDED:
                        st.button(
                            _("Restore"),
                            key=f"documents_restore_{version.id}",
                            icon=":material/history:",
                            type="tertiary",
                            help=_("Questions are answered from this version again immediately."),
                            on_click=on_restore,
                            args=(version,),
                        )
            st.caption(" · ".join(facts))


def _draw_costs(document: Document) -> None:
    has_costs, has_estimate = bool(document.costs), document.estimate is not None
    if not has_costs and not has_estimate:
        st.caption(_("Costs are known once the document has been read."))
        return
    steps = {**_cost_steps(), "total": _("Total")}
    is_shared = has_shared_requests(document)
    spent = {step: cost for step, cost in document.costs.items() if not (is_shared and step == "embedding")}
    st.table(
        pd.DataFrame(
            {
                _("Estimated"): [_format_cost(document.estimate, step) for step in steps],
                _("Spent"): [_format_cost(spent if has_costs else None, step) for step in steps],
            },
            index=list(steps.values()),
        ),
        border="horizontal",
        width=420,
        alt=_("Cost per step, estimated and spent"),
    )
    if is_shared:
        st.caption(
            _(
                "The passages of this document were sent to the search model together with passages of other "
                "documents. The cost is counted for the collection."
            )
        )
    if document.repeated_calls:
        st.caption(
            _(
                "{repeated_calls} had to be sent again after an interruption. A provider that does not recognise "
                "repeated calls may have billed them twice. You would see that on its invoice.",
                repeated_calls=count(document.repeated_calls, "call"),
            )
        )
    if document.processing_ms:
        st.caption(
            _(
                "Processed in {processing_ms}.",
                processing_ms=duration(document.processing_ms),
            )
        )


def has_shared_requests(document: Document) -> bool:
    """Whether this document's paid embedding is charged to the whole collection.

    Synced documents are embedded together: a request may contain texts from several documents.
    """
    costs, estimate = (stored_cost(amounts, "embedding") for amounts in (document.costs, document.estimate))
    is_processed = document.status in (DocumentStatus.COMPLETED, DocumentStatus.SUPERSEDED)
    return document.is_synced and is_processed and bool(estimate) and costs == 0


def _format_cost(values: Mapping[str, Any] | None, step: str) -> str:
    return "–" if values is None or step not in values else plain(money(stored_cost(values, step)))


def _draw_about(document: Document, model: str) -> None:
    facts = {
        _("File"): plain(document.file_name),
        _("Kind"): plain(kind_name(document.mime_type))
        + (f", {_(PDF_TYPES[document.pdf_type]).lower()}" if is_pdf(document) else ""),
        _("Size"): file_size(document.file_size),
        **file_facts(document.metadata),
        _("Language"): plain(language_name(document.language)),
        _("Characters"): thousands(document.character_count),
        _("Splitting method"): plain(method_name(document.chunking_method)),
        _("Search model"): plain(model) or "–",
        _("Version"): str(document.version),
        _("Pages without text"): page_ranges(document.empty_pages) or _("none"),
        "SHA\\-256": code(f"{document.sha256[:16]}…"),
    }
    st.table(facts, border="horizontal", width="content", alt=_("Facts about this document"))
    metadata = document.metadata
    if metadata.get("summary"):
        st.markdown(plain(str(metadata["summary"])))
    topics = [str(topic) for topic in metadata.get("topics") or []]
    if topics:
        st.markdown(" ".join(f":blue-badge[{plain(topic)}]" for topic in topics))
    if metadata:
        with st.expander(_("All metadata")):
            st.json(metadata)


def file_facts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the author and the dates stored in the file's metadata."""
    facts = {
        _("Author"): str(metadata.get("author") or ""),
        _("File created"): file_date(str(metadata.get("file_created_at") or "")),
        _("Last changed"): file_date(str(metadata.get("file_modified_at") or "")),
    }
    return {name: plain(value) for name, value in facts.items() if value}


def file_date(text: str) -> str:
    """Format an ISO date from a file. Time and UTC offset are included if the file has them."""
    if not text:
        return ""
    value = datetime.fromisoformat(text)
    if "T" not in text:
        return language.day(value)
    return f"{language.day(value)}, {language.clock(value)}" + (f" UTC{text[-6:]}" if value.utcoffset() else "")


def _model_of(document: Document, documents: DocumentLibrary) -> str:
    """Return the embedding model for a document's chunks; "" for a document without chunks.

    For a completed document this is the collection's model, else the first chunk's model.
    """
    if not document.chunk_count:
        return ""
    if document.status is DocumentStatus.COMPLETED:
        return documents.collection(document.tenant_id, document.collection_id).embedding_model
    return "".join(chunk.embedding_model for chunk in documents.chunks(document.tenant_id, document.id, limit=1))


def draw_repository(document: Document) -> None:
    """Draw a repository's description, language, stars and topics. For other documents, draw nothing."""
    repository = document.metadata.get("repository")
    if not isinstance(repository, dict):
        return
    facts = [f":material/star: {thousands(int(repository.get('stars') or 0))}"]
    facts += [plain(str(repository["language"]))] if repository.get("language") else []
    facts += (
        [_("updated {known}", known=plain(str(repository["updatedAt"])[:10]))] if repository.get("updatedAt") else []
    )
    st.markdown(" · ".join(facts))
    if topics := [str(topic) for topic in repository.get("topics") or []]:
        st.markdown(" ".join(f":blue-badge[{plain(topic)}]" for topic in topics))
    if repository.get("description"):
        st.caption(plain(str(repository["description"])))
