"""Sync a collection with a folder on Nextcloud or a different WebDAV server.

`webdav` reads files, `answers` parses responses in the sandbox, and `form` describes the settings form.
"""

from __future__ import annotations

from rag.integrations.integration import Integration, SourceKind
from rag.language import N_

INTEGRATION = Integration(
    name="webdav",
    title=N_("Nextcloud or WebDAV"),
    packages=("webdav4",),
    sources=(SourceKind("webdav", makes=f"{__name__}.webdav:source_of", form=f"{__name__}.form:FORM"),),
)
