"""Check web addresses, to keep the server from sending requests to forbidden addresses.

An operator may name a private address, for example for Ollama on this machine. An address written by other people, for
example in an attachment, must not lead into a private network (`rag.providers.outward`). Addresses at which clouds
store a machine's secrets are refused in both cases.
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
#: Cloud metadata services, which hand out a machine's keys, beside the link-local 169.254.0.0/16 and fe80::/10: Amazon
#: (IPv6), Alibaba, Azure, Oracle.
METADATA = frozenset({"fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"})
#: IPv6 addresses translated to the IPv4 address in their last 32 bits: NAT64 (RFC 6052 and 8215), compatible and
#: translated addresses. 6to4 and Teredo carry the IPv4 address elsewhere.
TRANSLATED = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))
TUNNELS = tuple(map(ipaddress.IPv6Network, ("2002::/16", "2001::/32", "fec0::/10")))


def require_web_address(name: str, address: str) -> tuple[str, int | None]:
    """Return host and port from a web address. For other values, raises `SettingsError` with the variable's name."""
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
    """Return the address if it is https, or http on this machine. Otherwise, raises `SettingsError` with the variable's
    name.
    """
    host, _ = require_web_address(name, address)
    if urlsplit(address).scheme != "https" and host not in ("localhost", "127.0.0.1", "::1"):
        raise SettingsError(f"{name} has to begin with https://, or lead to this machine.")
    return address


def is_never_allowed(address: Address) -> bool:
    """Whether an address is link-local, multicast, unspecified, or a cloud's metadata service."""
    if str(address) in ("::1", "127.0.0.1"):
        return False
    return any(
        candidate.is_link_local or candidate.is_multicast or candidate.is_unspecified or str(candidate) in METADATA
        for candidate in (address, *_embedded_addresses(address))
    )


def is_public(address: Address) -> bool:
    """Whether an address belongs to a machine on the public internet, reached directly.

    A translated or tunnelled address counts as private, because it may lead into a private network.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if any(address in network for network in (*TRANSLATED, *TUNNELS)):
            return False
    return address.is_global and not is_never_allowed(address)


def _embedded_addresses(address: Address) -> Sequence[ipaddress.IPv4Address]:
    if not isinstance(address, ipaddress.IPv6Address):
        return ()
    embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in TRANSLATED):
        embedded.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [candidate for candidate in embedded if candidate is not None]


def literal_address(host: str) -> Address | None:
    """Parse the host as an IP address, including odd forms accepted by resolvers: 2130706433, 0x7f.1."""
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
    """Return a host name's IP addresses, from the system's resolver. Raises `OSError`."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
