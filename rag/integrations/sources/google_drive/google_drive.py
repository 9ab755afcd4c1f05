"""Read a folder or shared drive in Google Drive, with a service account or for a signed-in person.

The first sync lists the folder. Later syncs only ask for changes, and list the folder again after folders were moved.
Documents and presentations in Google's formats are exported to PDF, spreadsheets to .xlsx.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import httpx
from google.auth import exceptions, transport
from google.oauth2 import credentials, service_account

from rag.errors import (
    DocumentError,
    InvalidInput,
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
)
from rag.ingestion.loaders.detection import media_type_of
from rag.ingestion.loaders.format_table import file_formats, is_followed
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.permissions import EVERYBODY, Readers, SharedFolderSource
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.integrations.sources.google_drive.sign_in import SCOPE
from rag.integrations.sources.remote import (
    MOST_PAGES,
    JsonApi,
    client_for,
    fields_of,
    is_own,
    own_errors,
    read_within,
    require_https,
    require_size,
)
from rag.providers.bounds import USUAL
from rag.settings import Settings
from rag.types import Collection

API = "https://www.googleapis.com"
TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
FOLDER = "application/vnd.google-apps.folder"
#: Documents in Google's editors have no file, and are exported in a format with the same content.
EXPORTED = {
    "application/vnd.google-apps.document": "pdf",
    "application/vnd.google-apps.presentation": "pdf",
    "application/vnd.google-apps.spreadsheet": "xlsx",
}
MOST_FILES, MOST_FOLDERS = 20_000, 5_000
#: The readers are requested for each file.
MOST_FILES_WITH_READERS = 2_000
MOST_KEY_CHARACTERS = 10_000
FIELDS = "id,name,mimeType,parents,md5Checksum,modifiedTime,size,webViewLink,trashed"
ALL_DRIVES = {"supportsAllDrives": "true", "includeItemsFromAllDrives": "true"}
PLACE = re.compile(r"(?:https?://\S*?(?:/folders/|[?&]id=))?([A-Za-z0-9_-]{8,100})(?:[/?&#]\S*)?")
SENTENCES = {
    "rejected": (
        "Google rejected the key of the service account, or does not allow the account to read in the name of this "
        "person. Check the key and the e-mail address of the person."
    ),
    "forbidden": "The service account may not read this, or the Drive API is not switched on in its project.",
    "missing": "There is no such folder, or it is not shared with the service account.",
}
#: The sentences for signed-in people.
SENTENCES_OF_PERSON = {
    "rejected": "Google no longer accepts this sign-in. Sign in with Google again, and follow the folder again.",
    "forbidden": "This Google account may not read this, or the Drive API is not switched on in the project.",
    "missing": "There is no such folder, or this Google account does not see it.",
}
SERVICE_ACCOUNT, PERSON = "service_account", "authorized_user"


@dataclass(frozen=True, kw_only=True)
class DriveFolder:
    """A folder in Google Drive, and the credentials for reading the folder."""

    id: str
    #: The service account's key, or the result from signing in, in the format for Google's files.
    key: Mapping[str, Any] = field(repr=False)
    #: The person whose files the service account reads, by delegation for the whole domain; "" for none.
    subject: str = ""
    has_readers: bool = False

    @classmethod
    def of(cls, source_settings: Mapping[str, Any]) -> DriveFolder:
        """Read the settings. Raises `InvalidInput` for missing and invalid values."""
        values = fields_of(source_settings, "folder", "subject")
        place = PLACE.fullmatch(values["folder"])
        if place is None:
            raise InvalidInput("Fill in the address of the folder or the shared drive, as the browser shows it.")
        if values["subject"] and "@" not in values["subject"]:
            raise InvalidInput(
                "Fill in the e-mail address of the person in whose name the folder is read, or leave the field empty."
            )
        problem = "Paste the whole key of the service account: the JSON file that Google made."
        text = str(source_settings.get("key") or "")
        try:
            key = json.loads(text) if len(text) <= MOST_KEY_CHARACTERS else None
        except (ValueError, RecursionError) as exc:
            raise InvalidInput(problem) from exc
        if not isinstance(key, dict) or key.get("type") not in (SERVICE_ACCOUNT, PERSON):
            raise InvalidInput(problem)
        if values["subject"] and key["type"] == PERSON:
            raise InvalidInput(
                "Only a service account can read in the name of another person. Leave the field for that person empty."
            )
        return cls(
            id=place[1],
            key=key,
            subject=values["subject"],
            has_readers=source_settings.get("readers") in (True, "true"),
        )


class GoogleDriveSource(SharedFolderSource):
    """A source with the readable files in a Google Drive folder and subfolders."""

    kind = "google_drive"

    def __init__(
        self,
        folder: DriveFolder,
        limits: ExtractionLimits,
        *,
        api_url: str = API,
        own_hosts: frozenset[str] = frozenset(),
        state: Mapping[str, Any] | None = None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """`state` is from the last sync. Raises `InvalidInput` for an invalid key."""
        super().__init__(has_readers=folder.has_readers, state=state)
        require_https(httpx.URL(api_url), own_hosts)
        self._folder = folder
        self._limits = limits
        try:
            self._credentials = _credentials(folder)
            token_url = httpx.URL(str(folder.key.get("token_uri") or TOKEN_URL))
        except (ValueError, TypeError, KeyError, exceptions.GoogleAuthError, httpx.InvalidURL) as exc:
            raise InvalidInput("This is not a Google key, or a part is missing.") from exc
        is_google = token_url.scheme == "https" and token_url.host.endswith(".googleapis.com")
        if not is_google and not is_own(token_url, own_hosts):
            raise InvalidInput("The key contains a sign-in address that does not belong to Google.")
        self._client = client_for(own_hosts, most_bytes=max(USUAL.most_bytes, limits.maximum_bytes))
        base = f"{api_url.rstrip('/')}/drive/v3"
        self._sentences = SENTENCES_OF_PERSON if folder.key["type"] == PERSON else SENTENCES
        self._api = JsonApi(self._client, base, "Google Drive", self._sentences, token=self._token, wait=wait)

    def items(self) -> Iterator[SourceItem]:
        """Yield all readable files by id. A changed checksum or time marks a changed file."""
        entries = self._entries()
        files = [entry for entry in entries.values() if "tag" in entry and _is_readable(entry)]
        files.sort(key=lambda entry: (str(entry["name"]).casefold(), str(entry["id"])))
        most = MOST_FILES if self.readers() is None else MOST_FILES_WITH_READERS
        if len(files) > most:
            raise InvalidInput(f"This folder holds more than {most:,} documents. Choose a folder in it.")
        yield from self._items_for_readers(files, lambda files: (self._readers_of(str(file["id"])) for file in files))

    def close(self) -> None:
        self._client.close()

    # Listing

    def _entries(self) -> dict[str, dict[str, Any]]:
        """Return all files and folders below the followed folder, by id.

        After the first sync, only changes are requested.
        """
        query = {**ALL_DRIVES, "fields": "id,mimeType,driveId"}
        folder = self._api.get(f"/files/{quote(self._folder.id)}", query)
        if folder.get("mimeType") != FOLDER:
            raise InvalidInput(
                "This is the name of a file, not of a folder. Enter the name of the folder that contains the file."
            )
        drive = {"driveId": str(folder["driveId"])} if folder.get("driveId") else {}
        if self._state.get("folder") == self._folder.id and self._state.get("token"):
            try:
                return self._apply_changes({**self._state["entries"]}, str(self._state["token"]), drive)
            except _ListAgain:
                pass
        # The position comes first: the next sync sees changes from the time of listing again.
        token = str(self._api.get("/changes/startPageToken", {**drive, "supportsAllDrives": "true"})["startPageToken"])
        entries = self._list_entries(drive)
        self._state = {"folder": self._folder.id, "token": token, "entries": entries}
        return dict(entries)

    def _list_entries(self, drive: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        entries: dict[str, dict[str, Any]] = {}
        waiting, folders = deque([self._folder.id]), {self._folder.id}
        while waiting:
            above = waiting.popleft()
            query = {
                **ALL_DRIVES,
                **({**drive, "corpora": "drive"} if drive else {}),
                "q": f"'{above}' in parents and trashed = false",
                "pageSize": "1000",
                "fields": f"nextPageToken,files({FIELDS})",
            }
            for file in self._pages("/files", "files", query):
                entry = _shorten(file, above)
                entries[str(entry["id"])] = entry
                if file.get("mimeType") == FOLDER and entry["id"] not in folders:
                    folders.add(str(entry["id"]))
                    waiting.append(str(entry["id"]))
            if len(folders) > MOST_FOLDERS or len(entries) > MOST_FILES + MOST_FOLDERS:
                raise InvalidInput("This folder holds too many folders or files. Choose a folder in it.")
        return entries

    def _apply_changes(
        self, entries: dict[str, dict[str, Any]], token: str, drive: Mapping[str, str]
    ) -> dict[str, dict[str, Any]]:
        """Apply the changes since `token` to the entries.

        Raises `_ListAgain` if folders changed, or the token is too old.
        """
        query = {
            **ALL_DRIVES,
            **drive,
            "pageSize": "1000",
            "includeRemoved": "true",
            "fields": f"nextPageToken,newStartPageToken,changes(fileId,removed,file({FIELDS}))",
        }
        folders = {self._folder.id, *(key for key, entry in entries.items() if "tag" not in entry)}
        pages = 0
        while token:
            if (pages := pages + 1) > MOST_PAGES:
                raise _ListAgain
            try:
                page = self._api.get("/changes", {**query, "pageToken": token})
            except (ProviderUnavailable, ProviderQuotaExhausted, ProviderKeyRejected):
                raise
            except (ProviderError, NotFound) as exc:
                raise _ListAgain from exc
            for change in page.get("changes") or ():
                key, file = str(change.get("fileId")), change.get("file") or {}
                above = next((parent for parent in file.get("parents") or () if parent in folders), "")
                is_removed = bool(change.get("removed") or file.get("trashed") or not above)
                if key in folders or (file.get("mimeType") == FOLDER and not is_removed):
                    if key != self._folder.id:
                        raise _ListAgain
                elif is_removed:
                    entries.pop(key, None)
                else:
                    entries[key] = _shorten(file, above)
            start_token = str(page.get("newStartPageToken") or "")
            token = str(page.get("nextPageToken") or "")
        self._state = {"folder": self._folder.id, "token": start_token, "entries": entries}
        return dict(entries)

    def _pages(self, path: str, name: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        token = ""
        for _ in range(MOST_PAGES):
            page = self._api.get(path, {**query, **({"pageToken": token} if token else {})})
            yield from page.get(name) or ()
            token = str(page.get("nextPageToken") or "")
            if not token:
                return
        raise ProviderAnswerInvalid(
            "The list of files from Google Drive does not end, so reading was stopped. Try again later."
        )

    def _load(self, entry: Mapping[str, Any]) -> SourceContent:
        require_size(int(entry.get("size") or 0), self._limits)
        path, name = f"/files/{quote(str(entry['id']))}", str(entry["name"])
        if entry["mime"] in EXPORTED:
            kind = EXPORTED[entry["mime"]]
            name = f"{name}.{kind}"
            try:
                exported = {"mimeType": file_formats().by_kind[kind].media_type}
                with self._api.stream(f"{path}/export", exported) as answer:
                    content = read_within(answer, self._limits)
            except ProviderKeyRejected as exc:
                raise DocumentError(
                    "Google does not export this file as PDF, because the file has more than 10 MB or its "
                    "owner forbids downloads."
                ) from exc
        else:
            with self._api.stream(path, {"alt": "media", "supportsAllDrives": "true"}) as answer:
                content = read_within(answer, self._limits)
        return SourceContent(
            file_name=name,
            content=content,
            mime_type=media_type_of(content, name),
            title=str(entry["name"]) if entry["mime"] in EXPORTED else "",
            metadata={"pageUrl": entry["url"]} if entry.get("url") else {},
        )

    def _readers_of_folder(self) -> Readers:
        return self._readers_of(self._folder.id)

    def _readers_of(self, key: str) -> Readers:
        """Return the groups which may read a file or folder, in any role.

        Returns `EVERYBODY` if the file is shared with a domain or with anyone.
        """
        query = {
            "supportsAllDrives": "true",
            "pageSize": "100",
            "fields": "nextPageToken,permissions(type,displayName,emailAddress,deleted)",
        }
        names = set()
        for permission in self._pages(f"/files/{quote(key)}/permissions", "permissions", query):
            if permission.get("type") in ("anyone", "domain"):
                return EVERYBODY
            if permission.get("type") == "group" and not permission.get("deleted"):
                names.add(str(permission.get("displayName") or permission.get("emailAddress") or "").strip())
        return Readers(groups=frozenset(names - {""}))

    # The token

    def _token(self) -> str:
        if not self._credentials.valid:
            with _login_errors(self._sentences["rejected"]):
                self._credentials.refresh(_HttpxRequest(self._client))
        return str(self._credentials.token)


class _ListAgain(Exception):
    """Google's change list is incomplete: the folder must be listed again."""


