"""Widgets shared by several pages: labels, choosing a collection, questions to click.

Streamlit sends back a choice's label instead of the choice. If two labels are equal, the first option is always chosen.
Labels for things named by people are therefore made distinct here. A widget's value is read with the previous run's
labels: a label may change while its option is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from html import escape
from typing import Any, ParamSpec
from uuid import UUID

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.session_state_proxy import get_session_state

from rag.answering.labels import Labels, Option, distinct_labels
from rag.language import _, meant_by
from rag.types import Document, DocumentName
from rag.ui.formats import date_time, time_zone
from rag.ui.text import plain

P = ParamSpec("P")


def document_labels(documents: Iterable[Document | DocumentName]) -> Labels[UUID]:
    """Label documents by title. Equal titles are distinguished by file name and day."""
    zone = time_zone(st.context.timezone)
    return distinct_labels(
        documents,
        lambda document: document.id,
        lambda document: document.title,
        lambda document: document.file_name,
        lambda document: date_time(document.created_at, zone),
        missing_label=_("Deleted document"),
    )


def name_labels(names: Mapping[Option, str], *, missing_label: str = "") -> Labels[Option]:
    """Label options by name. Equal names are distinguished by the id. `missing_label` replaces an empty name."""
    missing_label = missing_label or _("No longer there")
    return distinct_labels(names.items(), lambda item: item[0], lambda item: item[1], missing_label=missing_label)


def words_of(names: Mapping[Option, str]) -> Callable[[Option], str]:
    """Return a function for `format_func`, which translates an option's name into the reader's language."""
    return lambda option: _(names[option])


def draw_head(heading: str, *, is_title: bool = False) -> DeltaGenerator:
    """Draw a heading. Return its row container, to which the caller can add buttons."""
    row = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    if is_title:
        row.title(heading, anchor=False, width="content")
    else:
        row.header(heading, anchor=False, width="content")
    return row


def choose_word(
    label: str, words: Mapping[Option, str], *, key: str, default: Option, help_text: str | None = None
) -> Option:
    """Draw a small choice between the product's words, without the label. The query parameters store the choice."""
    chosen = st.segmented_control(
        label,
        list(words),
        default=default,
        required=True,
        format_func=words_of(words),
        key=key,
        help=help_text,
        label_visibility="collapsed",
        bind="query-params",
    )
    return default if chosen is None else chosen


def search_box(label: str, *, key: str, **options: Any) -> str:
    """Draw a search box with its label inside, and return the text. `options` go to `st.text_input`."""
    hidden = {"placeholder": label, "label_visibility": "collapsed"}
    return st.text_input(label, type="search", key=key, **hidden | options) or ""


def filter_box(label: str, names: Mapping[Option, str], *, everything: str, key: str, **options: Any) -> Option | None:
    """Draw a filter without a label, and return the choice. While the choice is `None`, the box shows `everything`.

    `names` has a label for each choice. `options` go to `st.selectbox`.
    """
    labels = name_labels(names)
    look = {"index": None, "placeholder": everything, "label_visibility": "collapsed"}
    return st.selectbox(label, list(labels), format_func=labels.of, key=key, **look | options)


def draw_step(title: str, words: str, *, is_done: bool) -> None:
    """Draw a checklist's step: a title and a remark, with a tick if the step is done."""
    icon = ":green[:material/check_circle:]" if is_done else ":gray[:material/radio_button_unchecked:]"
    st.markdown(f"{icon} **{plain(title)}** :gray[{plain(words)}]", width="content")


def draw_empty(icon: str, heading: str, sentence: str) -> None:
    """Draw a frame for an empty page: a bold heading with an icon, and a sentence with the next step."""
    with st.container(border=True, horizontal_alignment="center"):
        st.space("small")
        st.markdown(f"{icon} {heading}", width="content")
        st.caption(sentence, width="content", text_alignment="center")
        st.space("small")


def read_address(words: Mapping[str, Iterable[str]]) -> None:
    """Translate choices in the query parameters into the reader's language, so a link works for everyone.

    A widget bound to a query parameter stores the label in the sender's language. `words` maps such widgets' keys to
    their English labels. Call this before the first of them is drawn.
    """
    chosen = {key: st.query_params[key] for key in words if key in st.query_params}
    changed = False
    for key, text in chosen.items():
        if text not in {_(message) for message in words[key]} and (message := meant_by(text, words[key])):
            with get_session_state().query_params() as address:
                # Back and Forward bring words in a different language to a widget already drawn.
                if (binding := address.get_binding_for_param(key)) is not None:
                    address.unbind_widget(binding.widget_id)
                    st.session_state.pop(key, None)
                address[key] = _(message)
            changed = True
    if changed:
        st.rerun()  # Widgets read the query parameters as they were at the start of the run.


