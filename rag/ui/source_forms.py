"""Forms for a collection's sync sources: their fields, and how a source is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from rag.ingestion.sources.folder import FolderSource
from rag.language import N_, _
from rag.types import Collection, Identity


@dataclass(frozen=True, kw_only=True)
class Field:
    """A source's setting. A secret value is stored encrypted and never drawn again."""

    name: str
    label: str
    example: str = ""
    help: str = ""
    is_secret: bool = False
    #: Several lines, for example a key from a file.
    is_text: bool = False
    is_switch: bool = False
    longest: int = 500

    def draw(self, key: str) -> None:
        help_text = _(self.help) if self.help else None
        if self.is_switch:
            st.checkbox(_(self.label), key=key, help=help_text)
        elif self.is_text:
            st.text_area(_(self.label), key=key, placeholder=self.example or None, height=96, help=help_text)
        else:
            st.text_input(
                _(self.label),
                key=key,
                placeholder=self.example or None,
                max_chars=self.longest,
                type="password" if self.is_secret else "default",
                autocomplete="new-password" if self.is_secret else "off",
                help=help_text,
            )


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """How a person signs in to a service instead of entering keys."""

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
    fields: tuple[Field, ...]
    shown: tuple[str, ...]
    #: Whether the packages are installed.
    is_installed: bool = True
    #: Where a person can sign in at the service instead of entering keys.
    sign_in: Callable[[Identity, Collection], SignIn | None] | None = None

    def place(self, settings: Mapping[str, Any]) -> str:
        """Format a source's name, such as a bucket and a folder."""
        return "/".join(str(settings[name]) for name in self.shown if settings.get(name))

    def draw(self, key: str) -> None:
        """Draw the fields in two columns, then multi-line fields and switches at full width."""
        lines = [one for one in self.fields if not one.is_text and not one.is_switch]
        # Row by row: the tab key follows the reading order, and a phone keeps it too.
        for first in range(0, len(lines), 2):
            pair = lines[first : first + 2]
            columns = st.columns(2) if len(lines) > 1 else [st.container()]
            for column, one in zip(columns, pair, strict=False):
                with column:
                    one.draw(f"{key}_{one.name}")
        for one in self.fields:
            if one.is_text or one.is_switch:
                one.draw(f"{key}_{one.name}")

    def typed(self, key: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the entered settings and secrets."""
        settings: dict[str, Any] = {}
        secrets: dict[str, str] = {}
        for one in self.fields:
            value = st.session_state[f"{key}_{one.name}"]
            if one.is_switch:
                settings[one.name] = bool(value)
            else:
                (secrets if one.is_secret else settings)[one.name] = str(value).strip()
        return settings, secrets


READERS = Field(
    name="readers",
    label=N_("Only groups that may read it there may read it here"),
    help=N_(
        "The groups that may read the folder there become the groups of this collection, by their names. "
        "Documents that one of these groups may not read there are left out."
    ),
    is_switch=True,
)

FOLDER = SourceForm(
    kind=FolderSource.kind,
    order=100,
    name=N_("Folder on the server"),
    icon=":material/folder:",
    hint=N_("A folder on the computer that this application runs on, with the folders in it."),
    fields=(Field(name="path", label=N_("Path of the folder"), example="/srv/documents", longest=300),),
    shown=("path",),
)
