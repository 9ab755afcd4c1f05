"""What a button does, as pages do it: what goes wrong is said on the page instead of ending it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rag.errors import RagError, SignInAgain
from rag.ui import sign_in_again


def attempt(problem: str, action: Callable[..., object], *arguments: object, **changes: object) -> bool:
    """Run a change; whether it went well. The sentence of what did not is kept as `st.session_state[problem]`."""
    st.session_state[problem] = ""
    try:
        action(*arguments, **changes)
    except SignInAgain:
        sign_in_again.note_refused()
        return False
    except RagError as error:
        st.session_state[problem] = error.message
        return False
    return True
