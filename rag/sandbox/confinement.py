"""Prepare the confinement for processes reading untrusted files, with the means offered by this system.

On Linux, these are a separate account (if the application is root), Landlock for files, a seccomp filter which allows
only harmless system calls, an empty network namespace, and resource limits. On macOS, it is a sandbox-exec profile. If
a means is missing, the others still apply; `python -m rag doctor` lists the active means. `rag.sandbox.enforcement`
applies the means in the process.
"""

from __future__ import annotations

import base64
import ctypes
import errno
import functools
import json
import os
import struct
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rag.sandbox import enforcement as confined
from rag.sandbox.service_account import NOBODY, READER_ACCOUNT, reader_account

PROJECT = Path(__file__).resolve().parents[2]
#: PDFium looks here for fonts a PDF names without embedding them.
FONTS = ("/usr/share/fonts", "/usr/share/X11/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig")
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/urandom")

#: A page with 25 million pixels takes Tesseract about a quarter of this.
PROGRAM_MEMORY_MB = 4096
#: Variables naming folders with Tesseract's models.
MODELS = ("TESSDATA_PREFIX",)

#: System calls which reach nothing outside the process. Files are opened for reading only, and Landlock decides which.
#: No call here makes a socket, a process or a signal, reaches another process's memory, or changes a file. All other
#: calls do not exist for the process, whatever kernels add.
HARMLESS = (
    # memory
    "brk", "madvise", "mincore", "mmap", "mprotect", "mremap", "msync", "munmap", "membarrier", "mlock", "munlock",
    "arch_prctl",
    # files already open
    "read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "lseek", "close", "close_range",
    "dup", "dup2", "dup3", "pipe", "pipe2", "poll", "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl",
    "epoll_wait", "epoll_pwait", "eventfd2", "fadvise64",
    # files by name, if Landlock shows them
    "stat", "fstat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat",
    "getdents64", "getcwd",
    # threads and clock
    "futex", "futex_waitv", "set_robust_list", "get_robust_list", "set_tid_address", "rseq", "gettid", "getpid",
    "getppid", "sched_yield", "sched_getaffinity", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres",
    "gettimeofday", "time", "times", "getrusage", "setitimer", "restart_syscall", "exit", "exit_group",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "sigaltstack",
    # facts
    "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "getrlimit", "setrlimit",
    "uname", "sysinfo", "getrandom", "getcpu",
)  # fmt: skip
CLONE_THREAD = 0x00010000
#: linux/capability.h
CAP_SETGID, CAP_SETUID = 6, 7
#: Whether a descriptor is a terminal, and how it is passed on: nothing which acts on a device.
HARMLESS_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451, 0x5421)
#: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC: not F_SETOWN, by which a descriptor sends signals.
HARMLESS_FCNTLS = (0, 1, 2, 3, 4, 1030)
#: PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE.
HARMLESS_PRCTLS = (15, 16, 0x53564D41, 3)

#: Names, but no content, of files below a closed folder stay readable: Python resolves paths through it.
MAC_PROFILE = """(version 1)
(allow default)
(deny network*)
(deny file-write*)
(deny process-fork)
(deny process-exec*)
(allow process-exec* {executes})
(deny process-info* (target others))
(deny signal (target others))
(deny file-read-data (subpath "/Users") (subpath "/Volumes") (subpath "/private/tmp") (subpath "/private/var") {hidden})
(allow file-read-data (literal {project}) {reads})
"""


@dataclass(frozen=True)
class AccessRules:
    """The files a process may read and the programs it may execute. Everything else is forbidden."""

    reads: tuple[Path, ...] = ()
    #: Programs to execute, without further rights.
    executes: tuple[Path, ...] = ()
    #: Address space in MiB; 0 if the process limits itself.
    memory_mb: int = 0
    #: Means disabled by tests and measurements: "landlock", "seccomp", "account", "network".
    without: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Confinement:
    """A prepared confinement: a prefix for the command, the `order` for the child, and file descriptors to pass on."""

    prefix: tuple[str, ...]
    order: str
    descriptors: tuple[int, ...]


