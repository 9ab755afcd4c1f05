"""Manage collections: documents searched together, with a profile and settings. For administrators.

A collection starts with a profile's settings. Single settings can be changed, and reset to the profile's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

import streamlit as st

from rag.errors import InvalidInput, RagError
from rag.integrations.registry import draw_outside, source_forms
from rag.language import _, day, ngettext
from rag.library.bin import BIN_DAYS, BinnedCollection
from rag.library.collections import LANGUAGES
from rag.profiles import PROFILES, holds_posts, profile_by_name
from rag.services import require, services
from rag.types import Collection, CollectionContents, Role
from rag.ui import actions
from rag.ui.collection_profile import added_by, draw_threshold, embedder_line, embedder_name, means, profile_title
from rag.ui.collection_settings import draw_persona, draw_settings
from rag.ui.collection_sources import CHOSEN, draw_sources
from rag.ui.embedding_moves import better_models, draw_moves
from rag.ui.formats import count, language_name, thousands, time_zone
from rag.ui.text import plain
from rag.ui.widgets import ask_to_confirm, draw_head, name_labels, red

identity = require(Role.ADMIN)
library = services().documents
providers = services().providers
state = st.session_state
state.setdefault("collections_error", "")
state.setdefault("collections_done", "")
state.setdefault("collections_dialog", "")
state.setdefault("collections_field", None)
state.setdefault("collections_preset", None)


# What the buttons do


def open_collection(collection_id: UUID | None) -> None:
    """Store the opened collection's id in the address, to survive a refresh and to share the link."""
    state.collections_field = state.collections_preset = None
    if collection_id is not None:
        st.query_params["collection"] = str(collection_id)
    elif "collection" in st.query_params:
        del st.query_params["collection"]


def open_dialog(name: str) -> None:
    state.collections_dialog = name


def close_dialog() -> None:
    state.collections_dialog = ""


def save_setting(collection_id: UUID, changes: dict[str, Any]) -> None:
    library.override_collection(identity, collection_id, changes)
    state.collections_done = _("Setting saved.")


def try_in_chat(collection: Collection) -> None:
    """Begin a new conversation with this collection on the page Chat."""
    state.chat_collection = collection.id
    state.collections_tries = True


def reset_settings(collection_id: UUID, names: list[str]) -> None:
    """Reset settings to the profile's values, with an undo."""
    overrides = library.collection(identity, collection_id).overrides
    before = {name: overrides[name] for name in names if name in overrides}
    if actions.attempt("collections_error", library.override_collection, identity, collection_id, resets=names):
        actions.offer_undo(
            "collections",
            ngettext(
                "{count} setting is the same as in the profile.",
                "{count} settings are the same as in the profile.",
                len(before),
            ),
            partial(library.override_collection, identity, collection_id, before),
        )


def measure_threshold(collection: Collection) -> None:
    st.toast(_("Measuring…"), icon=":material/hourglass_top:")
    attempt(_("The required similarity was measured."), lambda: services().calibrations.measure(collection))


def attempt(done: str, action: Any) -> None:
    """Run a change and confirm success. After an error, the page continues and shows the error."""
    state.collections_done = done if actions.attempt("collections_error", action) else ""


# Dialogs


