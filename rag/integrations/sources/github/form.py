"""The form for this source on the page Collections."""

from __future__ import annotations

from rag.language import N_
from rag.ui.source_forms import Field, SourceForm

FORM = SourceForm(
    kind="github",
    order=6,
    name=N_("GitHub account or repository"),
    icon=":material/code:",
    hint=N_("What the repositories of an account say about themselves: description, languages and README."),
    fields=(
        Field(
            name="owner",
            label=N_("A person or an organisation, or one repository as owner/name"),
            example="octocat/hello-world",
            longest=300,
        ),
    ),
    shown=("owner",),
)
