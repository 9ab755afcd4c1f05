"""Run what a button does, and ask people to sign in again before a sensitive action."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import ParamSpec, TypeVar
from urllib.parse import urlencode, urlsplit

import streamlit as st

import rag.services
from rag.access.sessions import confirm_address
from rag.errors import RagError, SignInAgain
from rag.language import N_, _
from rag.types import Identity
from rag.ui.frame import link_here
from rag.ui.text import plain
from rag.ui.widgets import ask_to_confirm, dialog

Removed = TypeVar("Removed")
P = ParamSpec("P")


def attempt(problem: str, action: Callable[..., object], *arguments: object, **changes: object) -> bool:
    """Run a change, and return whether the change succeeded.

    An error's message is stored in `st.session_state[problem]`. If the sign-in is too old, the page's next full run
    asks for a new sign-in.
    """
    st.session_state[problem] = ""
    try:
        action(*arguments, **changes)
    except SignInAgain:
        note_refused()
        return False
    except RagError as error:
        st.session_state[problem] = error.message
        return False
    return True


def draw_problem(problem: str, *, is_once: bool = False) -> None:
    """Draw the error message in `st.session_state[problem]`, if any. If `is_once`, the message is cleared."""
    if sentence := st.session_state.get(problem):
        st.error(plain(sentence), icon=":material/error:")
        if is_once:
            st.session_state[problem] = ""


def draw_done(key: str) -> None:
    """Show the sentence in `st.session_state[key]` in a toast, and clear the entry."""
    if sentence := st.session_state.get(key):
        st.session_state[key] = ""
        st.toast(plain(sentence), icon=":material/check:")


def attempted(problem: str) -> Callable[[Callable[P, object]], Callable[P, None]]:
    """Return a decorator which runs a function through `attempt`, which stores errors under `problem`."""

    def decorate(action: Callable[P, object]) -> Callable[P, None]:
        @wraps(action)
        def run(*arguments: P.args, **changes: P.kwargs) -> None:
            attempt(problem, action, *arguments, **changes)

        return run

    return decorate


def offer_undo(page: str, sentence: str, undo: Callable[[], object]) -> None:
    """Store how to undo a page's last action, for the undo button. The page's next action replaces the stored undo."""
    st.session_state[f"{page}_way_back"] = (sentence, undo)


def remove(
    page: str,
    sentence: str,
    take: Callable[[], Removed],
    put_back: Callable[[Removed], object],
    *,
    problem: str,
    on_removed: Callable[[], object] | None = None,
) -> None:
    """Remove an item by calling `take`, and offer an undo.

    The undo calls `put_back` with the value returned by `take`. `on_removed` is called after the removal.
    """
    removed: list[Removed] = []
    if attempt(problem, lambda: removed.append(take())):
        offer_undo(page, sentence, partial(put_back, removed[0]))
        if on_removed is not None:
            on_removed()


def ask_to_remove(
    page: str,
    title: str,
    *sentences: str,
    action: str,
    removed_sentence: str,
    take: Callable[[], Removed],
    put_back: Callable[[Removed], object],
    problem: str,
    key: str,
    icon: str = ":material/delete:",
) -> None:
    """Ask for confirmation, then call `remove` with the same arguments.

    After the removal, the page shows `removed_sentence` next to the undo button.
    """
    take_away = partial(remove, page, removed_sentence, take, put_back, problem=problem)
    ask_to_confirm(title, *sentences, action=action, on_confirm=take_away, key=key, icon=icon)


def draw_undo(page: str, *, problem: str) -> None:
    """Draw the page's last action with an undo button. Errors from undoing go to `st.session_state[problem]`."""
    state, key = st.session_state, f"{page}_way_back"
    if key not in state:
        return
    sentence, undo = state[key]

    def take_back() -> None:
        if attempt(problem, undo):
            state.pop(key, None)

    with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"{page}_way_back_note"):
        st.markdown(f":material/check: {plain(sentence)}", width="stretch")
        st.button(_("Undo"), key=f"{page}_way_back_taken", icon=":material/undo:", on_click=take_back)
        st.button(_("Dismiss"), key=f"{page}_way_back_gone", type="tertiary", on_click=state.pop, args=(key, None))