@st.dialog(_("New collection"), width="large", icon=":material/library_add:", on_dismiss=close_dialog)
def ask_to_create() -> None:
    name = st.text_input(_("Name"), key="collections_new_name", placeholder=_("For example: Notices 2026"))
    profiles = name_labels({name: f"**{plain(profile_title(name))}**" for name in PROFILES})
    chosen = st.radio(
        _("Profile"),
        list(profiles),
        key="collections_new_profile",
        format_func=profiles.of,
        captions=[plain(_(profile.description)) for profile in PROFILES.values()],
    )
    profile = PROFILES[str(chosen)]
    with st.container(border=True, gap="small"):
        st.markdown(_("**What this means**"))
        st.markdown(means(profile, providers))
    options = providers.embedder_options(profile)
    ready = name_labels({option.id: embedder_line(option) for option in options if not option.missing})
    with st.container(horizontal=True, vertical_alignment="top"):
        language = st.selectbox(
            _("Language of the documents"),
            list(LANGUAGES),
            index=1 if profile.language.answer_language == "ko" else 0,
            format_func=language_name,
            key=f"collections_new_language_{profile.name}",
            help=_(
                "If the profile translates questions, questions in other languages are translated into this language."
            ),
            width=220,
        )
        embedder = st.selectbox(
            _("Search model"),
            list(ready),
            format_func=ready.of,
            key=f"collections_new_embedder_{profile.name}",
            help=_(
                "Compares questions with the passages of the documents. You can move to another model later. "
                "You see the cost before the move begins."
            ),
        )
    if missing := [option for option in options if option.missing]:
        with st.expander(_("Models that need a key first"), icon=":material/key:"):
            for option in missing:
                st.markdown(f"{plain(embedder_line(option))}  \n:small[:gray[{plain(added_by(option.provider))}]]")

    def create() -> None:
        collection = library.create_collection(
            identity, name, profile.name, embedding_model=str(embedder), language=str(language)
        )
        state.collections_done = _("Collection created.")
        open_collection(collection.id)

    actions.draw_ending(_("Create collection"), create, key="collections_new_create", on_close=close_dialog)


@st.dialog(_("Name, language and readers"), icon=":material/edit:", on_dismiss=close_dialog)
def ask_to_rename(collection: Collection) -> None:
    name = st.text_input(_("Name"), collection.name, key="collections_name")
    language = st.selectbox(
        _("Language of the documents"),
        list(LANGUAGES),
        index=list(LANGUAGES).index(collection.language) if collection.language in LANGUAGES else 0,
        format_func=language_name,
        key="collections_language",
    )
    groups = st.multiselect(
        _("Only for these groups"),
        sorted({*services().accounts.groups(identity), *collection.groups}),
        default=collection.groups,
        key="collections_groups",
        accept_new_options=True,
        placeholder=_("Everybody may read it"),
        help=_(
            "People in other groups cannot find, open or cite anything in this collection, and the figures that they "
            "see do not include it. Administrators always see the collection."
        ),
    )

    def rename() -> None:
        library.change_collection(identity, collection.id, name=name, language=str(language), groups=groups)
        state.collections_done = _("Changes saved.")

    actions.draw_ending(_("Save"), rename, key="collections_rename_save", on_close=close_dialog)


def ask_to_delete(collection: Collection, contents: CollectionContents) -> None:
    """Ask for confirmation before a collection and its contents are moved to the bin."""
    items = [
        _(
            "{documents} with {chunks}",
            documents=count(contents.documents, unit_of(collection)),
            chunks=count(contents.chunks, "passage"),
        )
    ]
    if contents.conversations:
        by = count(contents.people, "person", "people")
        conversations = count(contents.conversations, "conversation")
        items.append(_("{conversations} by {by}, including the answers", conversations=conversations, by=by))
    lost = _(
        "The collection goes to the bin for {BIN_DAYS} days. During this time, nobody can find its contents:",
        BIN_DAYS=BIN_DAYS,
    )
    ask_to_confirm(
        _("Delete this collection?"),
        f"**{plain(collection.name)}**",
        f"{lost}\n" + "".join(f"\n- {item}" for item in items),
        _("You can restore the collection as it was. The questions and their costs stay in the analytics."),
        action=_("Delete the collection with {documents}", documents=count(contents.documents, unit_of(collection))),
        on_confirm=lambda: put_in_bin(collection),
        key="collections_delete_sure",
    )


def put_in_bin(collection: Collection) -> None:
    if actions.attempt("collections_error", library.bin.put_collection, identity, collection.id):
        open_collection(None)
        actions.offer_undo(
            "collections",
            _("{name} is in the bin for {BIN_DAYS} days.", name=collection.name, BIN_DAYS=BIN_DAYS),
            partial(take_back, collection.id),
        )


def take_back(collection_id: UUID) -> None:
    """Restore a collection from the bin, and name the documents which could not be restored."""
    state.pop("collections_way_back", None)
    st.toast(_("Restoring the collection and its documents"), icon=":material/hourglass_top:")
    problems = library.bin.take_collection_back(identity, collection_id)
    if problems:
        raise InvalidInput(" ".join(problems))


