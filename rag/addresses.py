"""Which addresses the server may be sent to: one check for every address that somebody can set.

What an operator sets in the environment may lie in a private network: Ollama on this machine is that. What an
administrator types on a page may not, unless the operator listed its host; else the server could be sent to look into
the network it stands in. Addresses where clouds keep a machine's own secrets are refused to both.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from rag.errors import InvalidInput, SettingsError
from rag.settings import Settings

Resolve = Callable[[str], Sequence[str]]
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


def require_allowed_address(address: str, settings: Settings, *, resolve: Resolve | None = None) -> str:
    """An address an administrator typed, if the server may be sent there. Raises `InvalidInput` saying what is missing.

    The host has to be in RAG_ALLOWED_HOSTS (`.example.com` stands for all below it); one that leads into a private
    network in RAG_ALLOWED_PRIVATE_HOSTS. Every address a name resolves to has to pass.
    """
    try:
        host, _ = require_web_address("This", address)
    except SettingsError as exc:
        raise InvalidInput(exc.message) from exc
    private_hosts = _hosts(settings.allowed_private_hosts)
    if not _is_listed(host, (*_hosts(settings.allowed_hosts), *private_hosts)):
        raise InvalidInput(f"The server may not be sent to {host}. An operator can add it to RAG_ALLOWED_HOSTS.")
    found = [literal] if (literal := _literal(host)) else _addresses(host, resolve or _resolve)
    for one in found:
        if is_never_allowed(one):
            raise InvalidInput(f"{host} leads to an address where no service of ours can be.")
        if not one.is_global and not _is_listed(host, private_hosts):
            raise InvalidInput(
                f"{host} leads into a private network. An operator can allow that with RAG_ALLOWED_PRIVATE_HOSTS."
            )
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


def _resolve(host: str) -> Sequence[str]:
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _addresses(host: str, resolve: Resolve) -> list[Address]:
    try:
        return [ipaddress.ip_address(text.partition("%")[0]) for text in resolve(host)]
    except (OSError, UnicodeError) as exc:
        raise InvalidInput(f"There is no host {host}. Check the address.") from exc


def _hosts(text: str) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in text.split(",") if part.strip())


def _is_listed(host: str, listed: Sequence[str]) -> bool:
    return any(host == name or (name.startswith(".") and host.endswith(name)) for name in listed)
