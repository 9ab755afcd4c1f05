"""The form for this source on the page Collections."""

from __future__ import annotations

from rag.language import N_
from rag.ui.source_forms import READERS, Field, SourceForm

FORM = SourceForm(
    kind="sharepoint",
    order=2,
    name=N_("SharePoint or OneDrive"),
    icon=":material/folder_shared:",
    hint=N_(
        "A document library of Microsoft 365, or somebody's OneDrive. Your Microsoft administrator registers "
        "an application in Entra ID, gives it the application permission Sites.Read.All, and makes a client "
        "secret."
    ),
    fields=(
        Field(
            name="site",
            label=N_("Address of the site, or e-mail address of the OneDrive's owner"),
            example="https://contoso.sharepoint.com/sites/HR",
        ),
        Field(name="library", label=N_("Library; empty for the usual one"), example="Documents"),
        Field(name="folder", label=N_("Folder; empty for all of it"), example="HR/Handbook"),
        Field(name="tenant", label=N_("Directory (tenant) ID"), longest=253),
        Field(name="client_id", label=N_("Application (client) ID"), longest=36),
        Field(name="client_secret", label=N_("Client secret"), is_secret=True),
        READERS,
    ),
    shown=("site", "library", "folder"),
)
