"""Which addresses the server may be sent to.

What an operator sets in the environment may lie in a private network: Ollama on this machine is that. Where others
wrote an address, such as an attachment's, its name may not lead there; else the server could be sent to look into the
network it stands in. Addresses where clouds keep a machine's own secrets are refused to both.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import httpx

from rag.errors import InvalidInput, SettingsError

Resolve = Callable[[str], Sequence[str]]
"""The IP addresses behind a host's name. Raises `OSError`."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def require_web_address(name: str, address: str) -> tuple[str, int | None]:
    """Host and port of an http or https address. Raises `SettingsError` naming the variable for anything else."""
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as exc:
        raise SettingsError(f"{name} has to be a web address, such as https://example.com.") from exc
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SettingsError(f"{name} has to be an address without a name, a password, ? or #.")
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError(f"{name} is {address!r}, but it has to be a web address.")
    if (literal := _literal(host)) is not None and is_never_allowed(literal):
        raise SettingsError(f"{name} leads to {host}, where no service of ours can be.")
    return host, port


def require_safe_origin(name: str, address: str) -> str:
    """The address if it is https, or http on this machine. Raises `SettingsError` naming the variable."""
    host, _ = require_web_address(name, address)
    if urlsplit(address).scheme != "https" and host not in ("localhost", "127.0.0.1", "::1"):
        raise SettingsError(f"{name} has to begin with https://, or lead to this machine.")
    return address


def is_never_allowed(address: Address) -> bool:
    """Whether nothing can be meant by this address but a machine's own secrets, everybody or nobody."""
    address = getattr(address, "ipv4_mapped", None) or address
    is_metadata = str(address) in ("fd00:ec2::254", "100.100.100.200")
    return address.is_link_local or address.is_multicast or address.is_unspecified or is_metadata


def _literal(host: str) -> Address | None:
    """The host as an IP address, also as the odd forms that resolvers read: 2130706433, 0x7f.1."""
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
    """The IP addresses behind a host's name, as the system finds them. Raises `OSError`."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


class OutwardTransport(httpx.BaseTransport):
    """Leads to addresses outside only, and to those that were looked at: a name is looked up once for each request.

    Looked up again by the connection, it could lead elsewhere meanwhile (DNS rebinding). So the connection is made to
    the address itself; Host and the certificate stay the name's. A host given by its number, and localhost, are what
    somebody wrote: whether they may be asked is the caller's business. Raises `InvalidInput` for a name that leads
    into a network of ours. Proxies of the environment are not asked: they would look the name up themselves.
    """

    def __init__(self, *, resolve: Resolve = resolve, transport: httpx.BaseTransport | None = None) -> None:
        self._resolve = resolve
        # No connection is kept: two names may have one address, and only one of them has shown its certificate.
        self._transport = transport or httpx.HTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if host == "localhost" or _literal(host) is not None:
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
        """What the name leads to, if all of it is outside."""
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
    """The same request for one address behind its host's name."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
