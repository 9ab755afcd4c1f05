"""Sync a collection with a folder in Google Drive.

`google_drive` reads files, `sign_in` and `routes` sign people in, and `form` describes the settings form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag.errors import SettingsError
from rag.integrations.integration import Endpoint, Integration, SourceKind
from rag.language import N_

if TYPE_CHECKING:
    from rag.settings import Settings


def check(settings: Settings) -> None:
    """Raise `SettingsError` if either client ID or client secret is missing."""
    if bool(settings.variable("RAG_GOOGLE_CLIENT_ID")) != bool(settings.variable("RAG_GOOGLE_CLIENT_SECRET")):
        raise SettingsError("RAG_GOOGLE_CLIENT_ID and RAG_GOOGLE_CLIENT_SECRET have to be set together.")


INTEGRATION = Integration(
    name="google_drive",
    title=N_("Google Drive"),
    packages=("Authlib", "google-auth"),
    routes=(
        Endpoint("/sources/google/start", f"{__name__}.routes:start", ("GET",)),
        Endpoint("/sources/google/callback", f"{__name__}.routes:come_back", ("GET",)),
    ),
    sources=(SourceKind("google_drive", makes=f"{__name__}.google_drive:source_of", form=f"{__name__}.form:FORM"),),
    check=check,
)
