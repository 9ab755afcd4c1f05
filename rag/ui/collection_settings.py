"""Draw a collection's settings form: each value, the differences from the profile, and a dialog for editing.

A portfolio also gets a form for the person who answers: name and facts, tone, and the sites on which visitors may ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import streamlit as st

from rag.answering.prompts import persona_part
from rag.errors import InvalidInput, RagError
from rag.language import N_, _, listed
from rag.profiles.profile import GROUPS, SETTINGS, Profile, Setting
from rag.services import services
from rag.settings.providers import BY_NAME, provider_name
from rag.types import Collection, Identity
from rag.ui.actions import attempt, draw_ending, draw_problem
from rag.ui.collection_changes import Save, changes_of, draw_presets, draw_preview, preset_by_name
from rag.ui.collection_profile import CUTS
from rag.ui.formats import count
from rag.ui.forms import draw_field
from rag.ui.text import code, plain
from rag.ui.widgets import draw_head, name_labels

CHANGED = N_("Changed")
#: Choice values, in an administrator's words.
CHOICES = {
    "chunking_method": CUTS,
    "pdf_type": {
        "auto": N_("pages without text"),
        "scanned": N_("every page"),
        "digital": N_("no page"),
    },
    "search_type": {"vector": N_("by meaning"), "hybrid": N_("by meaning and by keywords")},
    "threshold_mode": {
        "absolute": N_("a fixed value"),
        "calibrated": N_("the value measured on this collection"),
        "embedder": N_("the default of the search model"),
    },
    "fusion": {
        "weighted": N_("by weights, with keyword scores relative to the best score"),
        "raw": N_("by weights, with keyword scores unchanged"),
        "rrf": N_("by place in the result lists"),
    },
    "tokenizer": {"languages": N_("by the rules of each language"), "plain": N_("every word as it is")},
    "korean_analyser": {"bigrams": N_("by rules, without a dictionary"), "kiwi": N_("by dictionary (kiwipiepy)")},
}


#: Longer values are cut in the list; the dialog shows them whole.
SHOWN_CHARACTERS = 90


Reset = Callable[[UUID, list[str]], None]


def draw_settings(
    identity: Identity, collection: Collection, profile: Profile, changed: Profile, *, on_save: Save, on_reset: Reset
) -> None:
    """Draw the presets, a choice of settings groups, and the chosen group's settings.

    Settings which differ from the profile form a further group.
    """
    draw_presets(collection, profile, on_open=lambda name: _open(preset=name))
    different = profile.differences(changed)
    options = [*GROUPS, *([CHANGED] if different else [])]
    with draw_head(_("Settings")):
        if different:
            st.button(
                _("Reset all {different}", different=len(different)) if len(different) > 1 else _("Reset"),
                key="collections_reset_all",
                icon=":material/restart_alt:",
                type="tertiary",
                on_click=on_reset,
                args=(collection.id, list(different)),
            )
    names = name_labels({name: f"{_(CHANGED)} ({len(different)})" if name == CHANGED else _(name) for name in options})
    group = st.pills(
        _("Settings"),
        list(names),
        default=CHANGED if different else GROUPS[0],
        required=True,
        format_func=names.of,
        # The first change adds a choice, so the widget needs a new key.
        key=f"collections_group_{collection.id}_{bool(different)}",
        label_visibility="collapsed",
    )
    in_group = [f for f in SETTINGS.values() if (f.name in different if group == CHANGED else f.group == group)]
    used = [f for f in in_group if f.name in different or _is_used(f, changed)]
    with st.container(border=True, gap="small", key="collections_settings"):
        for field in used:
            _draw_field(field, collection, profile, changed, on_reset)
        unused = [field for field in in_group if field not in used]
        if unused:
            with st.expander(
                _("{unused} (empty or without effect here)", unused=count(len(unused), "more setting")),
                key=f"collections_unused_{group}",
                on_change="rerun",
            ) as more:
                if more.open:
                    for field in unused:
                        _draw_field(field, collection, profile, changed, on_reset)
    if name := st.session_state.get("collections_field"):
        _change(SETTINGS[name], identity, collection, profile, changed, on_save)
    elif name := st.session_state.get("collections_preset"):
        _choose(name, identity, collection, profile, changed, on_save)


def _is_used(field: Setting, profile: Profile) -> bool:
    return field.has_effect(profile) and not is_left_out(profile.value(field.name))


def _draw_field(field: Setting, collection: Collection, profile: Profile, changed: Profile, on_reset: Reset) -> None:
    profile_value, value = profile.value(field.name), changed.value(field.name)
    differs = profile_value != value
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        label = f"**{plain(_(field.title))}**" + (_(" :blue-badge[Changed]") if differs else "")
        note = (
            _("Value in the profile: {field}.", field=_with_unit(field, profile_value))
            if differs
            else _help_text(field, changed)
        )
        st.markdown(f"{label}  \n:small[:gray[{plain(note)}]]" if note else label, width=360)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right", width="content"):
            st.markdown(code(_with_unit(field, value)), width="content")
            if differs:
                st.button(
                    _("Reset"),
                    key=f"collections_reset_{field.name}",
                    icon=":material/restart_alt:",
                    type="tertiary",
                    on_click=on_reset,
                    args=(collection.id, [field.name]),
                )
            st.button(
                _("Change"),
                key=f"collections_change_{field.name}",
                icon=":material/lock:" if field.locked else ":material/edit:",
                type="tertiary",
                disabled=bool(field.locked),
                help=_("This setting cannot be changed: {locked}.", locked=plain(_(field.locked)))
                if field.locked
                else None,
                on_click=_open,
                kwargs={"field": field.name},
            )


def _help_text(field: Setting, profile: Profile) -> str:
    """Return the help for a setting. If the setting has no effect at present, the help says which setting to change."""
    if field.only_with is None or field.has_effect(profile):
        return _(field.help)
    other, values = field.only_with
    named = SETTINGS[other]
    words = listed((_("on") if value is True else choice_name(named, str(value)) for value in values), style="or")
    return _(
        "{help} This has an effect only if “{title}” is set to: {words}.",
        help=_(field.help),
        title=_(named.title),
        words=words,
    ).strip()


def _open(*, field: str | None = None, preset: str | None = None) -> None:
    st.session_state.collections_field = field
    st.session_state.collections_preset = preset


def _close() -> None:
    _open()


def _choose(
    name: str, identity: Identity, collection: Collection, profile: Profile, changed: Profile, on_save: Save
) -> None:
    preset = preset_by_name(name)
    changes = changes_of(preset, profile, collection) if preset else {}
    if preset is None or not changes:
        return

    @st.dialog(_(preset.title), icon=preset.icon, width="large", on_dismiss=_close)
    def ask() -> None:
        st.markdown(plain(_(preset.effect)))
        st.markdown(
            "\n".join(
                f"- {plain(_(SETTINGS[name].title))}: {code(_with_unit(SETTINGS[name], changed.value(name)))} "
                f":material/arrow_forward: {code(_with_unit(SETTINGS[name], value))}"
                for name, value in changes.items()
            )
        )
        draw_preview(services().previews, identity, collection, changed, changes)
        save = partial(on_save, collection.id, dict(changes))
        draw_ending(_("Save"), save, key="collections_preset_save", on_close=_close)

    ask()


def _change(
    field: Setting, identity: Identity, collection: Collection, profile: Profile, changed: Profile, on_save: Save
) -> None:
    @st.dialog(_(field.title), icon=":material/tune:", width="large", on_dismiss=_close)
    def ask() -> None:
        if field.help:
            st.caption(plain(_(field.help)))
        value = _widget(field, changed.value(field.name))
        st.caption(_("Value in the profile: {field}.", field=plain(_with_unit(field, profile.value(field.name)))))
        if field.new_documents_only:
            st.caption(f":material/info: {_('This applies to documents added from now on.')}")
        _draw_trial(field, value, identity, collection, changed)

        def save() -> None:
            on_save(collection.id, {field.name: _typed(field, value)})

        draw_ending(_("Save"), save, key="collections_field_save", on_close=_close)

    ask()


def _draw_trial(field: Setting, value: Any, identity: Identity, collection: Collection, changed: Profile) -> None:
    try:
        typed = _typed(field, value)
        is_other = changed.with_overrides({field.name: typed}).value(field.name) != changed.value(field.name)
    except RagError:
        return  # saving reports the error
    if is_other:
        draw_preview(services().previews, identity, collection, changed, {field.name: typed})


def _typed(field: Setting, value: Any) -> Any:
    return value_from(field, value) if isinstance(value, str) else value


def _widget(field: Setting, value: Any) -> Any:
    key = f"collections_value_{field.name}"
    if field.kind == "choice":
        words = name_labels({choice: plain(choice_name(field, choice)) for choice in field.choices})
        chosen = st.radio(_(field.title), list(words), index=field.choices.index(value), key=key, format_func=words.of)
        return str(chosen)
    input_field = replace(field, title=N_("On") if field.kind == "switch" else field.title, help="")
    if field.kind not in LISTS:
        return draw_field(input_field, value, key=key)
    one_per_line = replace(input_field, kind="lines", help=N_("One per line."))
    return draw_field(one_per_line, _lines(field, value), key=key, height=180)


def _with_unit(field: Setting, value: Any) -> str:
    is_amount = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{_short(field, value)} {_(field.unit)}" if field.unit and is_amount else _short(field, value)


def _short(field: Setting, value: Any) -> str:
    formatted = shown_value(field, value)
    return formatted if len(formatted) <= SHOWN_CHARACTERS else f"{formatted[: SHOWN_CHARACTERS - 1]}…"


def choice_name(field: Setting, value: str) -> str:
    """Return the displayed name for a setting's choice."""
    if words := CHOICES.get(field.name, {}).get(value):
        return _(words)
    return provider_name(value) if value in BY_NAME else value


