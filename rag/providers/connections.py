"""Connect to the providers that the settings name, and to no address the server must not reach.

An operator may name a private address, such as Ollama on this machine. An address others wrote, such as an
attachment's, may not lead into a private network, and the addresses where clouds keep a machine's secrets are refused
to both. Redirects are not followed: requests go only where the settings say.
"""

from __future__ import annotations

import importlib
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import httpx2
import openai

from rag.errors import InvalidInput, SettingsError
from rag.providers import ChatModel, Connection, Embedder
from rag.providers.embeddings import OpenAIEmbedder
from rag.providers.openai_compatible import OpenAIChatModel, openai_errors
from rag.settings import Settings
from rag.settings.providers import BY_NAME, PROVIDERS, Capability, ProviderSpec, providers_for

#: A connection that takes longer is given up.
CONNECT_TIMEOUT_SECONDS = 5.0
#: Connections to one provider; idle ones are kept for the next questions. With the transports' defaults, 100 of which
#: 20 stay open, people who ask at once would wait for each other's calls and open a connection for each call.
CONNECTIONS = 1000
KEPT_CONNECTIONS = 100
LIMITS = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=KEPT_CONNECTIONS)


class _Transport(openai.DefaultHttpxClient):
    """Follows no redirect; closes with its last user, as the SDK's own does."""

    def __init__(self) -> None:
        super().__init__(follow_redirects=False, limits=LIMITS)

    def __del__(self) -> None:
        # While the interpreter ends, what closing needs may be gone already.
        with suppress(Exception):
            self.close()


#: Names of models that write no text.
NO_CHAT = re.compile(r"embed|whisper|tts|dall-e|moderation|image|audio|realtime|transcribe|sora|babbage|davinci|bge-")


class OpenAIConnection(Connection):
    """OpenAI, or another server that speaks its language."""

    def __init__(
        self, spec: ProviderSpec, settings: Settings, *, key: str = "", address: str = "", variables: str = ""
    ) -> None:
        super().__init__(spec, settings)
        try:
            self._client = openai.OpenAI(
                api_key=key or settings.key_of(spec.name),
                base_url=address or settings.address_of(spec.name),
                max_retries=0,
                timeout=timeout_of(settings),
                http_client=_Transport(),
            )
        except (httpx2.InvalidURL, openai.OpenAIError, ValueError) as exc:
            raise SettingsError(f"{variables or spec.address_variable} cannot be used: {exc}.") from exc

    def chat_model(self, model: str) -> ChatModel:
        return OpenAIChatModel(self._client, provider=self.spec.name, model=model)

    def embedder(self, model: str, dimensions: int) -> Embedder:
        return OpenAIEmbedder(self._client, provider=self.spec.name, model=model, dimensions=dimensions)

    def probe(self, *, timeout_seconds: float) -> None:
        with openai_errors(self.spec.name):
            self._client.with_options(timeout=timeout_seconds).models.list()

    def models(self, capability: Capability, *, timeout_seconds: float) -> list[str]:
        with openai_errors(self.spec.name):
            found = self._client.with_options(timeout=timeout_seconds).models.list().data
            names = sorted(str(model.id).removeprefix("models/") for model in found)
        if capability == "embed":
            return [name for name in names if "embed" in name or name.startswith("bge")]
        # The list does not say what a model is for; its name does.
        return [name for name in names if not NO_CHAT.search(name)]

    def close(self) -> None:
        self._client.close()


@dataclass(frozen=True)
class Connections:
    """The providers that are configured, by name."""

    #: The provider OPENAI_BASE_URL points to, configured or not.
    primary: str
    #: The connection to it; None without a key.
    at_primary: Connection | None
    by_name: Mapping[str, Connection]

    def able(self, capability: Capability, provider: str = "") -> Connection | None:
        """Return the connection to a provider that can do this, by default to the preferred one; None without any."""
        names = [provider] if provider else [spec.name for spec in providers_for(capability)]
        found = [self.by_name[name] for name in names if name in self.by_name]
        return next((connection for connection in found if capability in connection.spec.capabilities), None)

    def close(self) -> None:
        for connection in {id(one): one for one in (*self.by_name.values(), self.at_primary) if one}.values():
            connection.close()


def connect(settings: Settings) -> Connections:
    """Make the connections; nothing is sent yet. Raises `SettingsError` naming the variable that cannot be used."""
    primary = provider_of(settings.openai_base_url)
    for spec in PROVIDERS:
        if spec.key_variable:
            _require_sendable(spec.key_variable, settings.key_of(spec.name))
        if spec.address_variable and (address := settings.address_of(spec.name)):
            require_web_address(spec.address_variable, address)
    # A model that runs on this machine asks for no key, but the SDK does.
    key = settings.openai_api_key or ("unused" if primary == "ollama" else "")
    main: Connection | None = None
    if key:
        variables = "OPENAI_BASE_URL or OPENAI_API_KEY"
        main = OpenAIConnection(
            BY_NAME[primary], settings, key=key, address=settings.openai_base_url, variables=variables
        )
    others = {
        spec.name: _factory(spec)(spec, settings)
        for spec in PROVIDERS
        if spec.factory and spec.name != "openai" and settings.has_provider(spec.name)
    }
    return Connections(primary=primary, at_primary=main, by_name=({primary: main} if main else {}) | others)