def _credentials(folder: DriveFolder) -> Any:
    """Build the credentials which request access tokens. Raises google-auth's errors for a missing part."""
    key = folder.key
    if key["type"] == SERVICE_ACCOUNT:
        make: Any = service_account.Credentials.from_service_account_info
        return make(dict(key), scopes=[SCOPE], subject=folder.subject or None)
    parts = {name: str(key[name]) for name in ("refresh_token", "client_id", "client_secret")}
    return credentials.Credentials(None, token_uri=str(key.get("token_uri") or TOKEN_URL), **parts)  # type: ignore[no-untyped-call]


@contextmanager
def _login_errors(rejected: str) -> Iterator[None]:
    try:
        with own_errors("The sign-in of Google"):
            yield
    except exceptions.TransportError as exc:
        raise ProviderUnavailable(
            "The sign-in service of Google cannot be reached at the moment. Try again later."
        ) from exc
    except exceptions.GoogleAuthError as exc:
        raise ProviderKeyRejected(rejected) from exc


class _Answer(transport.Response):
    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer

    @property
    def status(self) -> int:
        return self._answer.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    @property
    def data(self) -> bytes:
        return self._answer.content


class _HttpxRequest(transport.Request):
    """Sends google-auth's requests through an httpx client."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> _Answer:
        return _Answer(self._client.request(method, url, content=body, headers=dict(headers or {})))


def _shorten(entry: Mapping[str, Any], above: str) -> dict[str, Any]:
    """Reduce an entry to the needed fields, because entries are stored until the next sync."""
    fields = {"id": str(entry["id"]), "name": str(entry.get("name") or ""), "parent": above}
    if entry.get("mimeType") == FOLDER:
        return fields
    changed = str(entry.get("modifiedTime") or "")
    return fields | {
        "mime": entry.get("mimeType") or "",
        "tag": entry.get("md5Checksum") or changed,
        "size": int(entry.get("size") or 0),
        "changed": changed,
        "url": entry.get("webViewLink") or "",
    }


def _is_readable(entry: Mapping[str, Any]) -> bool:
    return entry["mime"] in EXPORTED or is_followed(PurePosixPath(str(entry["name"])))


def source_of(settings: Settings, collection: Collection, source_settings: Mapping[str, Any]) -> GoogleDriveSource:
    return GoogleDriveSource(
        DriveFolder.of(source_settings),
        ExtractionLimits.of(settings),
        api_url=settings.variable("RAG_GOOGLE_API_URL"),
        own_hosts=settings.own_sync_hosts,
        state=source_settings.get("state"),
    )
