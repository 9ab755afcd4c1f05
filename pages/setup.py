"""Set the product up: a finite checklist, provider keys, and a better model for the documents.

Keys belong to the installation; only its first company's administrators see and change them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from rag.answering.model_trials import Task as ModelTask
from rag.errors import RagError
from rag.language import N_, _, ngettext
from rag.profiles import DEFAULT
from rag.providers.registry import check_key
from rag.records.time_zones import zone_names
from rag.services import require, services
from rag.settings.providers import Capability, provider_name
from rag.storage.provider_settings import CHOSEN, PASTED
from rag.types import Role
from rag.ui import actions, language
from rag.ui.collection_profile import embedder_name
from rag.ui.embedding_moves import better_models, draw_moves
from rag.ui.formats import duration, money
from rag.ui.text import plain
from rag.ui.widgets import ask_to_confirm, draw_step, red

identity = require(Role.ADMIN)
running = services()
tenants, providers, keys = running.tenants, running.providers, running.pasted_keys
is_own = identity.tenant_id == running.settings.tenant
state = st.session_state
state.setdefault("setup_problem", "")
state.setdefault("setup_done", "")
state.setdefault("setup_keys_kept", 0)

#: Benefits of a key, by provider; other keys serve single profiles.
ADDS = {
    "openai": N_("Answers in full sentences, translation of questions, and better search."),
    "cohere": N_("Puts the best passages first."),
    "upstage": N_("Reads scanned pages, photographs and faxes."),
    "gemini": N_("For collections with the profile Notice board or Legal references."),
    "openrouter": N_("For collections with the profile Portfolio."),
}


class InstallationModel(NamedTuple):
    """A model chosen for the whole installation."""

    setting: ModelTask
    title: str
    sentence: str
    capability: Capability


MODELS = (
    InstallationModel("chat_model", N_("Answers"), N_("Writes the answers from the passages found."), "chat"),
    InstallationModel(
        "translation_model",
        N_("Translation and tags"),
        N_("Translates questions, and writes summaries and tags. A small model is enough."),
        "chat",
    ),
    InstallationModel(
        "embedding_model",
        N_("Search by meaning"),
        N_(
            "Compares questions with passages in new collections. You can move existing collections to this model "
            "below."
        ),
        "embed",
    ),
    InstallationModel(
        "rerank_model", N_("Second sorting"), N_("Reads the passages found and puts the best first."), "rerank"
    ),
)


class ChecklistItem(NamedTuple):
    """One line of the checklist."""

    title: str
    sentence: str
    is_done: bool
    page: str = ""
    button: str = ""


def attempt(done: str, action: Callable[..., object], *arguments: object) -> None:
    state.setup_done = done if actions.attempt("setup_problem", action, *arguments) else ""


# The checklist


def draw_checklist() -> None:
    """Draw the open steps until the checklist is finished."""
    progress = tenants.progress(identity)
    if progress.is_finished:
        with st.expander(_("Company"), icon=":material/apartment:", key="setup_company", on_change="rerun") as company:
            if company.open:
                draw_company(progress.name)
        return
    tasks = [
        ChecklistItem(
            _("People"), _("Invite the first colleagues."), progress.people > 1, "people.py", _("Invite people")
        ),
        ChecklistItem(
            _("First documents"),
            _("Add a handbook or a policy."),
            progress.has_documents,
            "documents.py",
            _("Add documents"),
        ),
        ChecklistItem(
            _("First question"),
            _("Ask what an employee would ask."),
            progress.has_questions,
            "chat.py",
            _("Ask a question"),
        ),
    ]
    has_key = bool(keys.fixed) or any(keys.hint(name) for name in PASTED)
    steps = len(tasks) + 2
    done = sum((progress.is_named, has_key, *(task.is_done for task in tasks)))
    with st.container(border=True, key="setup_checklist"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.header(
                ngettext("{done} of {count} step done", "{done} of {count} steps done", steps, done=done),
                anchor=False,
                width="content",
            )
            st.button(
                _("Finish") if done == steps else _("Finish without the other steps"),
                key="setup_finish",
                icon=":material/done_all:",
                type="primary" if done == steps else "secondary",
                on_click=attempt,
                args=("", tenants.finish_setup, identity),
                help=_("This hides the list of steps. You can still do each step later."),
            )
        draw_step(_("Company name"), _("The name that your colleagues know."), is_done=progress.is_named)
        draw_company(progress.name)
        draw_step(
            _("A key for a language model"),
            _("Without a key, only the built-in models are used, and answers quote the documents. Paste a key below.")
            if is_own
            else _("The operator of this installation sets the keys."),
            is_done=has_key,
        )
        for task in tasks:
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                draw_step(task.title, task.sentence, is_done=task.is_done)
                if not task.is_done:
                    st.page_link(task.page, label=plain(task.button), icon=":material/arrow_forward:", width="content")


def draw_company(name: str) -> None:
    """Draw the company's name, logo and time zone, and the administrator's language."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(_("Company name"), name, key="setup_name", width=320)
        st.button(_("Save"), key="setup_name_save", on_click=save_name)
        with st.container(width=220):
            language.draw_choice(identity, key="setup_language")
        zones = zone_names()
        zone = running.analytics.zones.name(identity)
        st.selectbox(
            _("Time zone"), zones, index=zones.index(zone) if zone in zones else 0, key="setup_zone", width=220,
            on_change=save_zone, help=_("Figures and budgets use this time zone to decide when a day or a month "
                                        "begins."),
        )  # fmt: skip
    mark = tenants.mark(identity)
    with st.container(horizontal=True, vertical_alignment="center"):
        if mark:
            st.image(mark, width=160)
        uploaded = st.file_uploader(
            _("Your company's logo, for the sidebar and the sign-in page"),
            ["png", "jpg", "jpeg", "webp"],
            key=f"setup_mark_{state.get('setup_marks', 0)}",
            max_upload_size=2,
            width=420,
            help=_(
                "A wide picture on a transparent background looks best. Hidden data in the file, such as where a "
                "photograph was taken, is removed."
            ),
        )
        if mark and st.button(red(_("Remove the logo")), key="setup_mark_remove", type="tertiary"):
            ask_to_confirm(
                _("Remove the logo?"),
                _(
                    "The sidebar and the sign-in page then show only the company's name. You can upload the logo again "
                    "later."
                ),
                action=_("Remove the logo"),
                on_confirm=lambda: remove_mark(mark),
                key="setup_mark_remove",
            )
    if uploaded is not None:
        save_mark(uploaded.getvalue())
        st.rerun()


