"""Read files from a folder on Nextcloud, ownCloud or a different WebDAV server."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, quote, unquote

import httpx
from webdav4.urls import join_url

from rag.errors import DocumentError, InvalidInput, ProviderAnswerInvalid
from rag.ingestion.loaders.detection import media_type_of
from rag.ingestion.loaders.format_table import is_followed, is_hidden
from rag.ingestion.loaders.sandbox import TenantReader, answers_sandbox_of, well_formed
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.integrations.sources.remote import (
    client_for,
    fields_of,
    own_errors,
    read_within,
    require_https,
    require_size,
    require_success,
    send_patiently,
    web_address_of,
)
from rag.language import N_
from rag.settings import Settings
from rag.types import Collection, storable

MOST_FILES, MOST_FOLDERS = 20_000, 5_000
#: Unreadable files count, too.
MOST_NAMES = 200_000
#: The deepest folder; deeper lists lead in a circle.
DEEPEST = 30
#: The longest list for a folder.
MOST_LIST_BYTES = 50 * 2**20
WORKER = "rag.integrations.sources.webdav.answers"
SERVICE = "The WebDAV server"
REJECTED = "The server rejected the name or the password. On Nextcloud it has to be an app password."
FORBIDDEN = "This account may not read this folder. Share it with the account, and sync again."
NO_WEBDAV = "No WebDAV server answers at this address. Check the address, or ask the people who run that server."
MISSING = N_("There is no such folder on the server. Check the address and the folder.")


@dataclass(frozen=True, kw_only=True)
class WebdavFolder:
    """A folder on a WebDAV server, and the account for reading the folder."""

    address: httpx.URL
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, source_settings: Mapping[str, Any]) -> WebdavFolder:
        """Read the settings. Raises `InvalidInput` for missing and invalid values.

        For Nextcloud, the address may be copied from the browser, at the start page or in an opened folder.
        """
        values = fields_of(source_settings, "address", "user", "password", "folder")
        if not values["address"]:
            raise InvalidInput("Fill in the address of the server, such as https://cloud.example.com.")
        if bool(values["user"]) != bool(values["password"]):
            raise InvalidInput(
                "Fill in the name and the password. If everybody may read the folder, leave both fields empty."
            )
        address = web_address_of(values["address"], "The address of the server")
        path, folder = unquote(address.path).rstrip("/"), values["folder"].strip("/")
        opened, is_opened, _ = path.partition("/apps/files")
        if is_opened:
            path = opened.removesuffix("/index.php")
            folder = folder or parse_qs(address.query.decode()).get("dir", [""])[0].strip("/")
        if not path or is_opened:
            if not values["user"]:
                raise InvalidInput("Fill in the name of the account, or the whole address of the folder.")
            path = f"{path}/remote.php/dav/files/{values['user']}"
        if ".." in PurePosixPath(f"{path}/{folder}").parts:
            raise InvalidInput("The path of the folder may not contain “..”.")
        quoted_path = quote(f"{path}/{folder}".rstrip("/"), safe="/@:+,;=~!$&'()*")
        return cls(
            address=address.copy_with(raw_path=f"{quoted_path}/".encode(), fragment=None),
            user=values["user"],
            password=values["password"],
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file or folder in the server's list; `name` is the path below the followed folder."""

    name: str
    is_folder: bool
    size: int
    #: The ETag, or time and size.
    etag: str
    changed: datetime | None