def is_needed(identity: Identity) -> bool:
    """Return whether this person must sign in again before a sensitive action. If so, open the sign-in dialog."""
    if rag.services.services().sessions.is_recent(identity):
        return False
    ask()
    return True


def draw_export(
    identity: Identity,
    label: str,
    make: Callable[[], bytes],
    file_name: str,
    *,
    key: str,
    media_type: str = "text/csv",
) -> None:
    """Draw a button to save the file which `make` returns.

    If the sign-in is too old, the button asks for a new sign-in. `make` must check the sign-in too, because it may
    expire while the page is open.
    """
    if rag.services.services().sessions.is_recent(identity):
        late = partial(_note_if_late, identity)
        st.download_button(label, make, file_name, media_type, icon=":material/download:", key=key, on_click=late)
    elif st.button(label, icon=":material/download:", key=f"{key}_again"):
        ask()


def _note_if_late(identity: Identity) -> None:
    # If `make` refuses, Streamlit only says the file is missing.
    if not rag.services.services().sessions.is_recent(identity):
        note_refused()


@dialog(N_("Confirm that it is you"), icon=":material/lock:")
def ask() -> None:
    """Open a dialog which explains why to sign in again, with a link to the sign-in page."""
    st.markdown(_("You signed in a while ago. Confirm that it is still you. You then come back to this page."))
    draw_link()


def draw_link() -> None:
    """Draw the link for confirming the sign-in. After confirming, the browser returns to this page."""
    path = urlsplit(st.context.url or "/").path or "/"
    # The query parameters hold the page's open items; `st.context.url` leaves them out.
    opened = urlencode(st.query_params.to_dict())
    st.html(link_here(_("Confirm that it is you"), confirm_address(f"{path}?{opened}" if opened else path)))


def draw_error(error: RagError) -> None:
    """Show in a dialog why an action was refused. If the sign-in is too old, add a link for signing in again."""
    st.error(plain(error.message), icon=":material/error:")
    if isinstance(error, SignInAgain):
        draw_link()


def finish(action: Callable[..., object], *arguments: object, **changes: object) -> None:
    """Run a dialog's action and close the dialog. If the action raises a `RagError`, the dialog stays and shows the
    error.
    """
    try:
        action(*arguments, **changes)
    except RagError as error:
        draw_error(error)
    else:
        st.rerun()


def draw_submit(label: str, action: Callable[[], object], *, key: str, icon: str) -> None:
    """Draw the submit button for a dialog's form.

    A click runs `action`. On success the dialog closes; an error is shown below the button. `st.session_state[key]`
    holds the last click's error, or `None`.
    """
    state = st.session_state

    def run() -> None:
        state[key] = None
        try:
            action()
        except RagError as error:
            state[key] = error

    if st.form_submit_button(label, type="primary", icon=icon, on_click=run):
        if state[key] is None:
            st.rerun()
        draw_error(state[key])


def draw_ending(label: str, act: Callable[[], object], *, key: str, on_close: Callable[[], object]) -> None:
    """Draw a dialog's final buttons: a cancel button, and a button which runs `act`.

    An error is drawn above the buttons. `on_close` runs before the page is drawn again without the dialog.
    """

    def act_and_close() -> None:
        act()
        on_close()

    refusal = st.container()
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button(_("Cancel"), key=f"{key.rpartition('_')[0]}_cancel"):
            finish(on_close)
        is_confirmed = st.button(label, key=key, type="primary", icon=":material/check:")
    if is_confirmed:
        with refusal:
            finish(act_and_close)


def ask_where_refused() -> None:
    """Open the sign-in dialog if the last click was refused because the sign-in was too old."""
    if st.session_state.pop("frame_sign_in_again", False):
        ask()


def note_refused() -> None:
    """Have `ask_where_refused` open the sign-in dialog on the page's next full run."""
    st.session_state.frame_sign_in_again = True
