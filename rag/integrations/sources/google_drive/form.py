"""The settings form for Google Drive, shown on the page Collections, and the sign-in with Google."""

from __future__ import annotations

import math
from dataclasses import replace

import streamlit as st

from rag.integrations.sources.google_drive.sign_in import ACCOUNT_COOKIE, DriveAccount, GoogleSignIn
from rag.language import N_, _
from rag.services import services
from rag.types import Collection, Identity
from rag.types.fields import FormField
from rag.ui.frame import link_here
from rag.ui.source_forms import READERS, SignIn, SourceForm
from rag.ui.text import plain


def sign_in(identity: Identity, collection: Collection) -> SignIn | None:
    """Return the sign-in to draw in the form, with the account stored in the cookie; `None` if no client ID is
    configured.
    """
    google = GoogleSignIn(services().database, services().settings)
    if not google.is_offered:
        return None
    cookies = st.context.cookies
    account = google.account(cookies.get(f"__Host-{ACCOUNT_COOKIE}") or cookies.get(ACCOUNT_COOKIE, ""), identity)
    address = f"/sources/google/start?collection={collection.id}"
    if account is None:
        return SignIn(draw=lambda: _draw(address, None), form=FORM)
    return SignIn(draw=lambda: _draw(address, account), form=form_of_person(), secrets={"key": account.key})


def _draw(address: str, account: DriveAccount | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="collections_google"):
        if account is not None:
            email = plain(account.email)
            st.markdown(
                f":green[:material/check_circle:] {_('Signed in with Google as {email}', email=email)}",
                width="content",
            )
        label = _("Use another account") if account is not None else _("Sign in with Google")
        st.html(link_here(label, address), width=220)
    if account is None:
        st.caption(_("Or fill in the key of a service account:"))


def form_of_person() -> SourceForm:
    """Return the form for a signed-in person, without fields for a service account."""
    fields = tuple(field for field in FORM.fields if field.name not in ("subject", "key"))
    return replace(
        FORM,
        hint=N_(
            "A folder or a shared drive that you can open in Google Drive. Google documents and presentations are "
            "read as PDF, and Google spreadsheets are read as .xlsx."
        ),
        fields=fields,
    )


FORM = SourceForm(
    kind="google_drive",
    order=3,
    name=N_("Google Drive"),
    icon=":material/add_to_drive:",
    hint=N_(
        "A folder or a shared drive. Google documents and presentations are read as PDF, and Google spreadsheets are "
        "read as .xlsx. Your Google administrator makes a service account with the Drive API, and a key for this "
        "account. Share the folder with the account's e-mail address, or let the account read in the name of a "
        "person in your domain."
    ),
    fields=(
        FormField(
            name="folder",
            title=N_("Address of the folder or the shared drive"),
            example="https://drive.google.com/drive/folders/…",
        ),
        FormField(
            name="subject",
            title=N_("Person in whose name the folder is read (leave empty if the folder is shared)"),
            example="hr@example.com",
            help=N_(
                "An e-mail address of your domain. The service account has to be allowed to act for everybody "
                "in the domain."
            ),
            maximum=254,
        ),
        FormField(
            name="key",
            title=N_("Key of the service account"),
            example='{"type": "service_account", …}',
            help=N_("The whole text of the JSON file that Google made."),
            kind="text",
            maximum=math.inf,
            is_secret=True,
        ),
        READERS,
    ),
    shown=("folder",),
    sign_in=sign_in,
)
