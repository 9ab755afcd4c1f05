"""Draw new documents until they are in the library: chosen, refused, estimated, processed, ready."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from rag import language
from rag.errors import InvalidInput
from rag.ingestion.loaders.format_table import formats_in_words
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.folder import files_in_archive
from rag.language import N_, _, ngettext
from rag.library.documents import MOST_UNASKED, DocumentLibrary, RefusedFile
from rag.profiles import profile_of
from rag.profiles.profile import Profile
from rag.types import (
    Collection,
    Document,
    DocumentFigures,
    DocumentStatus,
    Step,
    UploadOptions,
)
from rag.ui.budgets import draw_broken_by
from rag.ui.document_details import cost_line, cost_range, page_ranges
from rag.ui.document_library import draw_cost_table
from rag.ui.document_pages import draw_comparison
from rag.ui.formats import (
    METHOD_HELP,
    METHODS,
    PDF_TYPE_HELP,
    PDF_TYPES,
    STATUSES,
    count,
    duration,
    field_label,
    file_size,
    money,
    stored_cost,
    thousands,
)
from rag.ui.scripts import script
from rag.ui.text import plain
from rag.ui.widgets import choose_collection, red, words_of


class UploadChoice(NamedTuple):
    """The collection and options chosen before a file's upload."""

    collection: Collection
    options: UploadOptions


class Locked(NamedTuple):
    """An uploaded file which needs its password, kept in the page's memory until the password is given."""

    key: str
    name: str
    sentence: str
    content: bytes
    choice: UploadChoice
    #: Whether the right password was given. Its card stays in place, so the next card does not move under the pointer.
    is_open: bool = False


class WaitingFile(NamedTuple):
    """A file which waits for a decision, and the document to replace, if any.

    After the decision, the file stays in the list while the page is open.
    """

    document: Document
    #: The document to be replaced, and the pages with differences.
    replaces: Document | None = None
    differing: Sequence[int] = ()
    #: The decision, empty while the file waits. The card keeps place and height.
    decision: str = ""
    #: Whether it was removed here and can be restored.
    is_removed: bool = False


class Refused(NamedTuple):
    """An uploaded file which was refused, with the reason."""

    name: str
    size_bytes: int
    sentence: str


#: Takes a file: name, bytes, collection with options, and a unique key.
Take = Callable[[str, bytes, UploadChoice, str], None]


class UploadActions(NamedTuple):
    """Callbacks for newly chosen files."""

    #: Sets the cost in US dollars from which a file waits for confirmation.
    on_limit: Callable[[Decimal], None]
    on_take: Take
    on_refuse: Callable[[Refused], None]


DROP_ANYWHERE = script("drop_anywhere")


def draw_upload(
    collections: Sequence[Collection],
    limits: ExtractionLimits,
    actions: UploadActions,
    *,
    default: Collection | None,
    spending_limit: Decimal,
) -> None:
    """Draw the button for new documents; files can also be dropped anywhere on the page.

    New files are passed on in this run, and the uploader is emptied. `default` is the preselected collection.
    """
    if not collections:
        st.info(_("There is no collection to add documents to yet."), icon=":material/folder_off:")
        return
    beforehand = next((c for c in collections if default is not None and c.id == default.id), collections[0])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        place = st.container(key="documents_add")
        with st.popover(_("How files are read"), icon=":material/settings:", key="documents_options", width="content"):
            choice = _choice(collections, beforehand)
            _draw_limit(spending_limit, actions.on_limit)
    with place:
        files = st.file_uploader(
            _("Add documents: drop them anywhere on this page"),
            accept_multiple_files=True,
            max_upload_size=limits.maximum_bytes // 2**20,
            key=f"documents_upload_{st.session_state.documents_upload_number}",
            help=_(
                "{formats_in_words}, or a folder or ZIP archive of such files. Files that cost nothing are read at "
                "once. You see the cost before anything is spent.",
                formats_in_words=plain(formats_in_words()),
            ),
        )
    st.html(DROP_ANYWHERE, unsafe_allow_javascript=True)
    if files:
        _hand_over(files, choice, limits, actions)