def remove_mark(mark: bytes) -> None:
    save_mark(b"")
    actions.offer_undo("setup", _("The logo is removed."), lambda: save_mark(mark))
    state.setup_done = ""


def save_mark(picture: bytes) -> None:
    state.setup_marks = state.get("setup_marks", 0) + 1  # the box is empty again
    attempt(_("The logo is saved.") if picture else _("The logo is removed."), tenants.set_mark, identity, picture)
    state.pop("frame_mark", None)


def save_name() -> None:
    attempt(_("The name is saved."), tenants.rename, identity, state.setup_name)


def save_zone() -> None:
    attempt(_("The time zone is saved."), running.analytics.zones.set, identity, state.setup_zone)


# Keys


def draw_keys() -> None:
    """Draw each provider's key: whether a key is set and by whom, a box to paste a key, and a test button."""
    st.header(_("Keys"), anchor=False)
    st.caption(
        _(
            "Before a key is saved, a free call to the provider checks the key. Keys are stored encrypted on "
            "this server and are never shown again."
        )
    )
    for name in sorted(
        PASTED, key=lambda provider: (provider not in ADDS, list(ADDS).index(provider) if provider in ADDS else 0)
    ):
        with st.container(border=True, key=f"setup_key_{name}", gap="small"):
            hint = keys.hint(name)
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                st.markdown(f"**{provider_name(name)}** :gray[{plain(_(ADDS.get(name, '')))}]", width="content")
                if hint:
                    st.badge(_("Key set, {hint}", hint=plain(hint)), icon=":material/check_circle:", color="green")
                else:
                    st.badge(_("Not set"), color="gray")
            if name in keys.fixed:
                st.caption(
                    _(
                        "{PASTED} is set on the server. That value is used and cannot be changed here.",
                        PASTED=PASTED[name],
                    )
                )
                continue
            draw_key_form(name, has_key=bool(hint))


