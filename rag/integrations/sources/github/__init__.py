"""Sync a collection with repositories at GitHub.

`github` reads repositories, and `form` describes the settings form.
"""

from __future__ import annotations

from rag.integrations.integration import Integration, SourceKind
from rag.language import N_

INTEGRATION = Integration(
    name="github",
    title=N_("GitHub account or repository"),
    sources=(SourceKind("github", makes=f"{__name__}.github:source_of", form=f"{__name__}.form:FORM"),),
)
