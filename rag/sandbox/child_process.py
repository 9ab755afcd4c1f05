"""Start our processes for dangerous work, limit them, and exchange messages with them.

They know no secrets or addresses, reach no file or network, and end with the application. Messages are JSON followed by
bytes: nothing in them is executed.
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
    """A process's message: its kind, values and bytes."""

    kind: str
    values: dict[str, Any]
    blob: bytes
    #: Bytes it took.
    size: int = 0


class MalformedMessage(Exception):
    """A process sent an invalid or oversized message."""


def write_message(stream: BinaryIO, kind: str, values: Mapping[str, Any], blob: bytes = b"") -> None:
    """Write a message: the lengths of both parts, JSON, bytes."""
    body = json.dumps({"kind": kind, **values}).encode()
    stream.write(HEADER.pack(len(body), len(blob)))
    stream.write(body)
    stream.write(blob)
    stream.flush()


def read_message(stream: BinaryIO, most_bytes: int = 2**33) -> Reply | None:
    """Return the next message, or `None` if the other side is gone. Raises `MalformedMessage`."""
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
    """Start one of our modules as a process with pipes, not forked, because the application has threads.

    It inherits these `descriptors`. Its last argument is the order which `bound_child` enforces.
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
    """Kill a process and close its pipes; does nothing if it is gone."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # Nobody is left to read the rest of the buffer.
                stream.close()


# In the child


def answers_to_parent() -> BinaryIO:
    """Return the stream for answers, and hand stdout to stderr: printing libraries must not disturb the answers."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.disable(logging.CRITICAL)
    return answers


def bound_child(order: str, memory_mb: int, *, threads: int = 0) -> dict[str, str]:
    """Confine this process permanently, end it with its parent, and return the active measures.

    Call it after everything the process needs is loaded: afterwards it cannot load anything. Inside `threads_allowed`
    its account may have up to `threads` threads, if seccomp forbids processes.
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
    """Limit a resource of this process; `most` is the ceiling for raising it later."""
    # macOS refuses some limits; the rest hold
    with suppress(OSError, ValueError, AttributeError):
        resource.setrlimit(getattr(resource, kind), (amount, amount if most is None else most))


@contextmanager
def threads_allowed() -> Iterator[bool]:
    """Let libraries start threads inside the `with` block; yield whether they can."""
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
    """End this process by SIGPROF after this much processor time, even if the other side is gone.

    This uses a timer instead of RLIMIT_CPU, which is compared with a clock tick count nobody can read. On a busy
    machine this count ran 18 % ahead of the process's time, so every limit was exceeded after some minutes.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def lift_time_limit() -> None:
    """Lift the limit set by `limit_time` after the task."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, 0)


def end_with_parent(parent: int) -> None:
    """End this process when the application ends, for whatever reason."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)
