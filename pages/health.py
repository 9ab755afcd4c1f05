"""Show the configuration, what each missing key would add, and whether the providers answer.

In an installation with several companies, only the first company's administrators see the parts concerning the whole
installation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from rag.api.health import check_rag_health, model_checks, probe_checks
from rag.language import N_, _
from rag.monitoring.checks import Check
from rag.services import require, services
from rag.types import Role
from rag.ui.text import plain
from rag.ui.widgets import draw_head

identity = require(Role.ADMIN)
running = services()
Color = Literal["green", "gray", "orange", "red"]
BADGES: dict[str, tuple[str, Color, str]] = {
    "ok": (N_("OK"), "green", ":material/check_circle:"),
    "missing": (N_("Not set"), "gray", ":material/remove_circle_outline:"),
    "warning": (N_("Check this"), "orange", ":material/warning:"),
    "failed": (N_("Failed"), "red", ":material/error:"),
}


def draw(checks: Sequence[Check]) -> None:
    """Draw each check with state, sentence and, for operators, a detail."""
    for check in checks:
        words, color, icon = BADGES[check.state]
        with st.container(border=True, gap="small"):
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                st.markdown(f"**{plain(check.name)}**", width="content")
                st.badge(_(words), icon=icon, color=color)
            st.markdown(plain(check.sentence[:1].upper() + check.sentence[1:]))
            if check.detail:
                st.caption(_("For the person who runs the server: {detail}", detail=plain(check.detail)))


with draw_head(_("Health"), is_title=True):
    is_clicked = st.button(
        _("Check the providers"), key="health_check", type="primary", icon=":material/network_check:"
    )
st.caption(
    _(
        "This page shows which models and services answer, search and read documents here. The check makes a free "
        "call to each provider, and shows at once if a key is wrong or an address does not answer."
    )
)
if is_clicked:
    with st.spinner(_("Asking the providers")):
        answers = probe_checks(running)
    st.header(_("Providers"), anchor=False)
    if answers:
        draw(answers)
    else:
        st.caption(_("No provider is set up, so there is nothing to check. Only the built-in models are used."))
    st.header(_("Configuration"), anchor=False)
is_own = identity.tenant_id == running.settings.tenant
draw(check_rag_health(running).checks if is_own else model_checks(running))
