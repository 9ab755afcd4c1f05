"""Read a document library in SharePoint, or a person's OneDrive, through Microsoft Graph.

The first delta query lists everything, later queries only changes. The list is stored in the source's state. If
configured, the document's readers here are the groups which may read the file in SharePoint.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

import httpx
import msal

from rag.errors import InvalidInput, NotFound, ProviderKeyRejected, ProviderUnavailable
from rag.ingestion.loaders.detection import media_type_of
from rag.ingestion.loaders.format_table import is_followed
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.permissions import EVERYBODY, Readers, SharedFolderSource
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.integrations.sources.remote import (
    MOST_PAGES,
    JsonApi,
    client_for,
    fields_of,
    own_errors,
    read_within,
    require_https,
    require_size,
    web_address_of,
)
from rag.providers.bounds import USUAL
from rag.settings import Settings
from rag.types import Collection

GRAPH = "https://graph.microsoft.com/v1.0"
LOGIN = "https://login.microsoftonline.com"
MOST_FILES, MOST_ENTRIES = 20_000, 200_000
#: Libraries with more entries are listed whole each time.
MOST_STORED_ENTRIES = 50_000
BATCH = 20
SELECT = "id,name,file,folder,root,package,parentReference,cTag,eTag,size,lastModifiedDateTime,webUrl,deleted"
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
CLIENT = re.compile(r"[0-9A-Fa-f-]{36}")
#: SharePoint groups with everybody in the organisation.
EVERYBODY_NAMES = frozenset({"everyone", "everyone except external users"})
SENTENCES = {
    "rejected": "Microsoft rejected the application. Check the directory ID, the application ID and the client "
    "secret, which may have expired.",
    "forbidden": "The application may not read these documents. Give it the permission Sites.Read.All in Entra ID.",
    "missing": "There is no such site, library or folder, or the application may not see it.",
}


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library or a person's OneDrive, and the app registration in Entra ID for reading."""

    tenant: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    site: httpx.URL | None = None
    owner: str = ""
    library: str = ""
    folder: str = ""
    has_readers: bool = False

    @classmethod
    def of(cls, source_settings: Mapping[str, Any]) -> Library:
        """Read the settings. Raises `InvalidInput` for missing and invalid values."""
        values = fields_of(source_settings, "tenant", "client_id", "client_secret", "site", "library", "folder")
        if not TENANT.fullmatch(values["tenant"]):
            raise InvalidInput("Fill in the directory (tenant) ID of the application in Entra ID.")
        if not CLIENT.fullmatch(values["client_id"]):
            raise InvalidInput("Fill in the application (client) ID: 36 characters from its page in Entra ID.")
        if not values["client_secret"]:
            raise InvalidInput("Fill in a client secret of the application: its value, not its ID.")
        place = values["site"]
        if not place:
            raise InvalidInput(
                "Fill in the address of the SharePoint site, or the e-mail address of a OneDrive's owner."
            )
        is_owner = "@" in place and "/" not in place
        return cls(
            tenant=values["tenant"],
            client_id=values["client_id"],
            client_secret=values["client_secret"],
            site=None if is_owner else web_address_of(place, "The address of the site"),
            owner=place if is_owner else "",
            library=values["library"],
            folder=values["folder"].strip("/"),
            has_readers=source_settings.get("readers") in (True, "true"),
        )

    @property
    def site_path(self) -> str:
        """The site's path, for example sites/hr, even if the address leads to a page within the site."""
        path = [part for part in unquote(self.site.path if self.site else "").split("/") if part]
        named = path[:2] if path[:1] and path[0] in ("sites", "teams", "personal") else []
        return "/".join(named)


@dataclass(frozen=True, kw_only=True)
class MicrosoftCloud:
    """The addresses for Microsoft's worldwide cloud or a national cloud. `own_hosts` may be in a private network."""

    graph_url: str = GRAPH
    login_url: str = LOGIN
    own_hosts: frozenset[str] = frozenset()


WORLDWIDE = MicrosoftCloud()


