"""Draw who answers in a portfolio: the person's name and facts, tone, and where others may ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import streamlit as st

from rag.answering.prompts import persona_part
from rag.language import _
from rag.profiles.profile import Profile
from rag.types import Collection
from rag.ui.actions import attempt, draw_problem
from rag.ui.text import code, plain

#: Session state key for an error until it is drawn.
PROBLEM = "collections_persona_problem"


def draw_persona(
    collection: Collection,
    changed: Profile,
    draw_outside: Callable[[], None],
    *,
    on_save: Callable[[UUID, dict[str, Any]], None],
    on_try: Callable[[Collection], None],
) -> None:
    """Draw the person with a live preview. `draw_outside` says who else may ask the collection."""
    answer = changed.answer
    # Values saved elsewhere since replace the drafts.
    kept, key = [answer.persona_name, answer.persona_facts], f"collections_persona_{collection.id}"
    state = st.session_state
    if state.get(f"{key}_was") != kept:
        state[f"{key}_was"], state[f"{key}_name"], state[f"{key}_facts"] = kept, *kept

    def save() -> None:
        values = {"persona_name": name.strip(), "persona_facts": facts.strip()}
        attempt(PROBLEM, on_save, collection.id, values)

    with st.container(border=True, gap="small", key="collections_persona"):
        st.markdown(_("**Who answers**"))
        name = st.text_input(
            _("Name"),
            key=f"{key}_name",
            max_chars=120,
            placeholder=_("The person these documents are about"),
            live=True,
            width=420,
        )
        facts = st.text_area(
            _("Facts about them"),
            key=f"{key}_facts",
            max_chars=4000,
            placeholder=_("What the documents leave out: where they live, what they look for, how to reach them."),
            height=100,
        )
        if name.strip():
            said = _("Answers speak as {name}: “I led …”, “my project …”.", name=plain(name.strip()))
        else:
            said = _("Answers are in the third person (“They led …”), with the name from the documents.")
        st.markdown(f":material/visibility: {_('**Preview**')} · {said}")
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
        draw_problem(PROBLEM, is_once=True)
        draw_outside()
