"""Define the forms of the sources that a collection can be synced from: their fields, and how a source is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from rag.ingestion.sources.folder import FolderSource
from rag.ingestion.sources.github import GitHubSource
from rag.ingestion.sources.runs import BUCKET, GOOGLE_DRIVE, SHAREPOINT, WEBDAV, WEBSITE
from rag.language import N_, _


@dataclass(frozen=True, kw_only=True)
class Field:
    """A setting of a source. The value of a secret one is stored encrypted and never drawn again."""

    name: str
    label: str
    example: str = ""
    help: str = ""
    is_secret: bool = False
    #: Several lines, such as a key from a file.
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
class SourceForm:
    """The form of a kind of source: its name, its fields, and the settings by which people recognise a source."""

    kind: str
    name: str
    icon: str
    hint: str
    fields: tuple[Field, ...]
    shown: tuple[str, ...]

    def place(self, settings: Mapping[str, Any]) -> str:
        """Write a source's name, such as a bucket and a folder."""
        return "/".join(str(settings[name]) for name in self.shown if settings.get(name))

    def draw(self, key: str) -> None:
        """Draw the fields in two columns, then multi-line fields and switches below, as wide as the form."""
        lines = [field for field in self.fields if not field.is_text and not field.is_switch]
        # Row by row, so that the tabulator goes as one reads, and a phone has them in their order.
        for first in range(0, len(lines), 2):
            pair = lines[first : first + 2]
            columns = st.columns(2) if len(lines) > 1 else [st.container()]
            for column, field in zip(columns, pair, strict=False):
                with column:
                    field.draw(f"{key}_{field.name}")
        for field in self.fields:
            if field.is_text or field.is_switch:
                field.draw(f"{key}_{field.name}")

    def typed(self, key: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the entered settings and secrets."""
        settings: dict[str, Any] = {}
        secrets: dict[str, str] = {}
        for field in self.fields:
            value = st.session_state[f"{key}_{field.name}"]
            if field.is_switch:
                settings[field.name] = bool(value)
            else:
                (secrets if field.is_secret else settings)[field.name] = str(value).strip()
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

FORMS = {
    form.kind: form
    for form in (
        SourceForm(
            kind=WEBSITE,
            name=N_("Website"),
            icon=":material/language:",
            hint=N_(
                "The pages of a website, such as a handbook on your intranet, with the documents they link to. Only "
                "what the website allows programs to read is read. Citations link to the page."
            ),
            fields=(
                Field(
                    name="address",
                    label=N_("Address of the first page, or of a sitemap"),
                    example="https://www.example.com/handbook/",
                    help=N_("All pages below this address are read."),
                ),
                Field(name="hosts", label=N_("Further hosts that may be read"), example="docs.example.com"),
                Field(name="pages", label=N_("Pages at most"), example="500", longest=5),
            ),
            shown=("address",),
        ),
        SourceForm(
            kind=SHAREPOINT,
            name=N_("SharePoint or OneDrive"),
            icon=":material/folder_shared:",
            hint=N_(
                "A document library of Microsoft 365, or somebody's OneDrive. Your Microsoft administrator registers "
                "an application in Entra ID, gives it the application permission Sites.Read.All, and makes a client "
                "secret."
            ),
            fields=(
                Field(
                    name="site",
                    label=N_("Address of the site, or e-mail address of the OneDrive's owner"),
                    example="https://contoso.sharepoint.com/sites/HR",
                ),
                Field(name="library", label=N_("Library; empty for the usual one"), example="Documents"),
                Field(name="folder", label=N_("Folder; empty for all of it"), example="HR/Handbook"),
                Field(name="tenant", label=N_("Directory (tenant) ID"), longest=253),
                Field(name="client_id", label=N_("Application (client) ID"), longest=36),
                Field(name="client_secret", label=N_("Client secret"), is_secret=True),
                READERS,
            ),
            shown=("site", "library", "folder"),
        ),
        SourceForm(
            kind=GOOGLE_DRIVE,
            name=N_("Google Drive"),
            icon=":material/add_to_drive:",
            hint=N_(
                "A folder or a shared drive; documents and presentations of Google are read as PDF, its spreadsheets "
                "as .xlsx. Your Google administrator makes a service account with the Drive API and a key for it. "
                "Share the folder with the account's e-mail address, or let it read as a person of your domain."
            ),
            fields=(
                Field(
                    name="folder",
                    label=N_("Address of the folder or the shared drive"),
                    example="https://drive.google.com/drive/folders/…",
                ),
                Field(
                    name="subject",
                    label=N_("Read as this person; empty where it is shared"),
                    example="hr@example.com",
                    help=N_("An e-mail address of your domain, where the service account may act for everybody in it."),
                    longest=254,
                ),
                Field(
                    name="key",
                    label=N_("Key of the service account"),
                    example='{"type": "service_account", …}',
                    help=N_("The whole text of the JSON file that Google made."),
                    is_secret=True,
                    is_text=True,
                ),
                READERS,
            ),
            shown=("folder",),
        ),
        SourceForm(
            kind=WEBDAV,
            name=N_("Nextcloud or WebDAV"),
            icon=":material/cloud_sync:",
            hint=N_(
                "A folder on Nextcloud, ownCloud or another WebDAV server. For Nextcloud make an app password in its "
                "settings, under Security."
            ),
            fields=(
                Field(
                    name="address",
                    label=N_("Address of the server"),
                    example="https://cloud.example.com",
                    help=N_("On Nextcloud the address of an opened folder does, too; elsewhere that of the folder."),
                ),
                Field(name="folder", label=N_("Folder; empty for all of it"), example="HR/Handbook"),
                Field(name="user", label=N_("Name of the account"), longest=200),
                Field(name="password", label=N_("App password"), is_secret=True),
            ),
            shown=("address", "folder"),
        ),
        SourceForm(
            kind=BUCKET,
            name=N_("S3-compatible storage"),
            icon=":material/cloud:",
            hint=N_("Amazon S3, MinIO, Cloudflare R2, Ceph and others. Keys that may list and read are enough."),
            fields=(
                Field(name="address", label=N_("Address of the storage"), example="https://s3.amazonaws.com"),
                Field(name="region", label=N_("Region, where it has one"), example="eu-central-1", longest=100),
                Field(name="bucket", label=N_("Bucket"), longest=100),
                Field(name="folder", label=N_("Folder in the bucket; empty for all of it")),
                Field(name="access_key", label=N_("Access key"), is_secret=True),
                Field(name="secret_key", label=N_("Secret key"), is_secret=True),
            ),
            shown=("bucket", "folder"),
        ),
        SourceForm(
            kind=GitHubSource.kind,
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
        ),
        SourceForm(
            kind=FolderSource.kind,
            name=N_("Folder on the server"),
            icon=":material/folder:",
            hint=N_("A folder on the computer that this application runs on, with the folders in it."),
            fields=(Field(name="path", label=N_("Path of the folder"), example="/srv/documents", longest=300),),
            shown=("path",),
        ),
    )
}


def form_of_person(form: SourceForm) -> SourceForm:
    """Return Google Drive's form for who signed in there: it needs no service account and no key."""
    return replace(
        form,
        hint=N_(
            "A folder or a shared drive that you may see; documents and presentations of Google are read as PDF, its "
            "spreadsheets as .xlsx."
        ),
        fields=tuple(field for field in form.fields if field.name not in ("subject", "key")),
    )
