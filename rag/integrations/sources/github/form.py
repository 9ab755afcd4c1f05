"""The settings form for repositories at GitHub, shown on the page Collections."""

from __future__ import annotations

from rag.language import N_
from rag.types.fields import FormField
from rag.ui.source_forms import SourceForm

FORM = SourceForm(
    kind="github",
    order=6,
    name=N_("GitHub account or repository"),
    icon=":material/code:",
    hint=N_("What the repositories of an account say about themselves: description, languages and README."),
    fields=(
        FormField(
            name="owner",
            title=N_("A person or an organisation, or one repository as owner/name"),
            example="octocat/hello-world",
            maximum=300,
        ),
    ),
    shown=("owner",),
)
