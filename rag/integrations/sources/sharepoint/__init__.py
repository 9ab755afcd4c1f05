"""Sync a collection with a library in SharePoint or a OneDrive.

`sharepoint` reads files, and `form` describes the settings form.
"""

from __future__ import annotations

from rag.integrations.integration import Integration, SourceKind
from rag.language import N_

INTEGRATION = Integration(
    name="sharepoint",
    title=N_("SharePoint or OneDrive"),
    packages=("msal",),
    sources=(SourceKind("sharepoint", makes=f"{__name__}.sharepoint:source_of", form=f"{__name__}.form:FORM"),),
)