class SharePointSource(SharedFolderSource):
    """A source with the readable files in a document library or folder."""

    kind = "sharepoint"

    def __init__(
        self,
        library: Library,
        limits: ExtractionLimits,
        *,
        cloud: MicrosoftCloud = WORLDWIDE,
        state: Mapping[str, Any] | None = None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """`state` is from the last sync."""
        super().__init__(has_readers=library.has_readers, state=state)
        require_https(httpx.URL(cloud.graph_url), cloud.own_hosts)
        self._library = library
        self._limits = limits
        self._login_url = cloud.login_url.rstrip("/")
        self._graph = httpx.URL(cloud.graph_url)
        self._client = client_for(cloud.own_hosts, most_bytes=max(USUAL.most_bytes, limits.maximum_bytes))
        self._api = JsonApi(
            self._client, cloud.graph_url.rstrip("/"), "Microsoft Graph", SENTENCES, token=self._token, wait=wait
        )
        self._drive = ""
        self._application: msal.ConfidentialClientApplication | None = None

    def items(self) -> Iterator[SourceItem]:
        """Yield all readable files by id. A changed content tag marks a changed file."""
        start, _ = self._start()
        entries = self._entries()
        files = [(place, entry) for place, entry in _files_below(entries, start) if is_followed(place)]
        if len(files) > MOST_FILES:
            raise InvalidInput(f"This library holds more than {MOST_FILES:,} documents. Choose a folder in it.")
        files.sort(key=lambda file: str(file[0]))
        yield from self._items_for_readers([entry for _, entry in files], self._readers_in_batches)

    def close(self) -> None:
        self._client.close()

    # Listing

    def _start(self) -> tuple[str, str]:
        if not self._drive:
            self._drive = self._find_drive()
        if not self._library.folder:
            return str(self._api.get(f"/drives/{self._drive}/root", {"$select": "id"})["id"]), self._drive
        path = quote(self._library.folder, safe="/")
        folder = self._api.get(f"/drives/{self._drive}/root:/{path}", {"$select": "id,folder"})
        if "folder" not in folder:
            raise InvalidInput(
                "This is the name of a file, not of a folder. Enter the name of the folder that contains the file."
            )
        return str(folder["id"]), self._drive

    def _find_drive(self) -> str:
        library = self._library
        if library.owner:
            return str(self._api.get(f"/users/{quote(library.owner)}/drive", {"$select": "id"})["id"])
        assert library.site is not None  # noqa: S101  `of` has one of both
        path = f":/{quote(library.site_path)}" if library.site_path else ""
        site = str(self._api.get(f"/sites/{library.site.host}{path}", {"$select": "id"})["id"])
        if not library.library:
            return str(self._api.get(f"/sites/{site}/drive", {"$select": "id"})["id"])
        drives = list(self._api.pages(f"/sites/{site}/drives", {"$select": "id,name"}))
        for drive in drives:
            if str(drive.get("name", "")).casefold() == library.library.casefold():
                return str(drive["id"])
        names = ", ".join(str(drive.get("name", "")) for drive in drives)
        raise NotFound(f"This site has no library “{library.library}”; it has: {names}.")

    def _entries(self) -> dict[str, dict[str, Any]]:
        """Return all entries in the drive, by id, requesting only changes if possible."""
        if self._state.get("drive") == self._drive and self._state.get("link"):
            try:
                return self._apply_changes({**self._state["entries"]}, self._state["link"])
            except NotFound:
                pass  # too long ago: Graph asks to list everything again
        return self._apply_changes({}, f"/drives/{self._drive}/root/delta?$select={SELECT}")

    def _apply_changes(self, entries: dict[str, dict[str, Any]], link: str) -> dict[str, dict[str, Any]]:
        """Apply a delta query's pages to the entries. Stores the link for the next query."""
        pages = 0
        while link:
            if (pages := pages + 1) > MOST_PAGES:
                raise InvalidInput("This library has too many files to list. Choose a smaller library.")
            page = self._api.get(link)
            for entry in page.get("value") or ():
                if "deleted" in entry:
                    entries.pop(str(entry["id"]), None)
                else:
                    entries[str(entry["id"])] = _shorten(entry)
            if len(entries) > MOST_ENTRIES:
                raise InvalidInput(f"This library has more than {MOST_ENTRIES:,} entries. Use a smaller one.")
            link = str(page.get("@odata.nextLink") or "")
            delta_link = str(page.get("@odata.deltaLink") or "")
        is_stored = delta_link and len(entries) <= MOST_STORED_ENTRIES
        self._state = {"drive": self._drive, "link": delta_link, "entries": entries} if is_stored else {}
        return dict(entries)

    def _load(self, entry: Mapping[str, Any]) -> SourceContent:
        require_size(int(entry.get("size") or 0), self._limits)
        # Graph redirects to an address which needs no token.
        with self._api.stream(f"/drives/{self._drive}/items/{entry['id']}/content") as answer:
            content = read_within(answer, self._limits)
        name = str(entry["name"])
        metadata = {"pageUrl": entry["url"]} if entry.get("url") else {}
        kind = media_type_of(content, name)
        return SourceContent(file_name=name, content=content, mime_type=kind, metadata=metadata)

    # Permissions

    def _readers_of_folder(self) -> Readers:
        (readers,) = self._permissions([self._start()[0]])
        return readers

    def _readers_in_batches(self, files: Sequence[Mapping[str, Any]]) -> Iterator[Readers]:
        for first in range(0, len(files), BATCH):
            yield from self._permissions([str(file["id"]) for file in files[first : first + BATCH]])

    def _permissions(self, ids: Sequence[str]) -> list[Readers]:
        """Return the readers for each entry, requesting up to twenty entries together. Raises `ProviderUnavailable`."""
        requests = [
            {"id": str(number), "method": "GET", "url": f"/drives/{self._drive}/items/{quote(item)}/permissions"}
            for number, item in enumerate(ids)
        ]
        answers = {
            str(response["id"]): response for response in self._api.post("/$batch", {"requests": requests})["responses"]
        }
        readers = []
        for number in range(len(ids)):
            answer = answers.get(str(number), {})
            if answer.get("status") != 200:
                raise ProviderUnavailable(
                    "Microsoft Graph cannot say at the moment who may read the files. Try again later."
                )
            body = answer["body"]
            # Read all pages, or groups would be missing.
            permissions = list(body.get("value") or ())
            if more := body.get("@odata.nextLink"):
                permissions += self._api.pages(str(more), {})
            readers.append(_readers(permissions))
        return readers

    # The token

    def _token(self) -> str:
        with _login_errors():
            if self._application is None:
                self._application = msal.ConfidentialClientApplication(
                    self._library.client_id,
                    client_credential=self._library.client_secret,
                    authority=f"{self._login_url}/{self._library.tenant}",
                    http_client=self._client,
                    instance_discovery=False,
                )
            scope = f"{self._graph.scheme}://{self._graph.netloc.decode()}/.default"
            result = self._application.acquire_token_for_client(scopes=[scope])
        if not result or "access_token" not in result:
            raise ProviderKeyRejected(SENTENCES["rejected"])
        return str(result["access_token"])


@contextmanager
def _login_errors() -> Iterator[None]:
    try:
        with own_errors("The sign-in of Microsoft"):
            yield
    except ValueError as exc:
        raise InvalidInput("Microsoft knows no such directory. Check the directory (tenant) ID.") from exc


def _shorten(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce an entry to the needed fields, because entries are stored until the next sync."""
    is_file = "file" in entry and "package" not in entry
    fields = {
        "id": entry["id"],
        "name": entry.get("name", ""),
        "parent": (entry.get("parentReference") or {}).get("id", ""),
    }
    if "root" in entry:
        fields["is_root"] = True
    if is_file:
        changed = str(entry.get("lastModifiedDateTime") or "")
        fields |= {
            "tag": entry.get("cTag") or entry.get("eTag") or f"{changed} {entry.get('size')}",
            "size": entry.get("size") or 0,
            "changed": changed,
            "url": entry.get("webUrl") or "",
        }
    return fields


def _files_below(
    entries: Mapping[str, Mapping[str, Any]], start: str
) -> Iterator[tuple[PurePosixPath, Mapping[str, Any]]]:
    for entry in entries.values():
        if "tag" not in entry:
            continue
        parts, above, visited = [str(entry["name"])], str(entry["parent"]), set[str]()
        while above != start and above in entries and above not in visited:
            visited.add(above)
            parts.append(str(entries[above]["name"]))
            above = str(entries[above]["parent"])
        if above == start:
            yield PurePosixPath(*reversed(parts)), entry


def _readers(permissions: Sequence[Mapping[str, Any]]) -> Readers:
    names: set[str] = set()
    for permission in permissions:
        link = permission.get("link") or {}
        if link.get("scope") in ("organization", "anonymous"):
            return EVERYBODY
        identities = [permission.get("grantedToV2") or {}, *(permission.get("grantedToIdentitiesV2") or ())]
        for identity in identities:
            for kind in ("group", "siteGroup"):
                if name := str((identity.get(kind) or {}).get("displayName") or "").strip():
                    names.add(name)
            user = str((identity.get("siteUser") or identity.get("user") or {}).get("displayName") or "")
            if user.casefold() in EVERYBODY_NAMES:
                return EVERYBODY
    if any(name.casefold() in EVERYBODY_NAMES for name in names):
        return EVERYBODY
    return Readers(groups=frozenset(names))


def source_of(settings: Settings, collection: Collection, source_settings: Mapping[str, Any]) -> SharePointSource:
    return SharePointSource(
        Library.of(source_settings),
        ExtractionLimits.of(settings),
        cloud=MicrosoftCloud(
            graph_url=settings.variable("RAG_GRAPH_URL"),
            login_url=settings.microsoft_login_url,
            own_hosts=settings.own_sync_hosts,
        ),
        state=source_settings.get("state"),
    )
