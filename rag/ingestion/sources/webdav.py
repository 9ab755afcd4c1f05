"""Read the files of a folder on Nextcloud, ownCloud or another WebDAV server."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, quote, unquote
from xml.etree.ElementTree import ParseError

import httpx
from webdav4.client import Client, ClientError, HTTPError, MultiStatusError, ResourceNotFound

from rag.errors import (
    InvalidInput,
    NotFound,
    ProviderAnswerInvalid,
)
from rag.ingestion.loaders import MIME_TYPES, ExtractionLimits, is_hidden, is_readable, kind_of
from rag.ingestion.sources.remote import (
    CONNECT_SECONDS,
    READ_SECONDS,
    CheckedTransport,
    fields_of,
    own_errors,
    read_within,
    require_https,
    require_size,
    require_success,
    send_patiently,
    web_address_of,
)
from rag.ingestion.sources.runs import WEBDAV
from rag.ingestion.sources.sync import SourceContent, SourceItem

MOST_FILES, MOST_FOLDERS = 20_000, 5_000
#: Deeper than this nobody keeps documents; a server that lists more leads in a circle.
DEEPEST = 30
#: One folder's list may be so long.
MOST_LIST_BYTES = 100 * 2**20
SERVICE = "The WebDAV server"
REJECTED = "The server rejected the name or the password. On Nextcloud it has to be an app password."
FORBIDDEN = "This account may not read this folder. Share it with the account, and sync again."
NO_WEBDAV = "This address does not answer as a WebDAV server does. Check it, or ask the operator of the server."
MISSING = "There is no such folder on the server. Check the address and the folder."


@dataclass(frozen=True, kw_only=True)
class WebdavFolder:
    """Where the files are, and who reads them."""

    address: httpx.URL
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> WebdavFolder:
        """Read the settings of a source. Raises `InvalidInput` where one is missing or cannot be.

        The address of a Nextcloud may be that of its start page or of an opened folder, as a browser shows it.
        """
        values = fields_of(kept, "address", "user", "password", "folder")
        if not values["address"]:
            raise InvalidInput("Fill in the address of the server, such as https://cloud.example.com.")
        if bool(values["user"]) != bool(values["password"]):
            raise InvalidInput("Fill in name and password, or neither for a folder that everybody may read.")
        given = web_address_of(values["address"], "The address of the server")
        path, folder = unquote(given.path).rstrip("/"), values["folder"].strip("/")
        opened, is_opened, _ = path.partition("/apps/files")
        if is_opened:
            path = opened.removesuffix("/index.php")
            folder = folder or parse_qs(given.query.decode()).get("dir", [""])[0].strip("/")
        if not path or is_opened:
            if not values["user"]:
                raise InvalidInput("Fill in the name of the account, or the whole address of the folder.")
            path = f"{path}/remote.php/dav/files/{values['user']}"
        if ".." in PurePosixPath(f"{path}/{folder}").parts:
            raise InvalidInput("The folder cannot lead upwards with two dots.")
        whole = quote(f"{path}/{folder}".rstrip("/"), safe="/@:+,;=~!$&'()*")
        return cls(
            address=given.copy_with(raw_path=f"{whole}/".encode(), fragment=None),
            user=values["user"],
            password=values["password"],
        )


class WebdavSource:
    """A source of the readable files of a folder on a WebDAV server, and of the folders in it."""

    kind = WEBDAV

    def __init__(
        self,
        folder: WebdavFolder,
        limits: ExtractionLimits,
        *,
        own_hosts: frozenset[str] = frozenset(),
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """Nothing is read yet; `own_hosts` may be in a private network. Raises `InvalidInput` without https."""
        require_https(folder.address, own_hosts)
        self._limits = limits
        self._wait = wait
        self._client = Client(
            folder.address,
            auth=(folder.user, folder.password) if folder.user else None,
            retry=self._patiently,
            transport=CheckedTransport(own_hosts, most_bytes=max(MOST_LIST_BYTES, limits.maximum_bytes)),
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            headers={"User-Agent": "hr-assistant"},
            trust_env=False,
        )

    def items(self) -> Iterator[SourceItem]:
        """Yield every readable file, identified by its path in the folder; its ETag tells whether it changed."""
        waiting, seen, files = deque([""]), {""}, 0
        while waiting:
            folder = waiting.popleft()
            with _own_errors():
                listed = self._client.ls(folder, detail=True, allow_listing_resource=False)
            for found in sorted(listed, key=lambda entry: str(entry["name"])):
                name = str(found["name"]).strip("/")
                place = PurePosixPath(name)
                if name in seen or not name or is_hidden(place):
                    continue
                seen.add(name)
                if found["type"] == "directory":
                    if len(place.parts) > DEEPEST or len(waiting) >= MOST_FOLDERS:
                        raise InvalidInput("This folder holds too many folders. Choose one of them.")
                    waiting.append(name)
                elif is_readable(place):
                    files += 1
                    if files > MOST_FILES:
                        raise InvalidInput(f"This folder holds more than {MOST_FILES:,} documents. Choose one in it.")
                    yield self._item(name, found)

    def _item(self, name: str, found: Mapping[str, Any]) -> SourceItem:
        changed = found.get("modified")
        return SourceItem(
            key=name,
            updated_at=changed if isinstance(changed, datetime) else None,
            # A server without ETags has the time and the size.
            hash=str(found.get("etag") or f"{changed} {found.get('content_length')}"),
            title=PurePosixPath(name).name,
            load=partial(self._load, name, int(found.get("content_length") or 0)),
        )

    def expected(self) -> int:
        """Not known: only listing them tells."""
        return 0

    def close(self) -> None:
        self._client.http.close()

    def _load(self, name: str, size: int) -> SourceContent:
        require_size(size, self._limits)
        with _own_errors():
            request = self._client.http.build_request("GET", self._client.join_url(name))
            answer = send_patiently(
                partial(self._client.http.send, request, stream=True, follow_redirects=True), wait=self._wait
            )
            try:
                missing = "This file is no longer there."
                require_success(answer, SERVICE, rejected=REJECTED, forbidden=FORBIDDEN, missing=missing)
                content = read_within(answer, self._limits)
            finally:
                answer.close()
        file_name = PurePosixPath(name).name
        return SourceContent(file_name=file_name, content=content, mime_type=MIME_TYPES[kind_of(content, file_name)])

    def _patiently(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Send as `send_patiently` does; the client raises what it sends back as an error."""

        def answered() -> httpx.Response:
            try:
                return send()
            except HTTPError as exc:
                refused: httpx.Response = exc.response
                return refused

        answer = send_patiently(answered, wait=self._wait)
        if answer.status_code >= 400:
            raise HTTPError(answer)
        return answer


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raise the errors of the client and of its connection as ours."""
    try:
        with own_errors(SERVICE):
            yield
    except ResourceNotFound as exc:
        raise NotFound(MISSING) from exc
    except HTTPError as exc:
        if exc.status_code not in (405, 501):
            require_success(exc.response, SERVICE, rejected=REJECTED, forbidden=FORBIDDEN, missing=MISSING)
        raise ProviderAnswerInvalid(NO_WEBDAV) from exc
    except (ClientError, MultiStatusError, ParseError, ValueError, AssertionError, KeyError) as exc:
        raise ProviderAnswerInvalid(NO_WEBDAV) from exc
