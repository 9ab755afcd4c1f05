"""Set the product up: a checklist that ends, the keys of providers, and a better model for the documents.

Keys are the installation's; only administrators of its first company see and change them.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from rag.language import _
from rag.profiles import profile_of
from rag.providers.registry import check_key
from rag.services import require, services
from rag.settings.providers import provider_name
from rag.storage.pasted_keys import PASTED
from rag.types import Role
from rag.ui import actions, language
from rag.ui.collection_profile import embedder_line
from rag.ui.document_steps import draw_reembedding
from rag.ui.text import plain
from rag.ui.widgets import ask_to_confirm, red

identity = require(Role.ADMIN)
running = services()
tenants, providers, keys = running.tenants, running.providers, running.pasted_keys
is_own = identity.tenant_id == running.settings.tenant
state = st.session_state
state.setdefault("setup_problem", "")
state.setdefault("setup_done", "")

#: What a key adds, by provider; the others are for single profiles.
ADDS = {
    "openai": "Answers in full sentences, translation of questions, and better search.",
    "cohere": "Puts the best passages first.",
    "upstage": "Reads scanned pages. It counts after the next start.",
    "gemini": "For notice boards and legal references.",
    "openrouter": "For portfolios.",
}


class Task(NamedTuple):
    """One line of the checklist."""

    title: str
    sentence: str
    is_done: bool
    page: str = ""
    button: str = ""


def attempt(done: str, action: object, *arguments: object) -> None:
    state.setup_done = ""
    if callable(action) and actions.attempt("setup_problem", action, *arguments):
        state.setup_done = done


# The checklist


def draw_checklist() -> None:
    """Draw what is left to do; nothing once it was ended."""
    progress = tenants.progress(identity)
    if progress.is_finished:
        return
    tasks = [
        Task("People", "Invite the first colleagues.", progress.people > 1, "people.py", "Invite people"),
        Task("First documents", "Add a handbook or a policy.", progress.has_documents, "documents.py", "Add documents"),
        Task("First question", "Ask what an employee would ask.", progress.has_questions, "chat.py", "Ask a question"),
    ]
    has_key = bool(keys.fixed) or any(keys.hint(name) for name in PASTED)
    done = sum((progress.is_named, has_key, *(task.is_done for task in tasks)))
    with st.container(border=True, key="setup_checklist"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(
                _("{done} of {value} steps done", done=done, value=len(tasks) + 2), anchor=False, width="content"
            )
            st.button(
                _("Finish") if done == len(tasks) + 2 else _("Finish without the rest"),
                key="setup_finish",
                icon=":material/done_all:",
                type="primary" if done == len(tasks) + 2 else "secondary",
                on_click=attempt,
                args=("", tenants.finish_setup, identity),
                help=_("This list is not shown any more. Everything can be done later as well."),
            )
        draw_mark(progress.is_named, "Company name", "As your colleagues know it.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(_("Company name"), progress.name, key="setup_name", max_chars=120, width=320)
            st.button(_("Save"), key="setup_name_save", on_click=save_name)
            with st.container(width=220):
                language.draw_choice(identity, key="setup_language")
        sentence = (
            "Without one everything is built in, and answers quote the documents."
            if is_own
            else ("The operator of this installation sets them.")
        )
        draw_mark(has_key, "A key for a language model", sentence)
        for task in tasks:
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                draw_mark(task.is_done, task.title, task.sentence)
                if not task.is_done:
                    st.page_link(task.page, label=plain(task.button), icon=":material/arrow_forward:", width="content")


def draw_mark(is_done: bool, title: str, sentence: str) -> None:
    icon = ":green[:material/check_circle:]" if is_done else ":gray[:material/radio_button_unchecked:]"
    st.markdown(f"{icon} **{plain(title)}** :gray[{plain(sentence)}]", width="content")


def save_name() -> None:
    attempt("The name is saved.", tenants.rename, identity, state.setup_name)


# Keys


def draw_keys() -> None:
    """Draw each provider's key: whether it is set and by whom, a box to paste one, and a button to try it."""
    st.subheader(_("Keys"), anchor=False)
    st.caption(
        _(
            "A key is kept encrypted on this server and is never shown again. Before it is kept, the "
            "provider is asked by a call that costs nothing."
        )
    )
    for name in sorted(
        PASTED, key=lambda provider: (provider not in ADDS, list(ADDS).index(provider) if provider in ADDS else 0)
    ):
        with st.container(border=True, key=f"setup_key_{name}", gap="small"):
            hint = keys.hint(name)
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                st.markdown(f"**{provider_name(name)}** :gray[{plain(ADDS.get(name, ''))}]", width="content")
                if hint:
                    st.badge(_("Set, {hint}", hint=plain(hint)), icon=":material/check_circle:", color="green")
                else:
                    st.badge(_("Not set"), color="gray")
            if name in keys.fixed:
                st.caption(_("{PASTED} is set where this product is started, and that counts.", PASTED=PASTED[name]))
                continue
            draw_key_form(name, has_key=bool(hint))


