"""Draw the sources that a collection is synced from: a GitHub account, a folder on the server."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rag.ingestion.sources.folder import FolderSource
from rag.ingestion.sources.github import GitHubSource
from rag.ingestion.sources.runs import SourceSettings, Syncs
from rag.language import N_, _
from rag.types import Collection, Identity
from rag.ui.actions import attempt
from rag.ui.board import draw_run
from rag.ui.text import plain

#: Where what went wrong is kept until it is said.
PROBLEM = "collections_source_problem"
#: The setting that says which one, what it is called, and what stands in its empty field.
KINDS = {
    GitHubSource.kind: ("owner", N_("GitHub account"), N_("Name of a person or an organisation"), ":material/code:"),
    FolderSource.kind: ("path", N_("Folder on the server"), "/srv/documents", ":material/folder:"),
}


def draw_sources(syncs: Syncs, identity: Identity, collection: Collection, *, with_folders: bool) -> None:
    """Draw the sources with their last sync, and fields to add others. `with_folders`: folders may be followed."""
    kept = [source for source in syncs.sources(collection) if source.kind in KINDS]
    missing = [kind for kind in KINDS if kind not in {s.kind for s in kept}]
    if not with_folders:
        missing = [kind for kind in missing if kind != FolderSource.kind]
    with st.container(border=True, gap="small", key="collections_sources"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(_("**Synced from**") if kept else _("**Sync from a source**"), width="content")
            if kept:
                st.button(
                    _("Sync now"),
                    key="collections_sync",
                    icon=":material/sync:",
                    type="tertiary",
                    on_click=_run,
                    args=(syncs.request, identity, collection),
                    help=_(
                        "Adds new documents, updates changed ones and removes those that are gone, without asking "
                        "for the cost of each. Unchanged documents cost nothing."
                    ),
                )
        for source in kept:
            _draw_kept(syncs, identity, collection, source)
        if kept:
            is_open = any(run.is_open for run in syncs.runs(identity, collection.id, limit=len(KINDS)))
            st.fragment(_draw_runs, run_every="1s" if is_open else None)(syncs, identity, collection)
        for kind in missing:
            _draw_missing(syncs, identity, collection, kind)
        if problem := st.session_state.pop(PROBLEM, ""):
            st.error(plain(problem), icon=":material/error:")


def _draw_kept(syncs: Syncs, identity: Identity, collection: Collection, source: SourceSettings) -> None:
    setting, kind_name, _example, icon = KINDS[source.kind]
    name = _(kind_name)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"{icon} {name} **{plain(str(source.settings.get(setting, '')))}**", width="content")
        st.button(
            _("Stop following"),
            key=f"collections_unfollow_{source.kind}",
            type="tertiary",
            on_click=_run,
            args=(syncs.drop_source, identity, collection, source.kind),
            help=_("The documents that came from it stay."),
        )


def _draw_runs(syncs: Syncs, identity: Identity, collection: Collection) -> None:
    """Draw the last sync of each source, and follow it while it is under way."""
    runs = syncs.runs(identity, collection.id)
    if not runs:
        st.caption(_("Not synced yet."))
    latest = {run.kind: run for run in reversed(runs) if run.kind in KINDS}
    for kind, run in latest.items():
        if len(latest) > 1:
            st.caption(_(KINDS[kind][1]))
        draw_run(run)
    is_open = any(run.is_open for run in runs)
    if st.session_state.get("collections_was_syncing") and not is_open:
        st.session_state.collections_was_syncing = False
        st.rerun()  # the figures of the collection show what came
    st.session_state.collections_was_syncing = is_open


def _draw_missing(syncs: Syncs, identity: Identity, collection: Collection, kind: str) -> None:
    _setting, kind_name, example, icon = KINDS[kind]
    name, example = _(kind_name), _(example)
    key = f"collections_follow_{kind}"
    with st.form(f"{key}_form", border=False):
        st.text_input(name, key=key, placeholder=example, max_chars=300, icon=icon)
        st.form_submit_button(
            _("Follow"), key=f"{key}_save", on_click=_follow, args=(syncs, identity, collection, kind)
        )


def _follow(syncs: Syncs, identity: Identity, collection: Collection, kind: str) -> None:
    setting, kind_name, _example, _icon = KINDS[kind]
    name = _(kind_name)
    value = str(st.session_state[f"collections_follow_{kind}"]).strip()
    if not value:
        st.session_state[PROBLEM] = _("{name}: fill in which one.", name=name)
        return

    def follow() -> None:
        syncs.set_source(identity, collection, kind, {setting: value})
        syncs.request(identity, collection)

    _run(follow)


def _run(action: Callable[..., object], *arguments: object) -> None:
    attempt(PROBLEM, action, *arguments)
