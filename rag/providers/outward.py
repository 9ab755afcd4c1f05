"""Connect to web addresses written by other people, but never into private networks."""

from __future__ import annotations

import ipaddress

import httpx

from rag.errors import InvalidInput
from rag.providers.addresses import Address, Resolve, is_public, literal_address, resolve
from rag.providers.bounds import timed


class OutwardTransport(httpx.BaseTransport):
    """Connects only to public addresses. Raises `InvalidInput` for a name which leads into a private network.

    A name is resolved once for each request, and the connection is made to the checked address, with the name in Host
    and in the certificate check. A second resolution could give a different address (DNS rebinding). A numeric host,
    and localhost, are the caller's responsibility. The environment's proxies are not used, because they would resolve
    the name themselves.
    """

    def __init__(self, *, resolve: Resolve = resolve, transport: httpx.BaseTransport | None = None) -> None:
        self._resolve = resolve
        # No connection is kept: two names may share an address, and only one has shown its certificate.
        self._transport = transport or timed(httpx.HTTPTransport(limits=httpx.Limits(max_keepalive_connections=0)))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if host == "localhost" or literal_address(host) is not None:
            return self._transport.handle_request(request)
        *first_addresses, last_address = self._resolve_public(host)
        for address in first_addresses:
            try:
                return self._transport.handle_request(_address_request(address, request))
            except httpx.ConnectError:
                continue  # For example IPv6 on a machine with only IPv4.
        return self._transport.handle_request(_address_request(last_address, request))

    def close(self) -> None:
        self._transport.close()

    def _resolve_public(self, host: str) -> list[Address]:
        """Return the IP addresses of a host name.

        Raises `InvalidInput` unless all addresses are public, and `ConnectError` if there are none.
        """
        try:
            addresses = [ipaddress.ip_address(text.partition("%")[0]) for text in self._resolve(host)]
        except (OSError, ValueError) as exc:
            raise httpx.ConnectError(f"There is no host {host}.") from exc
        if not addresses:
            raise httpx.ConnectError(f"There is no host {host}.")
        if not all(map(is_public, addresses)):
            raise InvalidInput(f"{host} leads into a private network.")
        return list(dict.fromkeys(addresses))


def _address_request(address: Address, request: httpx.Request) -> httpx.Request:
    """Replace the host in a request by the checked IP address.

    The Host header and the certificate check keep the name.
    """
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )


class Unclosed(httpx.BaseTransport):
    """Wraps a shared transport, which stays open when a client using the transport is closed."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._transport.handle_request(request)
