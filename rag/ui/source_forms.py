"""Forms for a collection's sync sources: their fields, and how a source is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag.ingestion.sources.folder import FolderSource
from rag.language import N_
from rag.types import Collection, Identity
from rag.types.fields import FormField
from rag.ui.forms import draw_fields, entered


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """A sign-in to a service, which replaces entering keys in a form."""

    #: Draws who signed in, or the way there.
    draw: Callable[[], None]
    #: The form, shorter after signing in.
    form: SourceForm
    #: The secrets from signing in.
    secrets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SourceForm:
    """The form for a kind of source: its name, its fields, and the settings by which people recognise a source."""

    kind: str
    name: str
    #: The place in the list on the page, from 1.
    order: int
    icon: str
    hint: str
    fields: tuple[FormField, ...]
    shown: tuple[str, ...]
    #: Whether the packages are installed.
    is_installed: bool = True
    #: Where a person can sign in at the service instead of entering keys.
    sign_in: Callable[[Identity, Collection], SignIn | None] | None = None

    def place(self, settings: Mapping[str, Any]) -> str:
        """Return the name by which people recognise a source: "bucket/folder"."""
        return "/".join(str(settings[name]) for name in self.shown if settings.get(name))

    def draw(self, key: str) -> None:
        """Draw the fields in two columns, then multi-line fields and switches at full width."""
        lines = [each for each in self.fields if each.kind == "line"]
        draw_fields(lines, key, columns=min(len(lines), 2))
        draw_fields((each for each in self.fields if each.kind != "line"), key)

    def typed(self, key: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the entered settings and secrets. Raises `InvalidInput`."""
        settings = entered(self.fields, key)
        return settings, {each.name: settings.pop(each.name) for each in self.fields if each.is_secret}


READERS = FormField(
    name="readers",
    title=N_("Only groups with access in the source have access here"),
    help=N_(
        "The groups that may read the folder in the source may also read this collection. Groups are matched by "
        "name. If one of these groups may not read a document in the source, the document is left out."
    ),
    kind="switch",
)

FOLDER = SourceForm(
    kind=FolderSource.kind,
    order=100,
    name=N_("Folder on the server"),
    icon=":material/folder:",
    hint=N_("A folder on the computer that this application runs on, including its subfolders."),
    fields=(FormField(name="path", title=N_("Path of the folder"), example="/srv/documents", maximum=300),),
    shown=("path",),
)