class WebdavSource:
    """A source with the readable files in a WebDAV folder and all subfolders."""

    kind = "webdav"

    def __init__(
        self,
        folder: WebdavFolder,
        limits: ExtractionLimits,
        reader: TenantReader,
        *,
        own_hosts: frozenset[str] = frozenset(),
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """`reader` parses lists in the sandbox; `own_hosts` may be in a private network.

        Raises `InvalidInput` without https.
        """
        require_https(folder.address, own_hosts)
        self._limits = limits
        self._wait = wait
        self._folder = folder
        self._reader = reader
        self._client = client_for(
            own_hosts,
            auth=(folder.user, folder.password) if folder.user else None,
            most_bytes=max(MOST_LIST_BYTES, limits.maximum_bytes),
        )

    def items(self) -> Iterator[SourceItem]:
        """Yield all readable files by path. A changed ETag marks a changed file."""
        waiting, visited, files, folders = deque([""]), {""}, 0, 0
        while waiting:
            for entry in sorted(self._list_entries(waiting.popleft()), key=lambda entry: entry.name):
                name = entry.name
                place = PurePosixPath(name)
                if name in visited or not name or is_hidden(place):
                    continue
                visited.add(name)
                if entry.is_folder:
                    folders += 1
                    if len(place.parts) > DEEPEST or folders > MOST_FOLDERS:
                        raise InvalidInput("This folder holds too many folders. Choose one of them.")
                    waiting.append(name)
                elif is_followed(place):
                    files += 1
                    if files > MOST_FILES:
                        raise InvalidInput(
                            f"This folder holds more than {MOST_FILES:,} documents. Choose a folder in it."
                        )
                    yield self._item(entry)
                elif len(visited) > MOST_NAMES:
                    raise InvalidInput(f"This folder holds more than {MOST_NAMES:,} files. Choose a folder in it.")

    def _list_entries(self, folder: str) -> list[Entry]:
        address = join_url(self._folder.address, folder)
        request = self._client.build_request("PROPFIND", address, headers={"Depth": "1"})
        with own_errors(SERVICE):
            answer = send_patiently(
                partial(self._client.send, request, stream=True, follow_redirects=True), wait=self._wait
            )
            try:
                if answer.status_code in (405, 501):
                    raise ProviderAnswerInvalid(NO_WEBDAV)
                require_success(answer, SERVICE, rejected=REJECTED, forbidden=FORBIDDEN, missing=MISSING)
                if answer.status_code != 207:
                    raise ProviderAnswerInvalid(NO_WEBDAV)
                content = read_within(answer, replace(self._limits, maximum_bytes=MOST_LIST_BYTES))
            finally:
                answer.close()
        try:
            values = self._reader.answer("WebDAV list", content, base=str(self._folder.address), folder=folder).values
            with well_formed():
                return [_entry_of(entry) for entry in values["entries"]]
        except DocumentError as exc:
            raise ProviderAnswerInvalid(NO_WEBDAV) from exc

    def _item(self, entry: Entry) -> SourceItem:
        return SourceItem(
            key=entry.name,
            updated_at=entry.changed,
            hash=entry.etag,
            title=PurePosixPath(entry.name).name,
            load=partial(self._load, entry.name, entry.size),
        )

    def expected(self) -> int:
        """Return 0: the number is only known after listing."""
        return 0

    def close(self) -> None:
        self._client.close()

    def _load(self, name: str, size: int) -> SourceContent:
        require_size(size, self._limits)
        with own_errors(SERVICE):
            request = self._client.build_request("GET", join_url(self._folder.address, name))
            answer = send_patiently(
                partial(self._client.send, request, stream=True, follow_redirects=True), wait=self._wait
            )
            try:
                missing = "This file is no longer there."
                require_success(answer, SERVICE, rejected=REJECTED, forbidden=FORBIDDEN, missing=missing)
                content = read_within(answer, self._limits)
            finally:
                answer.close()
        file_name = PurePosixPath(name).name
        return SourceContent(file_name=file_name, content=content, mime_type=media_type_of(content, file_name))


def _entry_of(values: Mapping[str, Any]) -> Entry:
    changed = values["changed"]
    return Entry(
        name=storable(values["name"]),
        is_folder=values["is_folder"] is True,
        size=int(values["size"]),
        etag=storable(values["etag"]),
        changed=datetime.fromisoformat(changed) if changed else None,
    )


def source_of(settings: Settings, collection: Collection, source_settings: Mapping[str, Any]) -> WebdavSource:
    limits = ExtractionLimits.of(settings)
    reader = answers_sandbox_of(limits, WORKER).of_tenant(collection.tenant_id)
    return WebdavSource(WebdavFolder.of(source_settings), limits, reader, own_hosts=settings.own_sync_hosts)
