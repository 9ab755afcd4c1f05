"""A TLS server with its own certificate on this machine, for stand-ins of services which require https."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import ssl
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import uuid4

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.standins.local_server import LocalServer, QuietHandler


class TlsServer(LocalServer):
    """Serves at 127.0.0.1 and localhost; clients must trust the file `certificate` (SSL_CERT_FILE)."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], folder: Path) -> None:
        super().__init__(handler)
        self.certificate = folder / "certificate.pem"
        _write_certificate(self.certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def other_host(self) -> str:
        """Return the same server's address under another name, which counts as another host."""
        return f"localhost:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error, because a client may hang up."""


class JsonHandler(QuietHandler):
    """A request handler which sends JSON, bytes and redirects."""

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def send(self, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        kind = "application/octet-stream" if isinstance(content, bytes) else "application/json"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _write_certificate(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    # A distinct name lets a client which trusts several certificates find the right one.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"stand-in {uuid4()}")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
