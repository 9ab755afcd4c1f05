"""Draw a collection's sync sources, such as a folder on the server, with their schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from rag.errors import InvalidInput, PackagesMissing
from rag.ingestion.sources.folder import FolderSource
from rag.ingestion.sources.runs import SCHEDULE, SourceSettings, SyncRun, Syncs
from rag.language import _, ngettext, translated
from rag.types import Collection, Identity
from rag.ui import lists
from rag.ui.actions import attempt, draw_problem, offer_undo
from rag.ui.board import RUN_WORDS, changed_words, cost_words, draw_run
from rag.ui.source_forms import SourceForm
from rag.ui.text import plain
from rag.ui.widgets import ask_to_confirm, name_labels, red

#: Session state key for an error until it is drawn.
PROBLEM = "collections_source_problem"
#: The kind of source with an open form.
CHOSEN = "collections_source_kind"

#: Minutes between automatic syncs; 0 means only on request.
SCHEDULES = (0, 5, 15, 30, 60, 120, 360, 720, 1440, 2880, 10080)
#: The most past syncs shown on a page.
MOST_RUNS = 200

Forms = Mapping[str, SourceForm]


def draw_sources(
    syncs: Syncs,
    identity: Identity,
    collection: Collection,
    *,
    forms: Forms,
    with_folders: bool,
) -> None:
    """Draw the collection's sources with their last sync, and a form to add sources.

    `with_folders` means that folders on the server may be added.
    """
    sources = [source for source in syncs.sources(collection) if source.kind in forms]
    missing = [kind for kind in forms if kind not in {s.kind for s in sources}]
    if not with_folders:
        missing = [kind for kind in missing if kind != FolderSource.kind]
    with st.container(border=True, gap="small", key="collections_sources"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(_("**Synced from**") if sources else _("**Sync from a source**"), width="content")
            if sources:
                st.button(
                    _("Sync now"),
                    key="collections_sync",
                    icon=":material/sync:",
                    type="tertiary",
                    on_click=_run,
                    args=(syncs.request, identity, collection),
                    help=_(
                        "Adds new documents, updates changed ones and removes those that are no longer in the "
                        "source, without asking you to confirm each cost. Unchanged documents cost nothing."
                    ),
                )
        for source in sources:
            _draw_source(syncs, identity, collection, source, forms[source.kind])
        if sources:
            is_open = any(run.is_open for run in syncs.runs(identity, collection.id, limit=len(forms)))
            st.fragment(_draw_runs, run_every="1s" if is_open else None)(syncs, identity, collection, forms)
        if missing:
            choices = {kind: forms[kind] for kind in missing}
            _draw_choice(syncs, identity, collection, choices, has_any=bool(sources))
        draw_problem(PROBLEM, is_once=True)


def _draw_source(
    syncs: Syncs, identity: Identity, collection: Collection, source: SourceSettings, form: SourceForm
) -> None:
    label = f"{form.icon} {_(form.name)} **{plain(form.place(source.settings))}**"
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(label, width="content")
        draw_schedule(syncs, identity, collection, source, problem=PROBLEM)
        if st.button(
            red(_("Stop following")),
            key=f"collections_unfollow_{source.kind}",
            type="tertiary",
            help=_("The documents from this source stay."),
        ):
            ask_to_confirm(
                _("Stop following this source?"),
                label,
                _("The documents from this source stay, but are no longer updated."),
                action=_("Stop following"),
                on_confirm=lambda: _stop_following(syncs, identity, collection, source, form),
                key=f"collections_unfollow_{source.kind}",
                icon=":material/sync_disabled:",
            )


def _stop_following(
    syncs: Syncs, identity: Identity, collection: Collection, source: SourceSettings, form: SourceForm
) -> None:
    if attempt(PROBLEM, syncs.drop_source, identity, collection, source.kind):
        offer_undo(
            "collections",
            _("{name} is no longer followed.", name=_(form.name)),
            partial(syncs.follow_again, identity, collection, source),
        )


def draw_schedule(
    syncs: Syncs, identity: Identity, collection: Collection, source: SourceSettings, *, problem: str
) -> None:
    """Draw the choice of a source's schedule; errors go to `st.session_state[problem]`."""
    key, now = f"schedule_{collection.id}_{source.kind}", source.every_minutes or 0
    # Show a schedule set meanwhile by another window or program.
    if st.session_state.get(f"{key}_was") != now:
        st.session_state[key] = st.session_state[f"{key}_was"] = now

    def save() -> None:
        minutes = int(st.session_state[key])
        if not attempt(problem, syncs.set_schedule, identity, collection, minutes or None, kind=source.kind):
            st.session_state[key] = now

    choices = name_labels({minutes: interval_words(minutes) for minutes in sorted({*SCHEDULES, now})})
    with st.container(width="content", gap="xxsmall"):
        st.selectbox(
            _("How often the source is synced"),
            list(choices),
            key=key,
            format_func=choices.of,
            label_visibility="collapsed",
            on_change=save,
            width=220,
        )
        if source.next_sync_at is not None:
            st.caption(_("Next sync: {when}", when=plain(until(source.next_sync_at))))