def draw_key_form(name: str, *, has_key: bool) -> None:
    with (
        st.form(f"setup_key_form_{name}", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        key = st.text_input(
            _("Key of {name}", name=provider_name(name)),
            type="password",
            autocomplete="off",
            # A new key of the field empties it. A refused key stays, to be corrected or tried again.
            key=f"setup_key_value_{name}_{state.setup_keys_kept}",
            width=420,
        )
        is_submitted = st.form_submit_button(_("Check and save"), icon=":material/key:")
    if is_submitted and key.strip() and not actions.is_needed(identity):
        keep_key(name, key.strip())
    if has_key:
        is_clicked = st.button(
            red(_("Remove the key of {name}", name=provider_name(name))),
            key=f"setup_key_remove_{name}",
            type="tertiary",
        )
        if is_clicked and not actions.is_needed(identity):
            ask_to_confirm(
                _("Remove the key of {name}?", name=provider_name(name)),
                _("From now on, this provider is no longer used."),
                action=_("Remove the key"),
                on_confirm=lambda: remove_key(name),
                key=f"setup_key_sure_{name}",
                icon=":material/key_off:",
            )


def keep_key(name: str, key: str) -> None:
    """Test a key with the provider, and store an accepted key."""
    with st.spinner(_("Asking {name}", name=provider_name(name))):
        problem = check_key(running.settings, name, key)
    if problem:
        state.setup_problem, state.setup_done = problem, ""
    else:
        attempt(_("The key for {name} works and is saved.", name=provider_name(name)), change_key, name, key)
        state.setup_keys_kept += bool(state.setup_done)
    st.rerun()


def remove_key(name: str) -> None:
    key, sentence = running.settings.key_of(name), _("The key of {name} is removed.", name=provider_name(name))
    actions.remove(
        "setup", sentence, lambda: change_key(name, ""), lambda _none: change_key(name, key), problem="setup_problem"
    )


def change_key(name: str, key: str) -> None:
    keys.keep(name, key)
    providers.reconnect()
    running.audit.note(identity, "provider key removed" if not key else "provider key changed", provider_name(name))
    state.setup_lists = {}


# Models


def draw_models() -> None:
    """Draw each task with its model, a choice from the provider's models, and a button to try the model."""
    st.header(_("Models"), anchor=False)
    st.caption(
        _(
            "These models are used in every collection whose settings name no model. Trying a model makes one small "
            "paid call."
        )
    )
    if not state.get("setup_with_models"):
        st.button(
            _("See and change models"),
            key="setup_models",
            icon=":material/neurology:",
            on_click=lambda: state.update(setup_with_models=True),
        )
        return
    for model in MODELS:
        draw_model(model)


def draw_model(model: InstallationModel) -> None:
    with st.container(border=True, key=f"setup_model_{model.setting}", gap="small"):
        st.markdown(f"**{plain(_(model.title))}** :gray[{plain(_(model.sentence))}]")
        lists = state.setdefault("setup_lists", {})
        if model.capability not in lists:
            with st.spinner(_("Asking for the list of models")):
                lists[model.capability] = providers.models(model.capability)
        model_list = lists[model.capability]
        in_use = used(model)
        st.caption(
            _("In use: {model}", model=plain(in_use))
            if in_use
            else _("Not in use: no provider is set up for this yet.")
        )
        if not model_list.provider:
            return
        if model_list.error:
            st.caption(plain(model_list.error))
        chosen = str(getattr(running.settings, model.setting))
        if model.setting in running.chosen_models.fixed:
            setting = CHOSEN[model.setting]
            st.caption(
                _("{setting} is set on the server. That value is used and cannot be changed here.", setting=setting)
            )
        else:
            names = [*([chosen] if chosen and chosen not in model_list.names else []), *model_list.names]
            with st.container(horizontal=True, vertical_alignment="bottom"):
                name = st.selectbox(
                    _("Model by {provider}", provider=provider_name(model_list.provider)),
                    names,
                    index=names.index(chosen) if chosen else None,
                    placeholder=_("As set in each collection"),
                    accept_new_options=True,
                    key=f"setup_model_name_{model.setting}",
                    width=420,
                )
                if st.button(
                    _("Use this model"), key=f"setup_model_save_{model.setting}", disabled=(name or "") == chosen
                ) and not actions.is_needed(identity):
                    attempt(_("The model is changed."), change_model, model.setting, name or "")
                    st.rerun()
        if in_use and st.button(
            _("Try it"), key=f"setup_model_try_{model.setting}", icon=":material/play_arrow:", type="tertiary"
        ):
            try_model(model)


def used(model: InstallationModel) -> str:
    """Return the default model for a task, with its provider. Without a model, return ""."""
    if model.setting == "embedding_model":
        return embedder_name(providers.default_embedder_id(DEFAULT))
    if model.setting == "rerank_model":
        reranker = providers.reranker_for(DEFAULT)
        return "" if reranker is None else by(reranker.model, reranker.provider)
    is_answer = model.setting == "chat_model"
    choice = providers.chat_choice(DEFAULT) if is_answer else providers.translation_choice(DEFAULT)
    return by(choice.model, choice.provider) if choice.model else ""


def by(model: str, provider: str) -> str:
    return _("{model} by {provider}", model=model, provider=provider_name(provider))


def change_model(setting: str, name: str) -> None:
    running.chosen_models.keep(setting, name)
    providers.reconnect()
    running.audit.note(identity, "model changed", f"{setting}: {name or 'as collections have it'}")


def try_model(model: InstallationModel) -> None:
    """Make a small call to a model, and show the result."""
    try:
        with st.spinner(_("Asking")):
            collection = running.choose_collection(identity.tenant_id, None)
            trial = running.model_trials.attempt(identity, collection, model.setting)
    except RagError as exc:
        st.error(plain(exc.message), icon=":material/error:")
    else:
        took = duration(trial.ms)
        st.success(
            _(
                "{model} answered in {took}. It cost {cost}.",
                model=plain(trial.model),
                took=took,
                cost=money(trial.cost),
            ),
            icon=":material/check_circle:",
        )


# Better search


def draw_better_search() -> None:
    """Offer a better embedding model for collections with a built-in model, and show the moves' progress."""
    moves = running.documents.reembeddings.find(identity)
    moved = {move.collection_id for move in moves if move.is_open or move.can_be_undone}
    collections = [c for c in running.documents.collections(identity) if c.id in moved or better_models(c)]
    if collections:
        st.header(_("Better search"), anchor=False)
        draw_moves(identity, collections, problem="setup_problem")


st.title(_("Set-up"), anchor=False)
actions.draw_problem("setup_problem")
if state.setup_done:
    st.success(plain(state.setup_done), icon=":material/check_circle:")
    state.setup_done = ""
actions.draw_undo("setup", problem="setup_problem")
draw_checklist()
draw_better_search()
if is_own:
    draw_keys()
    draw_models()
else:
    st.caption(_("Keys of providers are set by the operator of this installation."))
