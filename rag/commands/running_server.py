"""Have the running server of the data folder carry out a command: all it needs is loaded there.

The server listens on a Unix socket within the data folder, in a folder that only its owner may enter; nothing can be
reached over a network (`rag.commands.listener`). The command writes one line of JSON and reads lines of JSON:
`{"is_taken": bool}`, then `{"out": text}` and `{"err": text}` as they come, and `{"status": number}` at the end.

This half imports Python's own modules and the settings only.
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
#: Longest path of a socket that Linux and macOS both take, in bytes.
LONGEST_PATH = 100
#: How long to wait until the server takes the command; then it works by itself.
TAKEN_SECONDS = 5.0
#: Settings for the server alone, without effect on commands.
OF_THE_SERVER = frozenset({"address", "port", "public_url", "data_dir", "worker", "samples", "log_format"})
#: Arguments that are no option of the command.
NO_OPTIONS = frozenset({"command", "run"})
SERVER_ENDED = "The server stopped before it had finished. Run the command again."


class Output(Protocol):
    """Takes what a command says, piece by piece."""

    def out(self, text: str) -> None:
        """Write to standard output."""

    def err(self, text: str) -> None:
        """Write to standard error."""


class Terminal:
    """Writes to this process's own output, at once."""

    def out(self, text: str) -> None:
        print(text, end="", flush=True)

    def err(self, text: str) -> None:
        print(text, end="", flush=True, file=sys.stderr)


def socket_path(data_dir: Path) -> Path | None:
    """Return where the server of a data folder listens; None where the path is too long for a socket."""
    path = data_dir / FOLDER / SOCKET
    return path if len(os.fsencode(path)) <= LONGEST_PATH else None


def digest_of(settings: Settings) -> str:
    """Return a digest of the settings that affect commands: no secret is sent."""
    values = {item.name: getattr(settings, item.name) for item in fields(settings) if item.name not in OF_THE_SERVER}
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def run_in_server(arguments: argparse.Namespace, settings: Settings, output: Output) -> int | None:
    """Return the command's status; None where no server with these settings takes it, and nothing has been done."""
    path = socket_path(settings.data_dir)
    if path is None:
        return None
    options = {name: value for name, value in vars(arguments).items() if name not in NO_OPTIONS}
    asked = {"command": arguments.command, "options": options, "settings": digest_of(settings)}
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as replies:
        try:
            connection.settimeout(TAKEN_SECONDS)
            connection.connect(str(path))
            connection.sendall(json.dumps(asked).encode() + b"\n")
            if not _read(replies.readline()).get("is_taken"):
                return None
        except OSError:
            return None  # there is no server, or one that was killed and left its socket
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
    """Return a reply; an empty one where the server ended within it."""
    return dict(json.loads(line)) if line.endswith(b"\n") else {}
