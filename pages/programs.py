"""Connect other programs: widgets on other websites, Microsoft Teams, and webhooks. For administrators."""

from __future__ import annotations

import streamlit as st

from rag.errors import PackagesMissing
from rag.integrations.registry import integrations
from rag.language import _
from rag.services import require, services
from rag.types import Role
from rag.ui import actions
from rag.ui.text import plain

#: Session state key for a section's error, drawn above all sections.
ERROR = "programs_error"

identity = require(Role.ADMIN)
st.session_state.setdefault(ERROR, "")

st.title(_("Other programs"), anchor=False)
actions.draw_problem(ERROR, is_once=True)
actions.draw_undo("programs", problem=ERROR)
parts = services()
collections = parts.documents.collections(identity)
for integration in integrations():
    if integration.draw is None:
        continue
    if integration.is_installed:
        integration.draw(parts, identity, collections)
    else:
        st.header(plain(_(integration.title)), anchor=False)
        st.warning(plain(PackagesMissing().message), icon=":material/extension_off:")
    st.divider()
st.caption(
    _(
        "Keys for programs that ask questions or manage documents are on the page People. The calls are described at "
        "[/api/docs](/api/docs)."
    )
)
