"""Let the server run commands for other processes on this machine.

These processes send their commands with `rag.commands.running_server`.
"""

from __future__ import annotations

import argparse
import json
import logging
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Semaphore, Thread
from typing import Any

from rag.commands.questions import ask_question, search_passages
from rag.commands.running_server import Output, socket_path
from rag.errors import RagError
from rag.services import Services
from rag.storage.data_folder import only_one

log = logging.getLogger("rag.commands")

Work = Callable[[Services, argparse.Namespace, Output, Event], int]
#: Commands the server can run.
SERVED: dict[str, Work] = {"ask": ask_question, "search": search_passages}
#: Held by the listening process.
LOCK = "lock"
#: How often a second server for the data folder checks whether the first has ended.
RETRY_SECONDS = 1.0
#: The most concurrent commands; further commands run in their process.
MOST_COMMANDS = 16
#: Longest wait for a command to send the request, or to read output.
CLIENT_SECONDS = 30.0
LONGEST_REQUEST = 2**20
#: Longest wait for commands under way at the end.
END_SECONDS = 5.0


class CommandListener:
    """Listen for commands on a socket in the data folder, from `start` to `stop`.

    If several servers share the folder, the server which started first listens.
    """

    def __init__(self, services: Services, settings_digest: str) -> None:
        """Commands whose `settings_digest` differs from the server's are refused."""
        self._services = services
        self._settings_digest = settings_digest
        self._stop = Event()
        self._wake, self._woken = socket.socketpair()
        self._lock = Lock()
        self._clients: dict[socket.socket, Thread] = {}
        self._slots = Semaphore(MOST_COMMANDS)
        self._thread = Thread(target=self._run, name="commands", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Accept no more commands, and end the running commands. May be called twice."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._wake.send(b"\0")
        self._thread.join(END_SECONDS)
        with self._lock:
            under_way = dict(self._clients)
            for client in under_way:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + END_SECONDS
        for thread in under_way.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        self._wake.close()
        self._woken.close()

    def _run(self) -> None:
        path = socket_path(self._services.settings.data_dir)
        if path is None:
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.chmod(0o700)
            while not self._stop.is_set():
                with only_one(path.parent, LOCK) as is_first:
                    if is_first:
                        self._listen(path)
                self._stop.wait(RETRY_SECONDS)
        except OSError as exc:
            log.warning("Commands do not reach this server, and work by themselves: %s", exc)

    def _listen(self, path: Path) -> None:
        path.unlink(missing_ok=True)  # Left by a killed server: the lock shows nobody listens.
        with socket.socket(socket.AF_UNIX) as door, selectors.DefaultSelector() as ready:
            door.bind(str(path))
            path.chmod(0o600)
            door.listen()
            ready.register(door, selectors.EVENT_READ)
            ready.register(self._woken, selectors.EVENT_READ)
            try:
                while True:
                    ready.select()
                    if self._stop.is_set():
                        return
                    self._begin(door.accept()[0])
            finally:
                path.unlink(missing_ok=True)

    def _begin(self, client: socket.socket) -> None:
        client.settimeout(CLIENT_SECONDS)
        if not self._slots.acquire(blocking=False):
            client.close()
            return
        thread = Thread(target=self._serve, args=(client,), name="command", daemon=True)
        with self._lock:
            self._clients[client] = thread
        thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                request = _request(client)
                work = SERVED.get(str(request.get("command")))
                is_accepted = work is not None and request.get("settings") == self._settings_digest
                reply = Reply(client)
                reply.send({"is_taken": is_accepted})
                if work is None or not is_accepted:
                    return
                with reply.watched():
                    reply.send({"status": self._status(work, argparse.Namespace(**request["options"]), reply)})
        finally:
            with self._lock:
                del self._clients[client]
            self._slots.release()

    def _status(self, work: Work, arguments: argparse.Namespace, reply: Reply) -> int:
        try:
            return work(self._services, arguments, reply, reply.cancel)
        except RagError as exc:
            reply.err(f"{exc.message}\n")
        except Exception:
            log.exception("a command failed")
            reply.err(f"{RagError().message}\n")
        return 1


class Reply:
    """Sends a command's output to the calling process. `cancel` is set when the calling process has ended."""

    def __init__(self, client: socket.socket) -> None:
        self.cancel = Event()
        self._client = client

    def out(self, text: str) -> None:
        self.send({"out": text})

    def err(self, text: str) -> None:
        self.send({"err": text})

    def send(self, value: dict[str, Any]) -> None:
        try:
            self._client.sendall(json.dumps(value).encode() + b"\n")
        except OSError:
            self.cancel.set()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the connection inside a `with` block: if the client disconnects, the event `cancel` is set."""
        watcher = Thread(target=self._watch, name="command-watch", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            with suppress(OSError):
                self._client.shutdown(socket.SHUT_RD)
            watcher.join()

    def _watch(self) -> None:
        while True:
            try:
                self._client.recv(1)  # The process sends nothing more before closing.
            except TimeoutError:
                continue
            except OSError:
                pass
            self.cancel.set()
            return


def _request(client: socket.socket) -> dict[str, Any]:
    """Read the request which a process sends; return {} for an unreadable request."""
    with client.makefile("rb") as lines:
        try:
            request = json.loads(lines.readline(LONGEST_REQUEST))
        except (OSError, ValueError, RecursionError):
            return {}
    return request if isinstance(request, dict) and isinstance(request.get("options"), dict) else {}
