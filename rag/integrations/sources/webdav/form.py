"""The settings form for WebDAV servers, shown on the page Collections."""

from __future__ import annotations

from rag.language import N_
from rag.types.fields import FormField
from rag.ui.source_forms import SourceForm

FORM = SourceForm(
    kind="webdav",
    order=4,
    name=N_("Nextcloud or WebDAV"),
    icon=":material/cloud_sync:",
    hint=N_(
        "A folder on Nextcloud, ownCloud or another WebDAV server. In Nextcloud, make an app password in the "
        "settings, under Security."
    ),
    fields=(
        FormField(
            name="address",
            title=N_("Address of the server"),
            example="https://cloud.example.com",
            help=N_(
                "With Nextcloud, you can also open the folder in the browser and copy the address from there. With "
                "other servers, enter the address of the folder."
            ),
        ),
        FormField(name="folder", title=N_("Folder (leave empty for all folders)"), example="HR/Handbook"),
        FormField(name="user", title=N_("Name of the account"), maximum=200),
        FormField(name="password", title=N_("App password"), is_secret=True),
    ),
    shown=("address", "folder"),
)
