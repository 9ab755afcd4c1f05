"""Judge web addresses, so that the server is led to none that it must not reach.

An operator may name a private address, such as Ollama on this machine. An address others wrote, such as an
attachment's, may not lead into a private network (`rag.providers.outward`), and the addresses where clouds keep a
machine's secrets are refused to both.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from rag.errors import SettingsError

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