def interpreter_files() -> tuple[Path, ...]:
    """List the folders which the child has to read: our code, Python's library and the installed packages.

    Parent folders are left out, because `.data` may be in them.
    """
    paths = sysconfig.get_paths()
    installed = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    library = sysconfig.get_config_var("LIBDIR") or ""
    folders = [PROJECT / "rag", *map(Path, installed), *filter(Path.is_absolute, [Path(library)])]
    return tuple(dict.fromkeys([*folders, *map(Path, (*LIBRARIES, *DEVICES, *FONTS))]))


READING = AccessRules(reads=interpreter_files())


def program_rules(program: Path) -> AccessRules:
    """Return access rules for Tesseract: program, libraries and models."""
    program = program.resolve()
    near = program.parent.parent
    models = [Path(folder) for folder in program_environment().values()]
    places = ("/usr/share/tesseract-ocr", "/usr/share/tessdata", "/usr/local/share/tessdata")
    reads = (program, *map(Path, (*LIBRARIES, *DEVICES, *places)), near / "lib", near / "share" / "tessdata", *models)
    loader = elf_loader(program)
    # A script needs its interpreter, whose place differs between machines.
    executes = (program, loader) if loader else (program, Path("/bin"), Path("/usr/bin"), *map(Path, LIBRARIES))
    return AccessRules(reads=(*reads, *executes), executes=executes, memory_mb=PROGRAM_MEMORY_MB)


def bounds_programs() -> str:
    """Return the name of the means which restricts file access for programs like Tesseract; "" if there is none.

    The system call filter cannot do this, because the program has to open files.
    """
    if sys.platform == "darwin":
        return "sandbox-exec"
    if version := _landlock_version():
        return f"Landlock {version}"
    return READER_ACCOUNT if _account(AccessRules()) is not None else ""