def forget_unused_widgets() -> None:
    """At the end of a full run, drop the callbacks of widgets which are no longer drawn.

    Streamlit forgets such widgets' values but keeps their callbacks until the tab closes. A page's callback holds every
    name in its run: messages, sources, answers. With each question, a tab would keep another run in memory.
    """
    context = get_script_run_ctx()
    if context is None or context.fragment_ids_this_run:
        return
    drawn = context.shared.widget_ids_this_run.snapshot()
    state = context.session_state
    with state._lock:  # noqa: SLF001 - the kept state of a widget has no public access
        widget_state = state._state._new_widget_state  # noqa: SLF001
        widget_state.widget_metadata = {
            name: metadata for name, metadata in widget_state.widget_metadata.items() if name in drawn
        }


def dialog(title: str, **options: Any) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Return a decorator which makes a function a dialog, with its title in the opener's language."""

    def decorate(draw: Callable[P, None]) -> Callable[P, None]:
        @wraps(draw)
        def opened(*arguments: P.args, **named: P.kwargs) -> None:
            st.dialog(_(title), **options)(draw)(*arguments, **named)

        return opened

    return decorate


def drawn(labels: Labels[Option]) -> Callable[[Option], str]:
    """Return a function for `format_func` which escapes labels, for widgets which show them as Markdown: pills, radio
    buttons.
    """
    return lambda option: plain(labels.of(option))


def keep_chosen(key: str) -> None:
    """Keep a widget's choice even if the options or labels changed in this run.

    Call this before the widget is drawn. The choice is read with the labels in the browser, and sent with this run's
    labels.
    """
    if key in st.session_state:
        st.session_state[key] = st.session_state[key]


def choose_collection(
    names: Mapping[UUID, str],
    *,
    key: str,
    label: str = "",
    chosen: UUID | None = None,
    everything: str = "",
    **options: Any,
) -> UUID | None:
    """Draw the choice of a collection by name, and return the chosen collection.

    Args:
        chosen: The preselected collection; the first if None.
        everything: The text in the empty box. With it, nothing is preselected without `chosen`, the label is hidden,
            and None is returned until a person chooses.
        options: Further options of `st.selectbox`, such as `width`.
    """
    labels = name_labels(names, missing_label=_("Deleted collection"))
    keep_chosen(key)
    selected = st.selectbox(
        label or _("Collection"),
        list(labels),
        index=list(labels).index(chosen) if chosen is not None else None if everything else 0,
        placeholder=everything or None,
        format_func=labels.of,
        key=key,
        label_visibility="collapsed" if everything else "visible",
        **options,
    )
    # After a change of labels, the browser returns an unknown label as text.
    return selected if isinstance(selected, UUID) else None


def ask_to_confirm(
    title: str,
    *sentences: str,
    action: str,
    on_confirm: Callable[[], None],
    key: str,
    icon: str = ":material/delete:",
    keeps: str = "",
) -> None:
    """Ask for confirmation before a destructive action, with the safe choice first.

    `sentences` are Markdown and say how much is lost. `action` is the label of the red button.
    """

    @st.dialog(title, icon=icon)
    def question() -> None:
        for sentence in sentences:
            st.markdown(sentence)
        with st.container(horizontal=True, horizontal_alignment="right"):
            if st.button(keeps or _("Keep it"), key=f"{key}_keep"):
                st.rerun()
            if st.button(red(action), key=f"{key}_confirmed", icon=icon, on_click=on_confirm):
                st.rerun()

    question()


def draw_end_button(label: str, state_key: str) -> None:
    """Draw the final button of a dialog which shows a secret once.

    A click removes the secret from `st.session_state[state_key]`. It is not removed earlier, because a rerun of the
    page before the click would then lose it.
    """
    if st.button(label, key=f"{state_key}_done", type="primary", on_click=st.session_state.pop, args=(state_key, None)):
        st.rerun()


def draw_secret(secret: str, advice: str, label: str, state_key: str) -> None:
    """Draw a secret to copy, the advice, and the dialog's final button (`draw_end_button`)."""
    st.code(secret, language=None, wrap_lines=True)
    st.caption(advice)
    draw_end_button(label, state_key)


def draw_copy_button(text: str, label: str = "") -> None:
    """Draw a button to copy a text. The button on a code block would be visible only under the mouse."""
    st.html(copy_button(text, label or _("Copy"), _("Copied")))


def copy_button(text: str, label: str, done: str) -> str:
    """Build the HTML for a copy button, handled by the frame's script."""
    look = "padding:.4rem .8rem;border-radius:10px;border:1px solid rgba(128,138,165,.45)"
    return (
        f'<button type="button" class="hr-copy" data-copy="{escape(text, quote=True)}" '
        f'data-done="{escape(done, quote=True)}" style="{look}"><span>{escape(label)}</span></button>'
    )


def red(label: str) -> str:
    return f":red[{label}]"


def draw_question_buttons(questions: Sequence[str], *, key: str, on_ask: Callable[[str], None]) -> None:
    """Draw a button per question. Pills are not used, because a phone would cut them off."""
    with st.container(key=key, gap="xsmall"):
        for number, question in enumerate(questions):
            st.button(plain(question), key=f"{key}_{number}", on_click=on_ask, args=(question,), wrap=True)
