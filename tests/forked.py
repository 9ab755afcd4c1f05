"""Python for the commands of tests, forked from a process that has imported the product already.

Such a command is a process with its own arguments, environment, folder and files, and ends with its own status. It only
saves the imports, which take longer than most commands themselves. Tests of how a process starts use `sys.executable`.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

PROJECT = Path(__file__).resolve().parent.parent
#: The number of bytes that tell how long the request is.
LENGTH_BYTES = 4
#: The process that a test starts: it passes its own files on, then signals, and ends as the command ended. Without the
#: site-packages it starts at once.
CLIENT = """
import json, os, signal, socket, sys
channel = socket.socket(socket.AF_UNIX)
channel.connect(sys.argv[1])
asked = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(channel, [len(asked).to_bytes(4, "big")], [0, 1, 2])
channel.sendall(asked)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT):
    signal.signal(number, lambda number, _: channel.sendall(bytes([number])))
status = int(channel.recv(4) or b"1")
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@functools.cache
def forked_python() -> tuple[str, ...]:
    """Return what begins a command in place of `sys.executable`, without options of Python itself."""
    if not hasattr(os, "pidfd_open"):  # not Linux
        return (sys.executable,)
    folder = tempfile.TemporaryDirectory(prefix="hr-forked-")
    address = f"{folder.name}/commands"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked", address], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    def end() -> None:
        with process:
            pass
        folder.cleanup()

    atexit.register(end)
    return sys.executable, "-I", "-S", "-c", CLIENT, address


def kill(process: subprocess.Popen[Any]) -> None:
    """Send SIGKILL to what the process runs; the process itself ends by the same signal, once it is dead."""
    process.send_signal(signal.SIGUSR1 if _is_forked(process) else signal.SIGKILL)


def pause(process: subprocess.Popen[Any]) -> None:
    """Stop what the process runs until the process gets SIGCONT."""
    process.send_signal(signal.SIGUSR2 if _is_forked(process) else signal.SIGSTOP)


def _is_forked(process: subprocess.Popen[Any]) -> bool:
    return isinstance(process.args, list) and CLIENT in process.args


def next_command(address: str) -> list[str]:
    """Fork a process for each client. Returns in these only, with the arguments of the command that each is to be."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        os.write(1, b"ready\n")
        while True:
            if sys.stdin in select.select([door, sys.stdin], [], [])[0]:
                os._exit(0)  # the tests are over
            client = door.accept()[0]
            if os.fork() == 0:
                break
            client.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with client:
        head, files, _, _ = socket.recv_fds(client, LENGTH_BYTES, 3)
        asked = client.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
        if process := os.fork():
            for file in files:
                os.close(file)
            keep(process, client)
    arguments, environment, folder = json.loads(asked)
    become(environment, folder, files)
    return list(arguments)


def keep(process: int, client: socket.socket) -> NoReturn:
    """Pass the client's signals to the command and the command's status to the client."""
    end = os.pidfd_open(process)
    while end not in select.select([client.fileno(), end], [], [])[0]:
        passed = client.recv(1)
        is_killed = passed in (b"", bytes([signal.SIGUSR1]))
        given = signal.SIGSTOP if passed == bytes([signal.SIGUSR2]) else passed[0] if passed else 0
        os.kill(process, signal.SIGKILL if is_killed else given)
        if is_killed:
            break
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with suppress(BrokenPipeError):
        client.sendall(str(status).encode())
    os._exit(0)


def become(environment: dict[str, str], folder: str, files: list[int]) -> None:
    """Take the environment, the folder and the standard files of a command."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdout.reconfigure(write_through=bool(environment.get("PYTHONUNBUFFERED")))  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    time.tzset()


def run(arguments: list[str]) -> None:
    """Run `-c PROGRAM`, `-m MODULE` or a file with its arguments, as Python does."""
    kind, *sys.argv = arguments
    if kind == "-c":
        exec(compile(sys.argv[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 50)
    for module in ("rag.commands.service", "rag.services", "rag.server"):
        importlib.import_module(module)
    gc.freeze()
    run(next_command(sys.argv[1]))
