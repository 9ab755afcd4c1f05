"""Show a person's account and where they are signed in. For everyone."""

from __future__ import annotations

import streamlit as st

from rag.access.connected_apps import ConnectedApp
from rag.access.sessions import OpenSession
from rag.language import _
from rag.services import current_identity, services
from rag.ui import language
from rag.ui.formats import time_zone
from rag.ui.people import ROLES, draw_apps, draw_sessions
from rag.ui.text import plain

identity = current_identity()
sessions = services().sessions


def end(session: OpenSession) -> None:
    sessions.end_one(identity, identity.account_id, session.session_id)
    st.toast(_("This session is signed out."), icon=":material/check:")


def end_other_sessions() -> None:
    sessions.end_all(identity.tenant_id, identity.account_id, except_session_id=identity.session_id)
    st.toast(_("Signed out everywhere else."), icon=":material/check:")


def disconnect(app: ConnectedApp) -> None:
    services().connected_apps.disconnect(identity, app.id)
    st.toast(_("Disconnected."), icon=":material/check:")


st.title(_("Your account"), anchor=False)
group = f" · {plain(identity.user_group)}" if identity.user_group else ""
st.markdown(f"**{plain(identity.name)}**  \n{plain(identity.email)}  \n:gray[{_(ROLES[identity.role])}{group}]")
language.draw_choice(identity, key="account_language")
st.header(_("Where you are signed in"), anchor=False, divider="gray")
opened = sessions.list(identity)
draw_sessions(opened, identity.session_id, time_zone(st.context.timezone), end)
if len(opened) > 1:
    st.button(_("Sign out everywhere else"), icon=":material/phonelink_erase:", on_click=end_other_sessions)
st.caption(
    _(
        "If you do not recognise a session, sign it out and change your password. A new password ends every "
        "other session too."
    )
)

apps = services().connected_apps.list(identity)
if apps:
    st.header(_("Programs connected to your account"), anchor=False, divider="gray")
    draw_apps(apps, disconnect)