@st.dialog(_("Delete this collection for good?"), icon=":material/delete_forever:", on_dismiss=close_dialog)
def ask_to_delete_for_good(binned: BinnedCollection) -> None:
    st.markdown(f"**{plain(binned.name)}**")
    lost = (
        _("{documents} with their files", documents=count(binned.documents, "document")),
        _("{conversations} with their answers", conversations=count(binned.conversations, "conversation")),
    )
    st.markdown(_("These are removed at once, and cannot be brought back:\n") + "".join(f"\n- {item}" for item in lost))
    st.caption(_("The questions and their costs stay in the analytics."))
    typed = st.text_input(_("Type the collection's name to confirm"), key="collections_delete_name")
    refusal = st.container()
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button(_("Keep it"), key="collections_keep"):
            actions.finish(close_dialog)
        is_sure = st.button(
            red(_("Delete for good")), key="collections_delete_confirmed", icon=":material/delete_forever:"
        )
    if is_sure:
        with refusal:
            actions.finish(delete_for_good, binned, typed)


def delete_for_good(binned: BinnedCollection, confirmed_name: str) -> None:
    library.delete_collection(identity, binned.id, confirmed_name=confirmed_name)
    close_dialog()
    state.collections_done = _("Collection deleted.")


# The list, and a single collection


def draw_list(collections: Sequence[Collection]) -> None:
    everything = library.contents(identity)
    with draw_head(_("Collections"), is_title=True):
        st.button(
            _("New collection"),
            key="collections_new",
            type="primary",
            icon=":material/add:",
            on_click=open_dialog,
            args=("create",),
        )
    st.caption(
        _(
            "A collection is a set of documents that are searched together, with its own rules for reading, "
            "searching and answering."
        )
    )
    if not collections:
        st.info(_("There is no collection yet. Make one to add documents to it."), icon=":material/folder_off:")
    with st.grid(3, min_column_width=300):
        for collection in collections:
            draw_card(collection, everything[collection.id])
    if binned := library.bin.collections(identity):
        draw_binned(binned)


def draw_binned(binned: Sequence[BinnedCollection]) -> None:
    """Draw the collections in the bin, each with a restore button."""
    words = ngettext("{count} deleted collection", "{count} deleted collections", len(binned))
    with st.expander(words, icon=":material/delete_outline:", key="collections_bin"):
        for collection in binned:
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                last_day = day(collection.kept_until)
                facts = [count(collection.documents, "document"), count(collection.conversations, "conversation")]
                facts.append(_("kept until {day}", day=last_day))
                st.markdown(f"**{plain(collection.name)}**  \n:small[:gray[{' · '.join(facts)}]]", width="stretch")
                st.button(
                    _("Restore"),
                    key=f"collections_restore_{collection.id}",
                    icon=":material/restore_from_trash:",
                    on_click=attempt,
                    args=(_("{name} is restored.", name=collection.name), partial(take_back, collection.id)),
                )
                st.button(
                    red(_("Delete for good")),
                    key=f"collections_purge_{collection.id}",
                    icon=":material/delete_forever:",
                    type="tertiary",
                    on_click=open_dialog,
                    args=(f"purge {collection.id}",),
                )
    chosen = [collection for collection in binned if state.collections_dialog == f"purge {collection.id}"]
    if chosen and actions.is_needed(identity):
        open_dialog("")
    elif chosen:
        ask_to_delete_for_good(chosen[0])


def unit_of(collection: Collection) -> str:
    """Return "post" for a notice board, else "document"."""
    return "post" if holds_posts(collection) else "document"


def draw_card(collection: Collection, contents: CollectionContents) -> None:
    different = len(collection.overrides)
    with st.container(border=True, height="stretch", key=f"collections_of_{collection.id}", gap="small"):
        st.markdown(
            _(
                "**{name}**  \n:gray[Profile: {profile}]",
                name=plain(collection.name),
                profile=plain(profile_title(collection.profile)),
            )
        )
        ready = "" if contents.ready == contents.documents else _(", {ready} ready", ready=thousands(contents.ready))
        st.markdown(
            f":material/description: {count(contents.documents, unit_of(collection))}{ready}  \n"
            f":material/grid_view: {count(contents.chunks, 'passage')}  \n"
            f":material/translate: {plain(language_name(collection.language))}  \n"
            f":material/scatter_plot: {plain(embedder_name(collection.embedding_model))}"
        )
        if collection.groups:
            st.markdown(
                _(":orange-badge[:material/lock: Only for {groups}]", groups=plain(", ".join(collection.groups)))
            )
        if different:
            st.markdown(_(":blue-badge[{different} changed]", different=count(different, "setting")))
        st.space("stretch")
        st.button(
            _("Settings"),
            key=f"collections_open_{collection.id}",
            icon=":material/tune:",
            on_click=open_collection,
            args=(collection.id,),
        )