def interval_words(minutes: int) -> str:
    """Describe a sync interval: "Every 15 minutes", "Every hour", "Every 2 days".

    An interval of 0 is described as "Synced only on request".
    """
    if not minutes:
        return _("Synced only on request")
    if minutes % 1440 == 0:
        return ngettext("Every day", "Every {count} days", minutes // 1440)
    if minutes % 60 == 0:
        return ngettext("Every hour", "Every {count} hours", minutes // 60)
    return ngettext("Every minute", "Every {count} minutes", minutes)


def until(moment: datetime) -> str:
    """Format the time left until a moment: `in 5 min`, `in 3 h`, `in 2 days`. A past moment gives `now`."""
    seconds = (moment - datetime.now(UTC)).total_seconds()
    if seconds <= 0:
        return _("now")
    if seconds < 3600:
        return _("in {minutes} min", minutes=math.ceil(seconds / 60))
    if seconds < 86_400:
        return _("in {hours} h", hours=math.ceil(seconds / 3600))
    return ngettext("in {count} day", "in {count} days", round(seconds / 86_400))


def _draw_runs(syncs: Syncs, identity: Identity, collection: Collection, forms: Forms) -> None:
    runs = [run for run in syncs.runs(identity, collection.id, limit=MOST_RUNS) if run.kind in forms]
    if not runs:
        st.caption(_("Not synced yet."))
    latest = {run.kind: run for run in reversed(runs)}
    for kind, run in latest.items():
        if len(latest) > 1:
            st.caption(_(forms[kind].name))
        draw_run(run)
    earlier = [run for run in runs if run not in latest.values()]
    if earlier:
        with st.expander(_("Earlier syncs"), icon=":material/history:", type="compact"):
            _draw_history(earlier, forms)
    is_open = any(run.is_open for run in runs)
    if st.session_state.get("collections_was_syncing") and not is_open:
        st.session_state.collections_was_syncing = False
        st.rerun()  # Update the collection's figures.
    st.session_state.collections_was_syncing = is_open


def _draw_history(runs: Sequence[SyncRun], forms: Forms) -> None:
    requesters = (_("The schedule") if run.asked_by == SCHEDULE else run.asked_by for run in runs)
    lists.draw(
        {
            _("When"): lists.times((run.finished_at or run.created_at for run in runs), 135),
            _("Source"): lists.texts((_(forms[run.kind].name) for run in runs), 130),
            _("Result"): lists.texts((_(RUN_WORDS[run.status]) for run in runs), 70),
            _("Documents"): lists.texts(map(changed_words, runs), 210),
            _("Cost"): lists.texts(map(cost_words, runs), 100),
            _("Requested by"): lists.texts(requesters, 110),
            _("Remarks"): lists.texts((translated(run.message) for run in runs), 260),
        },
        key="collections_sync_history",
        alt=_("Earlier syncs with time, source, changes, and the person who requested the sync"),
    )


def _draw_choice(syncs: Syncs, identity: Identity, collection: Collection, forms: Forms, *, has_any: bool) -> None:
    if st.session_state.get(CHOSEN) not in forms:
        st.session_state.pop(CHOSEN, None)
    labels = name_labels({kind: f"{form.icon} {_(form.name)}" for kind, form in forms.items()})
    kind = st.pills(
        _("Add another source") if has_any else _("Where are the documents?"),
        list(labels),
        key=CHOSEN,
        format_func=labels.of,
    )
    if kind is None:
        if not has_any:
            st.caption(_("Documents that are kept elsewhere come here automatically and follow every change there."))
        return
    form = forms[kind]
    if not form.is_installed:
        st.warning(plain(PackagesMissing().message), icon=":material/extension_off:")
        return
    sign_in = form.sign_in(identity, collection) if form.sign_in is not None else None
    if sign_in is not None:
        sign_in.draw()
        form = sign_in.form
    key, secrets = f"collections_follow_{kind}", sign_in.secrets if sign_in is not None else {}
    with st.form(f"{key}_form", border=False):
        st.caption(_(form.hint))
        form.draw(key)
        with st.container(horizontal=True):
            st.form_submit_button(
                _("Follow"),
                key=f"{key}_save",
                type="primary",
                on_click=_follow,
                args=(syncs, identity, collection, form, secrets),
                help=_("Reads all documents of this source now, and then reads every change."),
            )
            is_tried = st.form_submit_button(
                _("Check the connection"), key=f"{key}_try", icon=":material/network_check:"
            )
    if is_tried:
        with st.spinner(_("Checking…")):
            titles = _try(syncs, identity, collection, form, secrets)
        if titles:
            st.success(
                _("The source can be read. The first documents: {titles}", titles=plain(" · ".join(titles))),
                icon=":material/check_circle:",
            )


def _try(
    syncs: Syncs, identity: Identity, collection: Collection, form: SourceForm, stored_secrets: Mapping[str, str]
) -> list[str]:
    results: list[str] = []

    def reach() -> None:
        settings, secrets = form.typed(f"collections_follow_{form.kind}")
        results.extend(
            syncs.try_source(identity, collection, form.kind, settings, secrets={**secrets, **stored_secrets})
        )

    _run(reach)
    return results


def _follow(
    syncs: Syncs, identity: Identity, collection: Collection, form: SourceForm, stored_secrets: Mapping[str, str]
) -> None:
    def follow() -> None:
        settings, typed = form.typed(f"collections_follow_{form.kind}")
        secrets = {**typed, **stored_secrets}
        if len(form.fields) == 1 and not form.place(settings):
            raise InvalidInput(f"Fill in this field: {form.name}.")
        syncs.set_source(identity, collection, form.kind, settings, secrets=secrets if any(secrets.values()) else None)
        syncs.request(identity, collection)

    _run(follow)


def _run(action: Callable[..., object], *arguments: object) -> None:
    attempt(PROBLEM, action, *arguments)
