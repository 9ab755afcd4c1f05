"""The settings form for websites, shown on the page Collections."""

from __future__ import annotations

from rag.language import N_
from rag.types.fields import FormField
from rag.ui.source_forms import SourceForm

FORM = SourceForm(
    kind="website",
    order=1,
    name=N_("Website"),
    icon=":material/language:",
    hint=N_(
        "The pages of a website, such as a handbook on your intranet, with the documents they link to. Pages and "
        "documents are read only if the website allows programs to read them. Citations link to the page."
    ),
    fields=(
        FormField(
            name="address",
            title=N_("Address of the first page, or of a sitemap"),
            example="https://www.example.com/handbook/",
            help=N_("All pages below this address are read."),
        ),
        FormField(name="hosts", title=N_("Other websites that may be read"), example="docs.example.com"),
        FormField(name="pages", title=N_("Maximum number of pages"), example="500", maximum=5),
    ),
    shown=("address",),
)