def draw_opened(collection: Collection) -> None:
    profile = profile_by_name(collection.profile)
    changed = profile.with_overrides(collection.overrides)
    contents = library.contents(identity)[collection.id]
    st.button(
        _("All collections"),
        key="collections_back",
        icon=":material/arrow_back:",
        type="tertiary",
        on_click=open_collection,
        args=(None,),
    )
    with draw_head(plain(collection.name), is_title=True), st.container(horizontal=True, width="content"):
        st.button(
            _('Edit'), key="collections_rename", icon=":material/edit:", on_click=open_dialog, args=("rename",),
            help=_("Change the name, the language, and who may read this collection"),
        )  # fmt: skip
        is_deleted = st.button(
            red(_("Delete this collection")),
            key="collections_delete",
            icon=":material/delete:",
            type="tertiary",
            help=_("You can restore it from the bin for {BIN_DAYS} days.", BIN_DAYS=BIN_DAYS),
        )
    language = language_name(collection.language)
    st.markdown(
        _(
            "Profile: {name} · {language} · {embedding_model} · {documents} · {chunks}",
            name=plain(profile_title(profile.name)),
            language=plain(language),
            embedding_model=plain(embedder_name(collection.embedding_model)),
            documents=count(contents.documents, unit_of(collection)),
            chunks=count(contents.chunks, "passage"),
        )
    )
    if collection.groups:
        readers = plain(", ".join(collection.groups))
        st.markdown(
            _(
                ":orange-badge[:material/lock: Only for {readers}] Other people do not see that this collection "
                "exists.",
                readers=readers,
            )
        )
    if profile.is_personal:  # The collection is about the answering person.
        outside = partial(draw_outside, services(), identity, collection)
        draw_persona(collection, changed, outside, on_save=save_setting, on_try=try_in_chat)
    with st.container(border=True, gap="small"):
        st.markdown(_("**What this means**"))
        st.markdown(means(changed, providers, collection.embedding_model))
    moves = library.reembeddings.find(identity, collection_id=collection.id)
    if better_models(collection) or any(move.is_open or move.can_be_undone for move in moves):
        draw_moves(identity, [collection], problem="collections_error")
    try:
        embedder = providers.embedder_for(collection.embedding_model)
    except RagError as error:
        st.warning(plain(error.message), icon=":material/key:")
    else:
        draw_threshold(
            collection,
            changed,
            embedder,
            has_meaning=providers.has_meaning(collection.embedding_model),
            zone=time_zone(st.context.timezone),
            on_measure=lambda: measure_threshold(collection),
        )
    if not holds_posts(collection):  # A board has a separate page for them.
        with_folders = bool(services().settings.sync_folders)
        if source := st.query_params.pop("source", ""):  # back from signing in at a service
            state[CHOSEN] = source
        draw_sources(services().syncs, identity, collection, forms=source_forms(), with_folders=with_folders)
    draw_settings(identity, collection, profile, changed, on_save=save_setting, on_reset=reset_settings)
    if state.collections_dialog == "rename":
        ask_to_rename(collection)
    elif is_deleted and not actions.is_needed(identity):
        ask_to_delete(collection, contents)


# The page

if state.pop("collections_tries", False):
    st.switch_page("chat.py")
actions.draw_problem("collections_error", is_once=True)
actions.draw_done("collections_done")

actions.draw_undo("collections", problem="collections_error")
collections = library.collections(identity)
opened = next((c for c in collections if str(c.id) == st.query_params.get("collection")), None)
if opened is not None:
    draw_opened(opened)
else:
    draw_list(collections)
    if state.collections_dialog == "create":
        ask_to_create()