def draw_key_form(name: str, *, has_key: bool) -> None:
    with (
        st.form(f"setup_key_form_{name}", border=False, clear_on_submit=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        key = st.text_input(
            _("Key of {name}", name=provider_name(name)),
            type="password",
            autocomplete="off",
            key=f"setup_key_value_{name}",
            width=420,
        )
        is_given = st.form_submit_button(_("Check and keep"), icon=":material/key:")
    if is_given and key.strip() and not actions.is_needed(identity):
        keep_key(name, key.strip())
    if has_key:
        is_asked = st.button(
            red(_("Remove the key of {name}", name=provider_name(name))),
            key=f"setup_key_remove_{name}",
            type="tertiary",
        )
        if is_asked and not actions.is_needed(identity):
            ask_to_confirm(
                f"Remove the key of {provider_name(name)}?",
                ["Nothing asks this provider any more. You can paste the key again."],
                does="Remove the key",
                on_confirm=lambda: remove_key(name),
                key=f"setup_key_sure_{name}",
                icon=":material/key_off:",
            )


def keep_key(name: str, key: str) -> None:
    """Ask the provider with a key, and keep it where it answers."""
    with st.spinner(_("Asking {name}", name=provider_name(name))):
        problem = check_key(running.settings, name, key)
    if problem:
        state.setup_problem, state.setup_done = problem, ""
    else:
        attempt(f"{provider_name(name)} answers with this key, and it is kept.", change_key, name, key)
    st.rerun()


def remove_key(name: str) -> None:
    attempt(f"The key of {provider_name(name)} is removed.", change_key, name, "")


def change_key(name: str, key: str) -> None:
    keys.keep(name, key)
    providers.reconnect()
    running.audit.note(identity, "provider key removed" if not key else "provider key changed", provider_name(name))


# Better search


def draw_moves() -> None:
    """Offer each collection on the built-in embedder the best model there is a key for."""
    library = running.documents
    moves = library.reembeddings.find(identity)
    for collection in library.collections(identity):
        open_moves = [move for move in moves if move.collection_id == collection.id]
        is_builtin = collection.embedding_model.startswith("builtin/")
        options = [
            o for o in providers.embedder_options(profile_of(collection)) if not o.missing and o.provider != "builtin"
        ]
        if not open_moves and not (is_builtin and options):
            continue
        with st.container(border=True, key=f"setup_move_{collection.id}"):
            if is_builtin and not any(move.is_open for move in open_moves):
                st.markdown(
                    _(
                        "**{name}** is searched with the built-in model. {options} would find more.",
                        name=plain(collection.name),
                        options=plain(embedder_line(options[0])),
                    )
                    if options
                    else plain(collection.name)
                )
            draw_reembedding(
                collection,
                open_moves,
                options,
                on_estimate=lambda c, model: attempt("", library.reembeddings.estimate, identity, c.id, model),
                on_confirm=lambda move: attempt("", library.reembeddings.confirm, identity, move.id),
                on_cancel=lambda move: attempt("", library.reembeddings.cancel, identity, move.id),
                on_undo=lambda move: attempt("", library.reembeddings.undo, identity, move),
                on_clean_up=lambda c: attempt("", library.reembeddings.clean_up, identity, c.id),
            )


st.title(_("Set-up"), anchor=False)
if state.setup_problem:
    st.error(plain(state.setup_problem), icon=":material/error:")
if state.setup_done:
    st.success(plain(state.setup_done), icon=":material/check_circle:")
draw_checklist()
if is_own:
    draw_keys()
else:
    st.caption(_("Keys of providers are set by the operator of this installation."))
draw_moves()
