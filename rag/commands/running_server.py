"""Run a command in the running server for a data folder, because the server has everything loaded.

The server listens on a Unix socket in a folder which only its owner may enter, unreachable over a network
(`rag.commands.listener`). The command sends a JSON line and receives JSON lines: `{"is_taken": bool}`, then `{"out":
text}` and `{"err": text}` while it runs, and `{"status": number}` at the end. This side imports only the standard
library and the settings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import socket
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from rag.settings import Settings

#: Below the data folder.
FOLDER, SOCKET = "commands", "socket"
#: Longest socket path in bytes that both Linux and macOS accept.
LONGEST_PATH = 100
#: How long to wait for the server to accept the command; then the command runs in its process.
ACCEPT_SECONDS = 5.0
#: Settings for the server alone, without effect on commands.
OF_THE_SERVER = frozenset({"address", "port", "public_url", "data_dir", "worker", "samples", "log_format"})
#: Arguments which are not options of the command.
NO_OPTIONS = frozenset({"command", "run"})
SERVER_ENDED = "The server stopped before it had finished. Run the command again."


class Output(Protocol):
    """Receives a command's output piece by piece."""

    def out(self, text: str) -> None:
        """Write to standard output."""

    def err(self, text: str) -> None:
        """Write to standard error."""


class Terminal:
    """Write a command's output to standard output and standard error immediately."""

    def out(self, text: str) -> None:
        print(text, end="", flush=True)

    def err(self, text: str) -> None:
        print(text, end="", flush=True, file=sys.stderr)


def socket_path(data_dir: Path) -> Path | None:
    """Return the server's socket path in a data folder; `None` if the path is too long."""
    path = data_dir / FOLDER / SOCKET
    return path if len(os.fsencode(path)) <= LONGEST_PATH else None


def digest_of(settings: Settings) -> str:
    """Hash the settings which affect commands. The hash is compared with the server's hash, without sending secrets."""
    values = {item.name: getattr(settings, item.name) for item in fields(settings) if item.name not in OF_THE_SERVER}
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def run_in_server(arguments: argparse.Namespace, settings: Settings, output: Output) -> int | None:
    """Run a command in the running server, and return the exit status.

    Returns `None` if no server is running for the data folder, or the server has other settings.
    """
    path = socket_path(settings.data_dir)
    if path is None:
        return None
    options = {name: value for name, value in vars(arguments).items() if name not in NO_OPTIONS}
    request = {"command": arguments.command, "options": options, "settings": digest_of(settings)}
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as replies:
        try:
            connection.settimeout(ACCEPT_SECONDS)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            if not _read(replies.readline()).get("is_taken"):
                return None
        except OSError:
            return None  # No server, or a killed server left its socket.
        connection.settimeout(None)
        while True:
            try:
                reply = _read(replies.readline())
            except OSError:
                reply = {}
            if not reply:
                output.err(f"{SERVER_ENDED}\n")
                return 1
            if "status" in reply:
                return int(reply["status"])
            for name, write in (("out", output.out), ("err", output.err)):
                if name in reply:
                    write(str(reply[name]))


def _read(line: bytes) -> dict[str, Any]:
    """Parse a JSON line from the server. Return {} for an incomplete line, which means that the server has ended."""
    return dict(json.loads(line)) if line.endswith(b"\n") else {}