def _factory(spec: ProviderSpec) -> Callable[[ProviderSpec, Settings], Connection]:
    module, _, name = spec.factory.partition(":")
    found: Callable[[ProviderSpec, Settings], Connection] = getattr(
        importlib.import_module(f"rag.providers.{module}"), name
    )
    return found


def provider_of(base_url: str) -> str:
    """Name the provider at this address, as the ledger and the ids of embedders do."""
    host, port = require_web_address("OPENAI_BASE_URL", base_url)
    for spec in PROVIDERS:
        if any(host == known or host.endswith(f".{known}") for known in spec.hosts):
            return spec.name
    return "ollama" if port == 11434 or "ollama" in host else "openai"


def timeout_of(settings: Settings) -> httpx2.Timeout:
    """Return the longest waits for a provider that speaks OpenAI's language, and for the connection to it."""
    return httpx2.Timeout(settings.openai_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS)


def _require_sendable(name: str, key: str) -> None:
    if not all("!" <= character <= "~" for character in key):
        raise SettingsError(f"{name} holds characters that no key has, such as a space or a line break. Copy it again.")


# Addresses

Resolve = Callable[[str], Sequence[str]]
"""The IP addresses behind a host's name. Raises `OSError`."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def require_web_address(name: str, address: str) -> tuple[str, int | None]:
    """Return host and port of a web address. Raises `SettingsError` naming the variable for anything else."""
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as exc:
        raise SettingsError(f"{name} has to be a web address, such as https://example.com.") from exc
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SettingsError(f"{name} has to be an address without a name, a password, ? or #.")
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError(f"{name} is {address!r}, but it has to be a web address.")
    if (literal := literal_address(host)) is not None and is_never_allowed(literal):
        raise SettingsError(f"{name} leads to {host}, where none of our services can be.")
    return host, port


def require_safe_origin(name: str, address: str) -> str:
    """Return the address if it is https, or http on this machine. Raises `SettingsError` naming the variable."""
    host, _ = require_web_address(name, address)
    if urlsplit(address).scheme != "https" and host not in ("localhost", "127.0.0.1", "::1"):
        raise SettingsError(f"{name} has to begin with https://, or lead to this machine.")
    return address


def is_never_allowed(address: Address) -> bool:
    """Return whether an address can only lead to a machine's own secrets, to everybody or to nobody."""
    address = getattr(address, "ipv4_mapped", None) or address
    is_metadata = str(address) in ("fd00:ec2::254", "100.100.100.200")
    return address.is_link_local or address.is_multicast or address.is_unspecified or is_metadata


def literal_address(host: str) -> Address | None:
    """Return the host as an IP address, also as the odd forms that resolvers read: 2130706433, 0x7f.1."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if not all(part[:2] == "0x" or part.isdigit() for part in host.split(".")):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def resolve(host: str) -> list[str]:
    """Return the IP addresses behind a host's name, as the system finds them. Raises `OSError`."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


class OutwardTransport(httpx.BaseTransport):
    """Connects to public addresses only, and only to the one that was checked: a name is looked up once for each
    request.

    If the connection looked it up again, it could lead elsewhere by then (DNS rebinding). So the connection is made to
    the address itself, with the name in Host and in the check of the certificate. A host given as a number, and
    localhost, are the caller's responsibility. Raises `InvalidInput` for a name that leads into a private network.
    Proxies of the environment are not used: they would look the name up themselves.
    """

    def __init__(self, *, resolve: Resolve = resolve, transport: httpx.BaseTransport | None = None) -> None:
        self._resolve = resolve
        # No connection is kept: two names may share an address, and only one of them has shown its certificate.
        self._transport = transport or httpx.HTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if host == "localhost" or literal_address(host) is not None:
            return self._transport.handle_request(request)
        *others, last = self._outward(host)
        for address in others:
            try:
                return self._transport.handle_request(_sent_to(address, request))
            except httpx.ConnectError:
                continue  # such as one of version 6 where there is only version 4
        return self._transport.handle_request(_sent_to(last, request))

    def close(self) -> None:
        self._transport.close()

    def _outward(self, host: str) -> list[Address]:
        """Return the addresses of the name, if all of them are outside."""
        try:
            found = [ipaddress.ip_address(text.partition("%")[0]) for text in self._resolve(host)]
        except (OSError, ValueError) as exc:
            raise httpx.ConnectError(f"There is no host {host}.") from exc
        if not found:
            raise httpx.ConnectError(f"There is no host {host}.")
        if any(is_never_allowed(address) or not address.is_global for address in found):
            raise InvalidInput(f"{host} leads into a private network.")
        return list(dict.fromkeys(found))


def _sent_to(address: Address, request: httpx.Request) -> httpx.Request:
    """Return the same request for one address behind its host's name."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
