"""Draw the widgets: tag, limits and preview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

import streamlit as st

from rag.integrations.channels.widget.widgets import Widget, WidgetChange, Widgets
from rag.language import N_, _, ngettext
from rag.types import Collection, Identity
from rag.types.fields import fields_of, validated
from rag.ui import actions, lists
from rag.ui.formats import money
from rag.ui.forms import draw_field, draw_fields, entered
from rag.ui.text import plain
from rag.ui.widgets import dialog, draw_head, name_labels, red

ABOUT = N_(
    "A widget answers questions from one collection, on other websites or on a public page. Visitors do not sign in. A "
    "new widget is off until you turn it on, and has its own limits."
)
ERROR = "programs_widget_problem"
#: The form's fields, in pairs.
CHANGE = fields_of(
    WidgetChange, "name", "title", "sites", "greeting", "requests_per_minute", "questions_per_day", "budget", "has_page"
)


def draw_widgets(widgets: Widgets, identity: Identity, collections: Sequence[Collection], base: str) -> None:
    with draw_head(_("Widgets")):
        is_clicked = st.button(_("Add a widget"), key="programs_widget_add", icon=":material/chat_add_on:")
        if is_clicked and not actions.is_needed(identity):
            _ask_for_widget(widgets, identity, collections)
    st.caption(_(ABOUT))
    rows = widgets.list(identity)
    if not rows:
        st.caption(_("There is no widget yet."))
        return
    chosen = _draw_table(rows)
    if chosen is None:
        st.caption(
            _("Select a row (Shift + Space on the keyboard) to change a widget and to see the code for your website.")
        )
        return
    draw_widget(widgets, identity, chosen, base)


def _draw_table(rows: Sequence[Widget]) -> Widget | None:
    return lists.choose_row(
        rows,
        {
            _("Name"): [widget.name for widget in rows],
            _("Collection"): [widget.collection_name for widget in rows],
            _("Websites"): [", ".join(widget.sites) for widget in rows],
            _("Status"): [_("On") if widget.is_active else _("Off") for widget in rows],
            _("Public page"): [_("Yes") if widget.has_page else _("No") for widget in rows],
            _("Questions today"): [widget.asked_today for widget in rows],
            _("Spent this month"): [money(widget.spent) for widget in rows],
        },
        key="programs_widgets",
        alt=_("Widgets with collection, websites, questions and costs"),
    )


def draw_widget(widgets: Widgets, identity: Identity, widget: Widget, base: str) -> None:
    """Draw a widget's tag, settings and actions."""
    key = f"programs_widget_{widget.id}"

    @actions.attempted("programs_error")
    def switch() -> None:
        widgets.change(identity, widget.id, WidgetChange(is_active=not widget.is_active))

    @actions.attempted("programs_error")
    def save() -> None:
        widgets.change(identity, widget.id, validated(WidgetChange, entered(CHANGE.values(), key)))

    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(widget.name)}**", width="content")
            st.button(
                _("Turn off") if widget.is_active else _("Turn on"),
                key=f"{key}_switch",
                type="secondary" if widget.is_active else "primary",
                icon=":material/power_settings_new:",
                on_click=switch,
            )
            if widget.is_active and widget.has_page:
                st.link_button(
                    _("Open the public page"), f"{base}/widget?key={widget.public_key}", icon=":material/open_in_new:"
                )
            label = red(_("Remove {name}", name=plain(widget.name)))
            if st.button(label, key=f"{key}_remove", icon=":material/delete:"):
                _ask_to_remove(widgets, identity, widget)
        st.markdown(_("Put this code into the pages of your websites:"))
        st.code(f'<script src="{base}/widget.js" data-key="{widget.public_key}" async></script>', language="html")
        if not widget.sites:
            st.caption(_("No website may show the assistant yet. Add the websites below."))
        with st.form(f"{key}_form", border=False):
            title = replace(CHANGE["title"], example=widget.name)
            draw_fields((CHANGE | {"title": title}).values(), key, vars(widget), columns=2)
            st.form_submit_button(_("Save"), icon=":material/save:", on_click=save)


@dialog(N_("Add a widget"), icon=":material/chat_add_on:")
def _ask_for_widget(widgets: Widgets, identity: Identity, collections: Sequence[Collection]) -> None:
    state = st.session_state
    named = {collection.id: collection for collection in collections if not collection.groups}
    if not named:
        st.info(_("There is no collection that everybody may read. First open a collection to everybody."))
        return
    labels = name_labels({collection_id: collection.name for collection_id, collection in named.items()})

    def add() -> None:
        chosen: UUID = state.programs_widget_collection
        widgets.add(identity, named[chosen], state.programs_widget_name, state.programs_widget_sites.split())

    with st.form("programs_widget", border=False):
        draw_field(CHANGE["name"], key="programs_widget_name")
        st.selectbox(_("Collection"), list(named), key="programs_widget_collection", format_func=labels.of)
        draw_field(CHANGE["sites"], key="programs_widget_sites")
        actions.draw_submit(_("Add the widget"), add, key=ERROR, icon=":material/chat_add_on:")


def _ask_to_remove(widgets: Widgets, identity: Identity, widget: Widget) -> None:
    actions.ask_to_remove(
        "programs",
        _("Remove this widget?"),
        f"**{plain(widget.name)}**",
        _("Pages that show this widget stop answering at once. Past questions stay in the analytics."),
        action=_("Remove {name}", name=plain(widget.name)),
        removed_sentence=_("{name} is removed.", name=widget.name),
        take=partial(widgets.remove, identity, widget.id),
        put_back=partial(widgets.put_back, identity),
        problem="programs_error",
        key="programs_widget_remove",
    )


def draw_outside(widgets: Sequence[Widget]) -> None:
    """Draw a list with the websites and public pages on which visitors can ask a collection.

    A link leads to the settings.
    """
    on = [widget for widget in widgets if widget.is_active]
    sites = sorted({site for widget in on for site in widget.sites})
    pages = sum(widget.has_page for widget in on)
    sentence = _("Visitors without an account cannot ask questions here yet. Turn on a widget or a public page first.")
    if sites:
        sentence = _("Visitors of {sites} can ask questions here without signing in.", sites=plain(", ".join(sites)))
    if pages:
        sentence = f"{sentence} " if sites else ""
        sentence += ngettext("The collection has a public page.", "The collection has {count} public pages.", pages)
    st.caption(f":material/public: {sentence}")
    st.page_link("programs.py", label=_("Public page and widget"), icon=":material/chat_add_on:")