LISTS = ("words", "pairs", "patterns", "steps", "boosts", "factors")


EMPTY = N_("None")


def shown_value(field: Setting, value: Any) -> str:
    """Write a setting's value on a single line; an empty value is written `"None"`."""
    if isinstance(value, bool):
        return _("On") if value else _("Off")
    if value is None or value in ("", ()):
        return _(EMPTY)
    if isinstance(value, int | float):
        return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    if field.kind in LISTS:
        return " · ".join(_lines(field, value))
    return choice_name(field, value) if field.kind == "choice" else _escaped(str(value))


def text_of(field: Setting, value: Any) -> str:
    """Write a setting's value for editing: a list has a line for each item."""
    return "\n".join(_lines(field, value)) if field.kind in LISTS else str(value)


def value_from(field: Setting, text: str) -> Any:
    """Parse typed text into a setting's value. Raises `InvalidInput` naming the unreadable line."""
    if field.kind not in LISTS:
        return text
    return [_item(field, line) for line in text.splitlines() if line.strip()]


def is_left_out(value: Any) -> bool:
    """Return whether a value counts as not set: `None`, 0, "" or an empty tuple."""
    return value is None or (not isinstance(value, bool) and value in (0, "", ()))


def _lines(field: Setting, value: Any) -> list[str]:
    if field.kind == "words":
        # Quote an item with spaces at an end, and an empty item: both would be invisible.
        return [_escaped(item) if item and item == item.strip(" ") else f'"{_escaped(item)}"' for item in value]
    if field.kind == "factors":
        return [f"{item:g}" for item in value]
    if field.kind == "patterns":
        return [f"{_escaped(pattern)} = {', '.join(categories)}" for pattern, categories in value]
    return [
        f"{_escaped(str(name))} = {_escaped(f'{item:g}' if isinstance(item, float) else item)}" for name, item in value
    ]


