"""Give up every right which this process does not need. When run as a program, execute another program afterwards.

Call this after the process has loaded its libraries, and before it reads untrusted data. `rag.sandbox.confinement`
prepares the rules in the application; this module only applies them, and starts quickly. A failed step ends the
process, which never continues with too many rights.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import sys

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

# linux/prctl.h, linux/sched.h; the number of landlock_restrict_self is the same on every architecture.
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
SECCOMP_MODE_FILTER = 2
CLONE_NEWUSER, CLONE_NEWIPC, CLONE_NEWNET = 0x10000000, 0x08000000, 0x40000000
LANDLOCK_RESTRICT_SELF = 446
#: Open files of a confined process: three pipes, and files a library reads beside them.
OPEN_FILES = 64


class SocketFilter(ctypes.Structure):
    """A seccomp filter in the kernel's format (struct sock_fprog)."""

    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def confine(order: str) -> dict[str, str]:
    """Apply the rules in an `order`. Return the active means by name.

    Raises `OSError` if a rule cannot be applied.
    """
    rules = json.loads(order)
    limit_files()
    if rules["memory_mb"] and resource is not None:
        amount = rules["memory_mb"] * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (amount, amount))
    if not sys.platform.startswith("linux"):
        return dict(rules["in_force"])
    if len(os.listdir("/proc/self/task")) > 1:
        raise OSError("Rules bind the thread that asks for them, and this process has several.")
    libc = ctypes.CDLL(None, use_errno=True)
    in_force = dict(rules["in_force"])
    network = leave_network(libc, has_filter=bool(rules["filter"])) if rules["leaves_network"] else ""
    if network:
        in_force["network"] = ", ".join(filter(None, (in_force.get("network"), network)))
    if rules["account"]:
        become(*rules["account"])
    _call(libc.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call(libc.prctl, PR_SET_DUMPABLE, 0, 0, 0, 0)
    if rules["ruleset"] is not None:
        _call(libc.syscall, LANDLOCK_RESTRICT_SELF, rules["ruleset"], 0)
        os.close(rules["ruleset"])
    if rules["filter"]:
        program = base64.b64decode(rules["filter"])
        filter_program = SocketFilter(len(program) // 8, program)
        _call(libc.prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_program), 0, 0)
    return in_force


def limit_files() -> None:
    """Limit open files, and forbid writing files and core dumps."""
    if resource is None:
        return
    for kind, amount in (("RLIMIT_NOFILE", OPEN_FILES), ("RLIMIT_FSIZE", 0), ("RLIMIT_CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, kind), (amount, amount))
        except (OSError, ValueError, AttributeError):
            continue  # macOS refuses some limits; the rest hold.


def leave_network(libc: ctypes.CDLL, *, has_filter: bool) -> str:
    """Move this process to an empty network namespace. Return a description, or "" if this is not possible.

    Without root, this needs a user namespace. If a seccomp filter forbids sockets, no user namespace is created.
    """
    spaces = CLONE_NEWNET | CLONE_NEWIPC
    if os.geteuid() != 0:
        if has_filter:  # no socket can be made; a user namespace would only open more of the kernel to this process
            return ""
        spaces |= CLONE_NEWUSER
    return "an empty network" if libc.unshare(spaces) == 0 else ""


def become(user: int, group: int) -> None:
    """Switch to another user and group permanently. Raises `OSError` if this fails."""
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    if os.getresuid() != (user, user, user) or os.getresgid() != (group, group, group):
        raise OSError("The account could not be changed.")


def _call(function: object, *arguments: object) -> None:
    converted = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    if function(*converted) != 0:  # type: ignore[operator]
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    confine(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - becoming that program is its task
