"""What an attacker's code tries in the process that reads files. Each attempt returns what it got, or raises.

Run inside that process by `payload_worker`, and outside of it to see that each attempt works where nothing forbids it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
ATTEMPTS: dict[str, Callable[[dict[str, Any]], object]] = {}
#: Numbers of the system calls that have no function in libc, on x86-64 and on arm64.
NUMBERS = {
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "clone3": (435, 435),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117), "io_uring_setup": (425, 425), "bpf": (321, 280), "pidfd_open": (434, 434),
    "shmget": (29, 194),
    "memfd_create": (319, 279), "openat2": (437, 437), "mount": (165, 40), "setns": (308, 268), "keyctl": (250, 219),
    "perf_event_open": (298, 241), "open_by_handle_at": (304, 265), "unshare": (272, 97), "userfaultfd": (323, 282),
}  # fmt: skip


def attempt(name: str) -> Callable[[Callable[[dict[str, Any]], object]], None]:
    def note(function: Callable[[dict[str, Any]], object]) -> None:
        ATTEMPTS[name] = function

    return note


def try_all(target: dict[str, Any]) -> dict[str, str]:
    """What each attempt got, as "got: …" or "refused: …"."""
    results = {}
    for name, function in ATTEMPTS.items():
        if name in target.get("without", ()):
            continue
        try:
            results[name] = f"got: {function(target)!r}"[:300]
        except BaseException as exc:
            results[name] = f"refused: {type(exc).__name__} {exc}"[:300]
    return results


def call(name: str, *arguments: Any) -> int:
    number = NUMBERS[name][0 if platform.machine() == "x86_64" else 1]
    if number is None:
        raise OSError(errno.ENOSYS, "not on this processor")
    given = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *given)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


# Secrets


@attempt("its environment")
def _(target: dict[str, Any]) -> object:
    found = [name for name in os.environ if name not in target["environment"]]
    if not found:
        raise PermissionError("nothing")
    return found


@attempt("the parent's environment")
def _(target: dict[str, Any]) -> object:
    return Path(f"/proc/{target['application']}/environ").read_bytes()


@attempt("the parent's memory by its file")
def _(target: dict[str, Any]) -> object:
    with open(f"/proc/{target['application']}/mem", "rb") as file:
        file.seek(target["address"])
        return file.read(16)


@attempt("the parent's memory by process_vm_readv")
def _(target: dict[str, Any]) -> object:
    buffer = ctypes.create_string_buffer(16)
    local = struct.pack("PN", ctypes.addressof(buffer), 16)
    remote = struct.pack("PN", target["address"], 16)
    call("process_vm_readv", target["application"], local, 1, remote, 1, 0)
    return buffer.raw


@attempt("the parent by ptrace")
def _(target: dict[str, Any]) -> object:
    seize = 0x4206  # stops nobody
    return call("ptrace", seize, target["application"], 0, 0)


@attempt("the parent's files by pidfd")
def _(target: dict[str, Any]) -> object:
    return call("pidfd_open", target["application"], 0)


@attempt("processes of others")
def _(target: dict[str, Any]) -> object:
    return os.listdir("/proc")


@attempt("database-passwords.json")
def _(target: dict[str, Any]) -> object:
    return Path(target["folder"], "database-passwords.json").read_text()


@attempt("database-passwords.json by openat2")
def _(target: dict[str, Any]) -> object:
    path = os.fsencode(Path(target["folder"], "database-passwords.json"))
    return os.read(call("openat2", -100, path, struct.pack("QQQ", 0, 0, 0), 24), 100)


@attempt("the project's secrets.toml")
def _(target: dict[str, Any]) -> object:
    return Path(target["secrets"]).read_text()


@attempt("the machine's accounts")
def _(target: dict[str, Any]) -> object:
    return Path("/etc/passwd").read_text()


@attempt("descriptors it was not given")
def _(target: dict[str, Any]) -> object:
    found = []
    for number in range(3, 1024):
        try:
            os.fstat(number)
        except OSError:
            continue
        # Debian's libffi, which Python loads, keeps its own file open.
        with contextlib.suppress(OSError):
            if "/libffi.so" in os.readlink(f"/proc/self/fd/{number}"):
                continue
        found.append(number)
    if len(found) <= target["descriptors"]:
        raise PermissionError(f"{found}: its own")
    return found


# Data


@attempt("the list of tenants")
def _(target: dict[str, Any]) -> object:
    return os.listdir(Path(target["folder"], "files"))


@attempt("an original by its path")
def _(target: dict[str, Any]) -> object:
    return Path(target["original"]).read_bytes()


@attempt("the database's files")
def _(target: dict[str, Any]) -> object:
    return os.listdir(Path(target["folder"], "postgres"))


# Network


def connected(kind: int, address: Any, form: int = socket.SOCK_STREAM) -> object:
    with socket.socket(kind, form) as made:
        made.settimeout(5)
        made.connect(address)
        made.send(b"x")
        return address


@attempt("Postgres by its socket")
def _(target: dict[str, Any]) -> object:
    return connected(socket.AF_UNIX, str(Path(target["folder"], "socket", ".s.PGSQL.5432")))


@attempt("a port by TCP, as Postgres elsewhere has one")
def _(target: dict[str, Any]) -> object:
    return connected(socket.AF_INET, ("127.0.0.1", target["port"]))


@attempt("a port by TCP over IPv6")
def _(target: dict[str, Any]) -> object:
    return connected(socket.AF_INET6, ("::ffff:127.0.0.1", target["port"]))


@attempt("a port by UDP")
def _(target: dict[str, Any]) -> object:
    return connected(socket.AF_INET, ("127.0.0.1", target["port"]), socket.SOCK_DGRAM)


@attempt("an abstract unix socket")
def _(target: dict[str, Any]) -> object:
    return connected(socket.AF_UNIX, target["abstract"])


@attempt("to listen on a port")
def _(target: dict[str, Any]) -> object:
    with socket.create_server(("127.0.0.1", 0)) as made:
        return made.getsockname()


@attempt("a netlink socket")
def _(target: dict[str, Any]) -> object:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
    return True


@attempt("io_uring, which has its own ways to files and sockets")
def _(target: dict[str, Any]) -> object:
    return call("io_uring_setup", 1, ctypes.create_string_buffer(120))


# Processes


def forked(child: int) -> object:
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


@attempt("a fork")
def _(target: dict[str, Any]) -> object:
    return forked(os.fork())


@attempt("a fork by its number")
def _(target: dict[str, Any]) -> object:
    return forked(call("fork"))


@attempt("a fork by clone")
def _(target: dict[str, Any]) -> object:
    return forked(call("clone", int(signal.SIGCHLD), 0, 0, 0, 0))


@attempt("a fork by clone3")
def _(target: dict[str, Any]) -> object:
    return forked(call("clone3", struct.pack("8Q", 0, 0, 0, 0, int(signal.SIGCHLD), 0, 0, 0), 64))


@attempt("a thread")
def _(target: dict[str, Any]) -> object:
    thread = threading.Thread(target=len, args=("",))
    thread.start()
    thread.join()
    return True


@attempt("a program beside it")
def _(target: dict[str, Any]) -> object:
    return subprocess.run(["/bin/true"], check=True)


@attempt("a program by posix_spawn")
def _(target: dict[str, Any]) -> object:
    return os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


@attempt("a program in its place")
def _(target: dict[str, Any]) -> object:
    if target["is_plain"]:
        return "not tried, it would end the attempts"
    os.execv("/bin/true", ["true"])
    return True


@attempt("a signal to the parent")
def _(target: dict[str, Any]) -> object:
    os.kill(target["application"], 0)
    return True


@attempt("a signal by way of a descriptor")
def _(target: dict[str, Any]) -> object:
    fcntl.fcntl(0, fcntl.F_SETOWN, target["application"])
    return True


@attempt("another account")
def _(target: dict[str, Any]) -> object:
    before = os.getuid()
    os.setresuid(before, 0, 0)
    os.setresuid(before, before, before) if before else None
    return True


@attempt("a namespace")
def _(target: dict[str, Any]) -> object:
    if target["is_plain"]:
        return "not tried, it would end the attempts"
    return call("unshare", 0x10000000)


@attempt("a mount")
def _(target: dict[str, Any]) -> object:
    if target["is_plain"]:
        return "not tried, it would change the machine"
    return call("mount", b"none", b"/tmp", b"tmpfs", 0, 0)


@attempt("a bpf program")
def _(target: dict[str, Any]) -> object:
    return call("bpf", 0, ctypes.create_string_buffer(128), 128)


@attempt("shared memory")
def _(target: dict[str, Any]) -> object:
    return call("shmget", 0x52414731, 4096, 0o1666)


@attempt("a file in memory")
def _(target: dict[str, Any]) -> object:
    return call("memfd_create", b"x", 0)


# Files


def written(path: Path) -> object:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, b"x")
    finally:
        os.close(descriptor)
        path.unlink()
    return str(path)


@attempt("a file in /tmp")
def _(target: dict[str, Any]) -> object:
    return written(Path("/tmp", f"payload-{os.getpid()}"))


@attempt("a file in /dev/shm")
def _(target: dict[str, Any]) -> object:
    return written(Path("/dev/shm", f"payload-{os.getpid()}"))


@attempt("a file in the data folder")
def _(target: dict[str, Any]) -> object:
    return written(Path(target["folder"], "payload"))


@attempt("a file that everybody may write")
def _(target: dict[str, Any]) -> object:
    with open(target["open_file"], "ab") as file:
        return file.write(b"x")


@attempt("a file cut short")
def _(target: dict[str, Any]) -> object:
    os.truncate(target["open_file"], 0)
    return True


@attempt("a file's rights and times")
def _(target: dict[str, Any]) -> object:
    os.utime(target["open_file"])
    return True


@attempt("a folder, a link, a pipe, a renamed file")
def _(target: dict[str, Any]) -> object:
    made = []
    place = Path(target["open_file"]).parent
    for name, make in (
        ("folder", lambda path: path.mkdir()),
        ("link", lambda path: path.symlink_to("/")),
        ("pipe", os.mkfifo),
        ("name", lambda path: Path(target["open_file"]).rename(path)),
    ):
        try:
            make(place / f"payload-{name}")
        except OSError:
            continue
        made.append(name)
    if not made:
        raise PermissionError("none of them")
    return made


# Limits


@attempt("more open files than it may have")
def _(target: dict[str, Any]) -> object:
    held: list[Any] = []
    try:
        while len(held) < 300:
            held.append(os.dup(0))
    finally:
        for number in held:
            os.close(number)
    return len(held)


@attempt("a higher limit")
def _(target: dict[str, Any]) -> object:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    return True


@attempt("more memory than it may have")
def _(target: dict[str, Any]) -> object:
    if target["is_plain"]:
        return "not tried, it would take the machine's"
    return len(bytearray(8 * 1024**3))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(try_all(json.load(sys.stdin))))
