"""The settings form for SharePoint and OneDrive, shown on the page Collections."""

from __future__ import annotations

from rag.language import N_
from rag.types.fields import FormField
from rag.ui.source_forms import READERS, SourceForm

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
        FormField(
            name="site",
            title=N_("Address of the site, or e-mail address of the OneDrive's owner"),
            example="https://contoso.sharepoint.com/sites/HR",
        ),
        FormField(name="library", title=N_("Library (leave empty for the default library)"), example="Documents"),
        FormField(name="folder", title=N_("Folder (leave empty for all folders)"), example="HR/Handbook"),
        FormField(name="tenant", title=N_("Directory (tenant) ID"), maximum=253),
        FormField(name="client_id", title=N_("Application (client) ID"), maximum=36),
        FormField(name="client_secret", title=N_("Client secret"), is_secret=True),
        READERS,
    ),
    shown=("site", "library", "folder"),
)
