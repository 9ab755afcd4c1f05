"""Sync a collection with a website.

`website` reads pages, `answers` parses responses in the sandbox, and `form` describes the settings form.
"""

from __future__ import annotations

from rag.integrations.integration import Integration, SourceKind
from rag.language import N_

INTEGRATION = Integration(
    name="website",
    title=N_("Website"),
    packages=("courlan", "lxml_html_clean", "protego", "trafilatura"),
    sources=(SourceKind("website", makes=f"{__name__}.website:source_of", form=f"{__name__}.form:FORM"),),
)