def _item(field: Setting, line: str) -> Any:
    if field.kind == "words":
        is_quoted = len(line.strip()) >= 2 and line.strip()[0] == line.strip()[-1] == '"'
        return _unescaped(line.strip()[1:-1] if is_quoted else line.strip())
    try:
        if field.kind == "factors":
            return float(line)
        # A pattern may contain "=", so split at the last; a name may not, so split at the first.
        name, sign, item = line.rpartition("=") if field.kind == "patterns" else line.partition("=")
        if not sign:
            raise ValueError
        name, item = name.strip(), item.strip()
        if field.kind == "patterns":
            return [name, [category.strip() for category in item.split(",") if category.strip()]]
        if field.kind == "steps":
            return [int(name), float(item)]
        return [name, float(item) if field.kind == "boosts" else _unescaped(item)]
    except ValueError as exc:
        raise InvalidInput(
            f"{_(field.title)}: the line “{line.strip()}” cannot be read. Enter {_(field.accepted)}."
        ) from exc


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in text else text


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\\\", "\\") if "\\n" in text else text


#: Session state key for an error until it is drawn.
PERSONA_PROBLEM = "collections_persona_problem"


def draw_persona(
    collection: Collection,
    changed: Profile,
    draw_outside: Callable[[], None],
    *,
    on_save: Callable[[UUID, dict[str, Any]], None],
    on_try: Callable[[Collection], None],
) -> None:
    """Draw the form for the person whom a portfolio's answers speak for, with a live preview.

    `draw_outside` draws the websites and public pages on which visitors may ask the collection.
    """
    answer = changed.answer
    # Values saved elsewhere since replace the drafts.
    saved, key = [answer.persona_name, answer.persona_facts], f"collections_persona_{collection.id}"
    state = st.session_state
    if state.get(f"{key}_was") != saved:
        state[f"{key}_was"], state[f"{key}_name"], state[f"{key}_facts"] = saved, *saved

    def save() -> None:
        values = {"persona_name": name.strip(), "persona_facts": facts.strip()}
        attempt(PERSONA_PROBLEM, on_save, collection.id, values)

    with st.container(border=True, gap="small", key="collections_persona"):
        st.markdown(_("**Who answers**"))
        name = st.text_input(
            _("Name"),
            key=f"{key}_name",
            placeholder=_("The person these documents are about"),
            live=True,
            width=420,
        )
        facts = st.text_area(
            _("Facts about this person"),
            key=f"{key}_facts",
            placeholder=_(
                "Facts that are not in the documents: where this person lives, what they look for, how to reach them."
            ),
            height=100,
        )
        if name.strip():
            preview = _("Answers speak as {name}: “I led …”, “my project …”.", name=plain(name.strip()))
        else:
            preview = _("Answers are in the third person (“They led …”), with the name from the documents.")
        st.markdown(f":material/visibility: {_('**Preview**')} · {preview}")
        with st.expander(_("Instructions to the language model"), icon=":material/description:"):
            st.markdown(code(persona_part(name, facts).strip()))
        is_changed = [name.strip(), facts.strip()] != [answer.persona_name, answer.persona_facts]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                _("Save"),
                key=f"{key}_save",
                type="primary" if is_changed else "secondary",
                disabled=not is_changed,
                icon=":material/check:",
                on_click=save,
            )
            st.button(
                _("Try it in the chat"),
                key=f"{key}_try",
                icon=":material/forum:",
                disabled=is_changed,
                help=_("Save first: the chat uses the saved settings.") if is_changed else None,
                on_click=on_try,
                args=(collection,),
            )
        draw_problem(PERSONA_PROBLEM, is_once=True)
        draw_outside()