def elf_loader(program: Path) -> Path | None:
    """Return a 64-bit ELF program's dynamic loader (entry PT_INTERP); `None` for other files."""
    with suppress(OSError, struct.error, ValueError), program.open("rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return None
        offset, (size, count) = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<HH", head, 54)
        for index in range(count):
            file.seek(offset + index * size)
            entry = file.read(size)
            if struct.unpack_from("<I", entry)[0] == 3:
                file.seek(struct.unpack_from("<Q", entry, 8)[0])
                return Path(file.read(struct.unpack_from("<Q", entry, 32)[0]).rstrip(b"\0").decode())
    return None


def program_environment() -> dict[str, str]:
    """Return the environment variables for a confined program, which only name folders with models."""
    return {name: os.environ[name] for name in MODELS if os.environ.get(name)}


@contextmanager
def confinement(rules: AccessRules) -> Iterator[Confinement]:
    """Prepare a confinement and yield the result. Start the processes inside the `with` block."""
    close_own_memory()
    account = _account(rules)
    in_force = {"account": {None: "that of the application", NOBODY: "nobody"}.get(account, READER_ACCOUNT)}
    if sys.platform == "darwin":
        in_force |= {"files": "sandbox-exec", "network": "sandbox-exec", "calls": "sandbox-exec"}
    ruleset = _landlock(rules)
    try:
        if ruleset is not None:
            in_force["files"] = f"Landlock {_landlock_version()}"
        program = _filter(rules.executes != (), ruleset is not None, rules.without)
        if program:
            in_force["calls"] = "seccomp"
            in_force["network"] = "no sockets (seccomp)"
            if ruleset is None and not rules.executes:
                in_force["files"] = "none can be opened (seccomp)"
        order = {
            "account": account,
            "ruleset": ruleset,
            "filter": base64.b64encode(program).decode(),
            "leaves_network": "network" not in rules.without,
            "memory_mb": rules.memory_mb,
            "in_force": in_force,
        }
        descriptors = () if ruleset is None else (ruleset,)
        yield Confinement(_mac_prefix(rules), json.dumps(order), descriptors)
    finally:
        if ruleset is not None:
            os.close(ruleset)


def confined_program(ready: Confinement, program: str, arguments: Sequence[str]) -> list[str]:
    """Return a command which first confines itself, and then executes a program."""
    launcher = [sys.executable, "-I", "-S", confined.__file__, ready.order, program, *arguments]
    return [*ready.prefix, *launcher]


def close_own_memory() -> None:
    """Hide this process's memory and environment from other processes with the same account."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(confined.PR_SET_DUMPABLE, 0, 0, 0, 0)


def _account(rules: AccessRules) -> tuple[int, int] | None:
    if os.geteuid() != 0 or "account" in rules.without:
        return None
    account = reader_account()
    return account if may_become(*account) else None


@functools.cache
def may_become(user: int, group: int) -> bool:
    """Whether root may switch to this user and group here. Some containers forbid this, or do not map the ids."""
    if not sys.platform.startswith("linux"):
        return True

    def knows(account: int, table: str) -> bool:
        rows = (map(int, line.split()) for line in Path(table).read_text().splitlines())
        return any(first <= account < first + count for first, _, count in rows)

    status = Path("/proc/self/status").read_text()
    rights = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), 16)
    return (
        rights >> CAP_SETGID & rights >> CAP_SETUID & 1 == 1
        and Path("/proc/self/setgroups").read_text().strip() == "allow"
        and knows(user, "/proc/self/uid_map")
        and knows(group, "/proc/self/gid_map")
    )


def _landlock_version() -> int:
    try:
        import landlockpy
    except ImportError:  # the package is for Linux only
        return 0
    try:
        return landlockpy.abi_version()
    except OSError:  # A container forbids the call.
        return 0


def _landlock(rules: AccessRules) -> int | None:
    if "landlock" in rules.without or not _landlock_version():
        return None
    from landlockpy import AccessFS, Ruleset, Scope

    with Ruleset(scoped=Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL) as ruleset:
        for paths, folder, file in (
            (rules.reads, AccessFS.READ_FILE | AccessFS.READ_DIR, AccessFS.READ_FILE),
            (rules.executes, AccessFS.EXECUTE, AccessFS.EXECUTE),
        ):
            for path in paths:
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    ruleset.allow_path(path, folder if path.is_dir() else file)
        return os.dup(ruleset.fileno())


@functools.cache
def _filter(may_execute: bool, may_open: bool, without: frozenset[str]) -> bytes:
    """Return the system call filter (seccomp) in the kernel's format; empty if not available."""
    try:
        import seccompy
    except ImportError:  # the package is for Linux only
        return b""
    if "seccomp" in without or not _has_seccomp():
        return b""
    # "Does not exist" instead of "not permitted": libraries then try the older call, which is decided separately.
    rules = seccompy.Filter(default=seccompy.Action.ERRNO | errno.ENOSYS)

    def allow(name: str, *conditions: tuple[int, int, int, int]) -> None:
        with suppress(ValueError):  # another processor has other calls
            rules.allow(name, args=conditions or None)

    masked = int(seccompy.CmpOp.MASKED_EQ)
    for name in HARMLESS:
        allow(name)
    if may_open or may_execute:
        to_write = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
        allow("open", (1, masked, 0, to_write))
        allow("openat", (2, masked, 0, to_write))
    for number in HARMLESS_IOCTLS:
        allow("ioctl", (1, masked, number, 0xFFFFFFFF))
    for number in HARMLESS_FCNTLS:
        allow("fcntl", (1, masked, number, 0xFFFFFFFF))
    for number in HARMLESS_PRCTLS:
        allow("prctl", (0, masked, number, 0xFFFFFFFF))
    allow("prlimit64", (0, masked, 0, 0xFFFFFFFF))  # its own limits
    allow("clone", (0, masked, CLONE_THREAD, CLONE_THREAD))
    if may_execute:
        allow("execve")
    return rules.program


@functools.cache
def _has_seccomp() -> bool:
    import seccompy

    try:
        return seccompy.supported() and bool(seccompy.audit_arch())
    except OSError:  # also another processor
        return False


def _mac_prefix(rules: AccessRules) -> tuple[str, ...]:
    if sys.platform != "darwin":
        return ()

    def listed(paths: Sequence[Path]) -> str:
        return " ".join(f"(subpath {json.dumps(str(path.resolve()))})" for path in paths)

    executes = listed([Path(sys.base_prefix), Path(sys.executable), *rules.executes])
    reads = listed([Path(sys.base_prefix), Path(sys.prefix) / "lib", Path(sys.prefix) / "bin",
                    Path(sys.prefix) / "pyvenv.cfg", *rules.reads])  # fmt: skip
    profile = MAC_PROFILE.format(executes=executes, reads=reads, hidden=listed([PROJECT]),
                                project=json.dumps(str(PROJECT)))  # fmt: skip
    return ("/usr/bin/sandbox-exec", "-p", profile)
