"""Read files from a bucket in S3-compatible storage, for example Amazon S3, MinIO, Cloudflare R2 and Ceph."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import ParseError

import urllib3
from minio import Minio
from minio.datatypes import Object
from minio.error import MinioException, S3Error, ServerError
from minio.helpers import check_bucket_name
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError

from rag.errors import (
    InvalidInput,
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderUnavailable,
)
from rag.ingestion.loaders.detection import media_type_of
from rag.ingestion.loaders.format_table import is_followed
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.integrations.sources.remote import fields_of, private_network, require_size
from rag.providers.addresses import is_public, resolve
from rag.settings import Settings
from rag.types import Collection

#: The most readable files; for larger buckets, people choose a folder.
MOST_FILES = 20_000
#: The most unreadable files in the list, such as logs.
MOST_NAMES = 1_000_000
TIMEOUT_SECONDS = 20.0
READ_TIMEOUT_SECONDS = 60.0
RETRIES = 2
#: For a whole answer.
LONGEST_SECONDS = 600.0
#: A page in the list has a thousand names; parsing takes 0.02 seconds for a megabyte.
MOST_LIST_BYTES = 8 * 2**20
MOST_LISTS = 1500
KEY_PROBLEMS = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"})


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A bucket, or a folder in a bucket, and the access keys."""

    address: str
    name: str
    folder: str = ""
    region: str = ""
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)

    @classmethod
    def of(cls, source_settings: Mapping[str, Any]) -> Bucket:
        """Read the settings. Raises `InvalidInput` for missing and long values."""
        values = fields_of(source_settings, "address", "bucket", "folder", "region", "access_key", "secret_key")
        if not values["address"] or not values["bucket"]:
            raise InvalidInput("Fill in the address of the storage and the name of the bucket.")
        if bool(values["access_key"]) != bool(values["secret_key"]):
            raise InvalidInput("Fill in both keys. If everybody may read the bucket, leave both fields empty.")
        values["folder"] = values["folder"].strip("/")
        return cls(name=values.pop("bucket"), **values)

    @property
    def prefix(self) -> str:
        return f"{self.folder}/" if self.folder else ""


class BucketSource:
    """A source with the readable files in a bucket or folder."""

    kind = "s3"

    def __init__(self, bucket: Bucket, limits: ExtractionLimits, *, own_hosts: frozenset[str] = frozenset()) -> None:
        """`own_hosts` may be in a private network. Raises `InvalidInput` for an invalid address."""
        parts = _storage_address(bucket.address)
        is_own = parts.netloc.lower() in own_hosts
        if parts.scheme == "http" and not is_own:
            raise InvalidInput("The address of the storage has to begin with https://.")
        self._bucket = bucket
        self._limits = limits
        try:
            self._client = Minio(
                parts.netloc,
                access_key=bucket.access_key or None,
                secret_key=bucket.secret_key or None,
                secure=parts.scheme == "https",
                region=bucket.region or None,
                http_client=_Connections(is_own=is_own),
            )
            # Check the bucket name before keeping the settings.
            check_bucket_name(bucket.name)
        except ValueError as exc:
            raise InvalidInput(f"This storage cannot be read: {str(exc).rstrip('.')}.") from exc

    def items(self) -> Iterator[SourceItem]:
        """Yield all readable files by name. A changed ETag marks a changed file."""
        files = 0
        for number, entry in enumerate(self._objects()):
            if number >= MOST_NAMES:
                raise InvalidInput(f"This bucket holds more than {MOST_NAMES:,} files. Choose a folder in it.")
            name = entry.object_name or ""
            place = PurePosixPath(name.removeprefix(self._bucket.prefix))
            if entry.is_dir or name.endswith("/") or not is_followed(place):
                continue
            files += 1
            if files > MOST_FILES:
                raise InvalidInput(f"This bucket holds more than {MOST_FILES:,} documents. Choose a folder in it.")
            yield SourceItem(
                key=name,
                updated_at=entry.last_modified,
                hash=entry.etag or "",
                title=place.name,
                load=partial(self._load, name, entry.size or 0),
            )

    def expected(self) -> int:
        """Return 0: the number is only known after listing."""
        return 0

    def _objects(self) -> Iterator[Object]:
        with _own_errors():
            yield from self._client.list_objects(self._bucket.name, prefix=self._bucket.prefix or None, recursive=True)

    def _load(self, name: str, size: int) -> SourceContent:
        require_size(size, self._limits)
        with _own_errors():
            answer = self._client.get_object(self._bucket.name, name)
            try:
                content = answer.read(self._limits.maximum_bytes + 1)
            finally:
                answer.close()
                answer.release_conn()
        require_size(len(content), self._limits)
        file_name = PurePosixPath(name).name
        return SourceContent(file_name=file_name, content=content, mime_type=media_type_of(content, file_name))


def _storage_address(address: str) -> Any:
    problem = "The address of the storage has to be a web address without a path, such as https://s3.amazonaws.com."
    try:
        parts = urlsplit(address)
        is_valid = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError as exc:
        raise InvalidInput(problem) from exc
    extra = parts.username or parts.password or parts.query or parts.fragment or parts.path.strip("/")
    if parts.scheme not in ("http", "https") or not is_valid or extra:
        raise InvalidInput(problem)
    return parts


@contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except S3Error as exc:
        if exc.code in KEY_PROBLEMS:
            raise ProviderKeyRejected(
                "The storage rejected the keys. Check the access key and the secret key."
            ) from exc
        if exc.code == "AccessDenied":
            raise ProviderKeyRejected(
                "These keys have no permission to list or read this bucket. Give both permissions, and sync again."
            ) from exc
        if exc.code == "NoSuchKey":
            raise NotFound("The storage has no such file. Sync again.") from exc
        if exc.code == "NoSuchBucket":
            raise NotFound("The storage has no such bucket. Check its name and the region.") from exc
        if exc.code in ("SlowDown", "ServiceUnavailable", "InternalError"):
            raise ProviderUnavailable("The storage cannot answer at the moment. Try again later.") from exc
        raise ProviderError(f"The storage did not accept this request ({exc.code}).") from exc
    except (ServerError, urllib3.exceptions.HTTPError, OSError) as exc:
        raise ProviderUnavailable("The storage cannot be reached at the moment. Check its address.") from exc
    except (MinioException, ParseError, ValueError, TypeError, LookupError, AttributeError) as exc:
        # For lists in unknown formats the client raises various errors.
        raise ProviderAnswerInvalid("The storage sent an answer that cannot be read. Check its address.") from exc


# Private networks are refused, except for hosts from the settings. A name is resolved and checked before sending, and
# the connection goes to the checked address: redirects and changed names cannot get past the check, and the duration of
# a refusal tells nothing about our network.


@contextmanager
def _at_public_address(connection: HTTPConnection) -> Iterator[None]:
    """Connect to the checked IP address, because the host name could resolve to a private address later.

    Raises `InvalidInput` for a private address.
    """
    name = connection.host
    try:
        addresses = [ip_address(text.partition("%")[0]) for text in resolve(name)]
    except (OSError, ValueError) as exc:
        raise NewConnectionError(connection, f"There is no host {name}.") from exc
    if not addresses or not all(map(is_public, addresses)):
        raise private_network(name)
    # The first IPv4 address, because some machines do not reach IPv6.
    connection.host = str(min(addresses, key=lambda address: address.version))
    try:
        yield
    finally:
        connection.host = name


class _TimedConnection(HTTPConnection):
    """A connection with a time limit for the whole response. The usual timeouts apply only to each read."""

    _end: threading.Timer | None = None

    def request(self, *arguments: Any, **options: Any) -> None:
        self._calm()
        super().request(*arguments, **options)
        # Closing the connection closes the socket, too.
        self._end = threading.Timer(LONGEST_SECONDS, partial(_shut, self.sock))
        self._end.daemon = True
        self._end.start()

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        answer = super().getresponse()
        # A retry would first read the rest of the answer.
        answer.drain_conn = answer.close  # type: ignore[method-assign]
        return answer

    def close(self) -> None:
        self._calm()
        super().close()

    def _calm(self) -> None:
        if self._end is not None:
            self._end.cancel()


def _shut(connection: socket.socket | None) -> None:
    if connection is not None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class _TimedSecureConnection(_TimedConnection, HTTPSConnection):
    pass


class _PublicConnection(_TimedConnection):
    def _new_conn(self) -> socket.socket:
        with _at_public_address(self):
            return super()._new_conn()


class _PublicSecureConnection(_TimedSecureConnection):
    def _new_conn(self) -> socket.socket:
        with _at_public_address(self):
            return super()._new_conn()


class _OwnPool(HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _OwnSecurePool(HTTPSConnectionPool):
    ConnectionCls = _TimedSecureConnection


class _PublicPool(HTTPConnectionPool):
    ConnectionCls = _PublicConnection


class _PublicSecurePool(HTTPSConnectionPool):
    ConnectionCls = _PublicSecureConnection


class _Connections(urllib3.PoolManager):
    """A connection pool which limits how many responses are read, and their unpacked size.

    Files are exempt. Without limits, a hostile server could fill the memory.
    """

    def __init__(self, *, is_own: bool) -> None:
        super().__init__(
            timeout=urllib3.Timeout(connect=TIMEOUT_SECONDS, read=READ_TIMEOUT_SECONDS),
            # Storage in the operator's network has no reason for redirects to other hosts.
            retries=urllib3.Retry(
                total=RETRIES,
                redirect=0 if is_own else RETRIES,
                backoff_factor=0.2,
                status_forcelist=(500, 502, 503, 504),
            ),
        )
        http, https = (_OwnPool, _OwnSecurePool) if is_own else (_PublicPool, _PublicSecurePool)
        self.pool_classes_by_scheme = {"http": http, "https": https}
        self._lists = 0

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        is_file = options.get("preload_content") is False
        options["preload_content"] = False
        answer = super().urlopen(method, url, redirect, **options)
        if is_file:
            return answer
        self._lists += 1
        try:
            content = answer.read(MOST_LIST_BYTES + 1)
        finally:
            answer.close()
        if len(content) > MOST_LIST_BYTES or self._lists > MOST_LISTS:
            raise ProviderAnswerInvalid(
                "The list of files from the storage does not end, so reading was stopped. Try again later."
            )
        return urllib3.HTTPResponse(
            body=content,
            headers=answer.headers,
            status=answer.status,
            reason=answer.reason,
            preload_content=False,
            decode_content=False,
        )


def source_of(settings: Settings, collection: Collection, source_settings: Mapping[str, Any]) -> BucketSource:
    return BucketSource(Bucket.of(source_settings), ExtractionLimits.of(settings), own_hosts=settings.own_sync_hosts)
