"""Start confined child processes, limit their resources, and exchange messages with them.

A child knows no secrets or addresses, reaches no file or network, and ends with the application. Messages are JSON
followed by bytes; nothing in them is executed.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rag.sandbox.confinement import READING, AccessRules, confinement
from rag.sandbox.enforcement import confine

try:
    import resource
except ImportError:  # Windows has no limits here; the other side's time limit still applies.
    resource = None  # type: ignore[assignment]

PROJECT = Path(__file__).resolve().parents[2]
HEADER = struct.Struct(">II")
#: The process's whole environment: no keys, no addresses. A single thread, because rules only bind the thread which
#: adopts them, and the libraries' threads would start earlier; with more threads than free cores, OpenMP's also wait
#: for each other.
ENVIRONMENT = {
    "LC_CTYPE": "C.UTF-8", "PYTHONIOENCODING": "utf-8", "PYTHONHASHSEED": "0",
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime 1.29 and later report to Microsoft, in a thread
    "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Reply:
    """A message from a child: kind, values and bytes."""

    kind: str
    values: dict[str, Any]
    blob: bytes
    #: Bytes it took.
    size: int = 0


class MalformedMessage(Exception):
    """A child sent an invalid or oversized message."""


def write_message(stream: BinaryIO, kind: str, values: Mapping[str, Any], blob: bytes = b"") -> None:
    """Write a message: the lengths of JSON and bytes, then both."""
    body = json.dumps({"kind": kind, **values}).encode()
    stream.write(HEADER.pack(len(body), len(blob)))
    stream.write(body)
    stream.write(blob)
    stream.flush()


def read_message(stream: BinaryIO, most_bytes: int = 2**33) -> Reply | None:
    """Read the next message; `None` if the other process has ended. Raises `MalformedMessage`."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    body_length, blob_length = HEADER.unpack(header)
    size = body_length + blob_length
    if size > most_bytes:
        raise MalformedMessage
    body = stream.read(body_length)
    blob = stream.read(blob_length)
    if len(body) < body_length or len(blob) < blob_length:
        return None
    try:
        values = json.loads(body)
        return Reply(str(values.pop("kind")), values, blob, size)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        raise MalformedMessage from exc


# In the application


def start_child(
    *command: str, rules: AccessRules = READING, descriptors: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start one of our modules in a child process, with pipes for messages, and return the process.

    The process is not forked, because the application has threads. It inherits the open files in `descriptors`. The
    last command-line argument is the `order` for `bound_child`.
    """
    with confinement(rules) as ready:
        return subprocess.Popen(  # noqa: S603 - our own module, arguments of our own
            [*ready.prefix, sys.executable, *command, ready.order],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=PROJECT,
            env=ENVIRONMENT,
            pass_fds=(*ready.descriptors, *descriptors),
            start_new_session=True,  # Ctrl-C is for the application, which ends this process itself.
        )


def end_child(process: subprocess.Popen[bytes]) -> None:
    """Kill a child, if still running, and close the pipes."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # Nobody is left to read the rest of the buffer.
                stream.close()


# In the child


def answers_to_parent() -> BinaryIO:
    """Return the stream for messages to the parent process, and redirect stdout to stderr.

    Text which a library prints then cannot be mixed into the messages.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.disable(logging.CRITICAL)
    return answers


def bound_child(order: str, memory_mb: int, *, threads: int = 0) -> dict[str, str]:
    """Confine this process permanently, and have it end with its parent. Return the active means of confinement.

    Call this after loading everything the process needs, because no files can be opened afterwards. If seccomp forbids
    new processes, libraries may still start up to `threads` threads inside `threads_allowed`.
    """
    parent = os.getppid()
    limit("RLIMIT_AS", memory_mb * 1024 * 1024)
    if hasattr(signal, "SIGXFSZ"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    in_force = confine(order)
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    limit("RLIMIT_NPROC", 0, most=threads if in_force.get("calls") == "seccomp" else 0)  # no more threads either
    return in_force


def limit(kind: str, amount: int, *, most: int | None = None) -> None:
    """Set a resource limit (`RLIMIT_…`) for this process.

    `amount` is the soft limit, and `most` the hard limit, up to which the soft limit may be raised again.
    """
    # macOS refuses some limits; the rest hold
    with suppress(OSError, ValueError, AttributeError):
        resource.setrlimit(getattr(resource, kind), (amount, amount if most is None else most))


@contextmanager
def threads_allowed() -> Iterator[bool]:
    """Allow threads inside the `with` block, and yield whether any can be started."""
    if resource is None or not hasattr(resource, "RLIMIT_NPROC"):
        yield True
        return
    before, most = resource.getrlimit(resource.RLIMIT_NPROC)
    limit("RLIMIT_NPROC", most, most=most)
    try:
        yield _can_start_a_thread()
    finally:
        limit("RLIMIT_NPROC", before, most=most)


def _can_start_a_thread() -> bool:
    thread = threading.Thread(target=int)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def limit_time(seconds: float) -> None:
    """End this process by SIGPROF after this many seconds of processor time.

    RLIMIT_CPU is not used, because the kernel compares it with a tick count which no process can read. On a busy
    machine, this count ran 18 % ahead of the process's real processor time, and every limit was exceeded after some
    minutes.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def lift_time_limit() -> None:
    """Cancel the limit set by `limit_time`."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, 0)


def end_with_parent(parent: int) -> None:
    """Wait until the process `parent` has ended, then end this process."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)