def _draw_limit(spending_limit: Decimal, on_limit: Callable[[Decimal], None]) -> None:
    def note() -> None:
        on_limit(Decimal(str(st.session_state.documents_limit)))

    st.number_input(
        _("Ask me about files that cost more than (US $)"),
        min_value=0.0,
        max_value=float(MOST_UNASKED),
        value=float(spending_limit),
        step=0.01,
        format="%.2f",
        key="documents_limit",
        on_change=note,
        help=_(
            "Files that cost no more than this are processed at once. The limit applies to all administrators of "
            "your company and to files added from now on. You are always asked about a file that replaces a "
            "document."
        ),
    )


def _choice(collections: Sequence[Collection], collection: Collection) -> UploadChoice:
    if len(collections) > 1:
        chosen = choose_collection(
            {c.id: c.name for c in collections}, key="documents_collection", chosen=collection.id
        )
        collection = next((c for c in collections if c.id == chosen), collection)
    profile = profile_of(collection)
    methods = list(METHODS)
    method = st.selectbox(
        _("Passages"),
        methods,
        index=methods.index(profile.chunking.chunking_method),
        format_func=words_of(METHODS),
        # The key includes the collection, because each has a different default.
        key=f"documents_method_{collection.id}_{profile.chunking.chunking_method}",
        help=_("How a document is split into the passages that answers quote."),
    )
    st.caption(_(METHOD_HELP[method]))
    pdf_type = st.segmented_control(
        _("Kind of PDFs"),
        list(PDF_TYPES),
        default=profile.reading.pdf_type,
        required=True,
        format_func=words_of(PDF_TYPES),
        key=f"documents_pdf_type_{collection.id}_{profile.reading.pdf_type}",
        help=_(PDF_TYPE_HELP),
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        metadata = draw_fields(profile, f"documents_say_{collection.id}")
    wants_metadata = st.toggle(
        _("Write summaries and questions"),
        value=True,
        key="documents_metadata",
        help=_(
            "Summary, topics and sample questions per document, written by the language model. The cost is part of "
            "the estimate."
        ),
    )
    options = UploadOptions(
        chunking_method=method,
        pdf_type=pdf_type or profile.reading.pdf_type,
        generate_metadata=wants_metadata,
        metadata=metadata,
    )
    return UploadChoice(collection, options)


def _hand_over(
    files: Sequence[UploadedFile],
    choice: UploadChoice,
    limits: ExtractionLimits,
    actions: UploadActions,
) -> None:
    """Upload each file a single time. Then give the uploader widget a new key, which frees the files' memory."""
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
            for refused in _from_archive(file, choice, limits, actions.on_take):
                actions.on_refuse(refused)
        else:
            actions.on_take(file.name, file.getvalue(), choice, file.file_id)
        handled.add(file.file_id)
    st.session_state.documents_upload_number += 1
    st.rerun()


def _from_archive(
    file: UploadedFile, choice: UploadChoice, limits: ExtractionLimits, on_take: Take
) -> Iterator[Refused]:
    handled: set[str] = st.session_state.documents_handled
    content = file.getvalue()
    has_files = False
    try:
        for entry in files_in_archive(io.BytesIO(content), limits, tenant_id=choice.collection.tenant_id):
            has_files = True
            key = f"{file.file_id}/{entry.place}"
            if key in handled:
                continue
            if entry.refusal:
                yield Refused(entry.place, 0, entry.refusal)
            else:
                on_take(entry.path, entry.content, choice, key)
            handled.add(key)
    except InvalidInput as exc:
        yield Refused(file.name, file.size, exc.message)
        return
    if not has_files:
        sentence = _(
            "There is no file in this archive that can be read. It should hold {formats}.", formats=formats_in_words()
        )
        yield Refused(file.name, file.size, sentence)


STEP_NAMES = {
    Step.EXTRACT: N_("Read"),
    Step.RECOGNISE: N_("Recognise text"),
    Step.CHUNK: N_("Split"),
    Step.EMBED: N_("Prepare for search"),
    Step.TAG: N_("Metadata"),
    Step.PUBLISH: N_("Make searchable"),
}


def _draw_head(words: str, key: str, on_dismiss: Callable[..., None], *dismissed: object) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", wrap=False):
        st.markdown(words, width="stretch")
        st.button(_("Dismiss"), key=key, icon=":material/close:", type="tertiary", on_click=on_dismiss, args=dismissed)


def draw_locked(locked: Locked, *, on_dismiss: Callable[[str], None], on_unlock: Callable[[Locked], None]) -> None:
    """Ask for a file's password next to its name."""
    with st.container(border=True, key=f"documents_refused_{locked.key}", gap="xsmall"):
        _draw_head(
            f":orange[:material/lock:] **{plain(locked.name)}**"
            + ("" if locked.is_open else f" :gray[{file_size(len(locked.content))}]"),
            f"documents_dismiss_{locked.key}",
            on_dismiss,
            locked.key,
        )
        st.markdown(
            f":green[:material/check: {_('Unlocked. The file is being read.')}]"
            if locked.is_open
            else plain(locked.sentence)
        )
        with (
            st.form(f"documents_unlock_{locked.key}", border=False),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            st.text_input(
                _("Password of this PDF"),
                type="password",
                autocomplete="off",
                key=f"documents_password_{locked.key}",
                width=280,
                disabled=locked.is_open,
            )
            st.form_submit_button(
                _("Unlock"),
                icon=":material/lock_open:",
                on_click=on_unlock,
                args=(locked,),
                disabled=locked.is_open,
            )


def _draw_estimate(file: WaitingFile, actions: EstimateActions) -> None:
    document = file.document
    estimate = document.estimate or {}
    with st.container(border=True, key=f"documents_estimate_{document.id}", gap="xsmall"):
        st.caption(_("Confirm before anything is spent"))
        st.markdown(f"**{plain(document.title)}** :gray[{plain(document.file_name)}]")
        facts = (
            count(estimate.get("pages", document.page_count), "page"),
            count(estimate.get("characters", document.character_count), "character"),
            _("about {passages}", passages=count(estimate.get("chunks", 0), "passage")),
        )
        st.markdown(" · ".join(facts))
        st.markdown(f":gray[{cost_line(estimate)}]")
        draw_broken_by(document.tenant_id, stored_cost(estimate, "total"))
        draw_remarks(document)
        with st.container(horizontal=True, vertical_alignment="center"):
            cost = plain(money(stored_cost(estimate, "total")))
            _draw_confirming(_("Process the file ({estimate})", estimate=cost), file, actions)
            _draw_removing(file, actions)


def _draw_confirming(label: str, file: WaitingFile, actions: EstimateActions) -> None:
    st.button(
        label,
        key=f"documents_confirm_{file.document.id}",
        icon=":material/check:",
        type="primary",
        disabled=bool(file.decision),
        on_click=actions.on_confirm,
        args=(file.document,),
        wrap=True,
    )


def _draw_removing(file: WaitingFile, actions: EstimateActions) -> None:
    document = file.document
    if not file.decision:
        st.button(
            red(_("Remove this file")),
            key=f"documents_discard_{document.id}",
            type="tertiary",
            help=_("Nothing has been spent. The file goes to the bin. You can restore it from there."),
            on_click=actions.on_discard,
            args=(document,),
        )
        return
    st.markdown(f":green[:material/check: {plain(file.decision)}]", width="content")
    if file.is_removed:
        st.button(
            _("Undo"),
            key=f"documents_undiscard_{document.id}",
            icon=":material/undo:",
            type="tertiary",
            on_click=actions.on_undo,
            args=(document,),
        )


def draw_progress(document: Document) -> None:
    """Draw the current step's progress, and the finished steps."""
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
            st.caption(plain(language.translated(document.message)))


def draw_finished(document: Document, *, on_dismiss: Callable[[str], None]) -> None:
    """Draw a document which became ready while this page was open, with its cost."""
    with st.container(border=True, key=f"documents_finished_{document.id}", gap="xsmall"):
        facts = [count(document.page_count, "page"), count(document.chunk_count, "passage")]
        facts.append(_("processed in {time}", time=plain(duration(document.processing_ms))))
        ready = _("**{title}** is ready", title=plain(document.title))
        _draw_head(
            f":green[:material/check_circle:] {ready}  \n"
            f":small[:gray[{' · '.join(facts)} · {cost_line(document.costs)}]]",
            f"documents_done_{document.id}",
            on_dismiss,
            str(document.id),
        )
        draw_remarks(document)


def draw_remarks(document: Document) -> None:
    """Draw a document's message. Without a message, draw the numbers of the pages without text."""
    if document.message:
        st.caption(plain(language.translated(document.message)))
    elif document.empty_pages and document.status is not DocumentStatus.FAILED:
        sentence = ngettext(
            "No text on page {pages}", "No text on pages {pages}", len(document.empty_pages),
            pages=page_ranges(document.empty_pages),
        )  # fmt: skip
        st.caption(f":orange[:material/image:] {plain(sentence)}")


def step_words(document: Document) -> str:
    """Describe the current step: `Reading page 12 of 105`."""
    done, total = document.steps_done, document.steps_total
    if document.is_waiting:
        return _("Waiting for the provider")
    if not total:
        return _("Waiting for its turn")
    at = {"number": thousands(min(done + 1, total)), "total": thousands(total)}
    return {
        Step.EXTRACT: _("Reading page {number} of {total}", **at),
        Step.RECOGNISE: _("Recognising the text of page {number} of {total}", **at),
        Step.CHUNK: _("Splitting into passages"),
        Step.EMBED: _("Preparing passage {number} of {total} for the search", **at),
        Step.TAG: _("Writing metadata"),
        Step.PUBLISH: _("Making the document searchable"),
    }[document.step]


OnOne = Callable[[Document], None]


class EstimateActions(NamedTuple):
    """Callbacks for the decision about estimated documents."""

    on_confirm: OnOne
    on_confirm_all: Callable[[datetime], None]
    on_discard: OnOne
    on_discard_all: Callable[[datetime], None]
    on_keep_both: OnOne
    on_undo: OnOne


def draw_estimates(
    files: Sequence[WaitingFile],
    figures: Sequence[DocumentFigures],
    documents: DocumentLibrary,
    actions: EstimateActions,
) -> None:
    """Draw the files waiting for a decision: a summary with the total cost, then each file which replaces a
    document.
    """
    waiting = [f for f in figures if f.status is DocumentStatus.ESTIMATED]
    # Documents estimated after this total was read are neither drawn nor confirmed with it.
    until = max(f.updated_at for f in waiting) if waiting else max(file.document.updated_at for file in files)
    tenant_id = files[0].document.tenant_id
    files = [file for file in files if file.decision or file.document.updated_at <= until]
    undecided = [file for file in files if not file.decision]
    number = max(sum(f.documents for f in waiting), len(undecided))
    if number <= 1 and len(files) == 1:
        (file,) = files
        if file.replaces is not None:
            _draw_replacement(file, file.replaces, documents, actions)
        else:
            _draw_estimate(file, actions)
        return
    replaced = [file for file in undecided if file.replaces is not None]
    total = money(sum((f.estimated for f in waiting), Decimal(0)))
    words = (
        _("{total}, plus items with no known price", total=total)
        if any(f.unpriced_estimates for f in waiting)
        else total
    )
    with st.container(border=True, key="documents_estimates", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            sentence = ngettext(
                "{count} file waits for your confirmation: {cost}",
                "{count} files wait for your confirmation: {cost}",
                number,
                cost=words,
            )
            facts = [f"**{plain(sentence) if number else _('You have decided about all of these files.')}**"]
            facts += cost_range(sum((f.low for f in waiting), Decimal(0)), sum((f.high for f in waiting), Decimal(0)))
            facts += [count(sum(f.pages for f in waiting), "page")] if waiting else []
            if replaced:
                facts.append(
                    ngettext(
                        "{count} of them would replace a document",
                        "{count} of them would replace documents",
                        len(replaced),
                    )
                )
            st.markdown(" · ".join(facts), width="content")
            with st.container(horizontal=True, width="content"):
                st.button(
                    _words_of_all(number, len(replaced), plain(words)),
                    key="documents_confirm_all",
                    icon=":material/done_all:" if number > 1 else ":material/check:",
                    type="primary",
                    disabled=not number,
                    on_click=actions.on_confirm_all,
                    args=(until,),
                    wrap=True,
                )
                st.button(
                    red(_("Remove all {number}", number=number)),
                    key="documents_discard_all",
                    help=_("Nothing has been spent. The file goes to the bin. You can restore it from there.")
                    if number == 1
                    else _("Nothing has been spent. The files go to the bin. You can restore them from there."),
                    disabled=not number,
                    on_click=actions.on_discard_all,
                    args=(until,),
                    wrap=True,
                )
        draw_broken_by(tenant_id, sum((f.estimated for f in waiting), Decimal(0)))
        added = [file for file in files if file.replaces is None]
        if added or number > len(undecided):
            with st.expander(_("File by file"), type="compact"):
                for file in added:
                    _draw_estimate(file, actions)
                draw_rest(number - len(undecided), DocumentStatus.ESTIMATED)
    for file in files:
        if file.replaces is not None:
            _draw_replacement(file, file.replaces, documents, actions)


def _words_of_all(number: int, replaced: int, cost: str) -> str:
    if number == 1:
        return (
            _("Replace the document ({estimate})", estimate=cost)
            if replaced
            else _("Process the file ({estimate})", estimate=cost)
        )
    if not replaced:
        return _("Process all {number} ({words})", number=number, words=cost)
    return ngettext(
        "Process all {number}, replace {count} document ({words})",
        "Process all {number}, replace {count} documents ({words})",
        replaced,
        number=number,
        words=cost,
    )


def _draw_replacement(
    file: WaitingFile, replaced: Document, documents: DocumentLibrary, actions: EstimateActions
) -> None:
    document, differing = file.document, file.differing
    with st.container(border=True, key=f"documents_replaces_{document.id}", gap="small"):
        changes = ngettext("{count} page differs", "{count} pages differ", len(differing))
        st.markdown(
            _(
                ":orange[:material/swap_horiz:] **Replaces version {version} of {title}: {value}** :gray[{file_name}]",
                version=replaced.version,
                title=plain(replaced.title),
                value=changes if differing else _("no page differs"),
                file_name=plain(document.file_name),
            )
        )
        sentence = (
            N_(
                "Until you decide about the new file, answers come from version {version}. If you replace that "
                "version, you can restore it later. {value}"
            )
            if replaced.status is DocumentStatus.COMPLETED
            else N_(
                "Answers do not use version {version} yet. Once both versions are processed, answers come from the "
                "new version, and you can restore version {version} later. {value}"
            )
        )
        st.caption(_(sentence, version=replaced.version, value=cost_line(document.estimate or {})))
        draw_broken_by(document.tenant_id, stored_cost(document.estimate, "total"))
        if differing:
            with st.expander(
                ngettext(
                    "Compare page {differing}",
                    "Compare pages {differing}",
                    len(differing),
                    differing=page_ranges(differing),
                ),
                key=f"documents_compare_{document.id}",
                on_change="rerun",
                type="compact",
            ) as comparing:
                if comparing.open:
                    draw_comparison(documents, replaced, document, differing)
        with st.container(horizontal=True, vertical_alignment="center"):
            cost = plain(money(stored_cost(document.estimate, "total")))
            words = _("Replace version {version} ({estimate})", version=replaced.version, estimate=cost)
            _draw_confirming(words, file, actions)
            st.button(
                _("Keep both documents ({estimate})", estimate=cost),
                key=f"documents_both_{document.id}",
                icon=":material/library_add:",
                help=_("The file becomes a separate document. Answers use both documents."),
                disabled=bool(file.decision),
                on_click=actions.on_keep_both,
                args=(document,),
                wrap=True,
            )
            _draw_removing(file, actions)


def draw_refused_files(refused: Sequence[RefusedFile], *, on_dismiss: Callable[[UUID | None], None]) -> None:
    """List refused files, each with its reason, until they are dismissed."""
    if not refused:
        return
    with st.container(border=True, key="documents_not_added", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(
                _(":orange[:material/info:] **{refused} not added**", refused=count(len(refused), "file")),
                width="stretch",
            )
            if len(refused) > 1:
                st.button(
                    _("Dismiss all"), key="documents_dismiss_all", type="tertiary", on_click=on_dismiss, args=(None,)
                )
        with st.container(height=220 if len(refused) > 4 else "content", border=False, gap="xsmall"):
            for file in refused:
                size = f" :gray[{file_size(file.file_size)}]" if file.file_size else ""
                _draw_head(
                    f"**{plain(file.file_name)}**{size}  \n{plain(language.translated(file.reason))}",
                    f"documents_dismiss_{file.id}",
                    on_dismiss,
                    file.id,
                )


def draw_rest(number: int, status: DocumentStatus) -> None:
    """Say how many more documents have this status but no card on the page, and how to list them."""
    if number <= 0:
        return
    if status is DocumentStatus.ESTIMATED:
        more = ngettext("{count} more document waits", "{count} more documents wait", number)
    elif status is DocumentStatus.PROCESSING:
        more = ngettext("{count} more document follows", "{count} more documents follow", number)
    else:
        more = ngettext("{count} more document failed", "{count} more documents failed", number)
    st.caption(_("{more}: choose “{status}” under “Filters” to see them.", more=more, status=_(STATUSES[status][0])))


def draw_many_finished(ready: Sequence[Document], number: int, *, on_dismiss: Callable[[], None]) -> None:
    """Draw a single card for `number` documents which became ready while this page was open.

    Only the latest documents, `ready`, are listed in a table.
    """
    with st.container(border=True, key="documents_finished", gap="small"):
        ready_words = ngettext("**{count} document** is ready", "**{count} documents** are ready", number)
        _draw_head(f":green[:material/check_circle:] {ready_words}", "documents_done_all", on_dismiss)
        with st.expander(_("What each document cost"), type="compact", key="documents_finished_costs"):
            draw_cost_table(ready)
            if number > len(ready):
                st.caption(_("Only the latest {ready} documents are listed.", ready=len(ready)))


#: Fields found by chunking.
SET_BY_CHUNKING = frozenset({"category", "year"})


def fields_to_say(profile: Profile) -> list[str]:
    """Return the metadata fields which people must enter, because they are filled by neither a model nor chunking."""
    return [
        field
        for field in profile.search.metadata_filters
        if field not in SET_BY_CHUNKING and field not in profile.reading.chunk_tags
    ]


def draw_fields(profile: Profile, key: str) -> dict[str, str]:
    """Draw inputs for the next files' metadata; return the values by field."""
    values = {}
    for field in fields_to_say(profile):
        values[field] = st.text_input(
            plain(field_label(field)),
            key=f"{key}_{field}",
            max_chars=120,
            width=200,
            help=_("Questions can be limited to documents with this value. You can leave this empty."),
        )
    return {field: value for field, value in values.items() if value.strip()}
