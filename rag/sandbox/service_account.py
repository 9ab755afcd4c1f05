"""Find or create the system accounts for Postgres and for reading files, when the application is started as root.

An entry in a closed folder's access-control list lets the Postgres account pass through. This module writes the list
itself, as a file attribute in the kernel's layout (acl(5)): pylibacl has no wheels and needs a compiler with libacl's
headers, and slim images lack setfacl.
"""

from __future__ import annotations

import functools
import os
import pwd
import stat
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

from rag.errors import SettingsError

SERVICE_ACCOUNT = "hr-assistant"
#: Reads untrusted files. Differs from Postgres's account, which owns the database and its socket.
READER_ACCOUNT = "hr-assistant-reader"
#: User and group of nobody, for machines where no account can be created.
NOBODY = (65534, 65534)


def service_account() -> pwd.struct_passwd:
    """Return the system account for Postgres, created if missing. Raises `SettingsError`."""
    account = _account(SERVICE_ACCOUNT)
    if account is None:
        raise SettingsError(
            f"Postgres does not run as root and the system account {SERVICE_ACCOUNT} could not be made for it. "
            "Start as an ordinary user, or set DATABASE_URL."
        )
    return account


@functools.cache
def reader_account() -> tuple[int, int]:
    """Return user and group for reading untrusted files: a separate account or, if there is none, `nobody`."""
    account = _account(READER_ACCOUNT)
    return (account.pw_uid, account.pw_gid) if account else NOBODY


def _account(name: str) -> pwd.struct_passwd | None:
    """Return a system account, created if missing; `None` if this fails."""
    with suppress(KeyError):
        return pwd.getpwnam(name)
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    with suppress(OSError):
        subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - a fixed command
    with suppress(KeyError):  # a second process may have made the account
        return pwd.getpwnam(name)
    return None


def let_pass(account: pwd.struct_passwd, *folders: Path) -> None:
    """Allow an account to pass through folders which are closed to other users, and through their parents.

    Raises `SettingsError`.
    """
    closed = {
        parent for folder in folders for parent in (folder, *folder.parents) if not parent.stat().st_mode & stat.S_IXOTH
    }
    for parent in closed:
        try:
            _grant_search(parent, account.pw_uid)
        except OSError as exc:
            raise SettingsError(
                f"The database's own account {SERVICE_ACCOUNT} cannot pass through {parent}. "
                "Start as an ordinary user, or move the project where others may pass."
            ) from exc


def _grant_search(folder: Path, user: int) -> None:
    """Let a user enter a folder, by an entry in the folder's POSIX access-control list (acl(5), in the kernel's
    layout).
    """
    name, undefined = "system.posix_acl_access", 0xFFFFFFFF
    user_obj, named_user, group_obj, mask, other = 0x01, 0x02, 0x04, 0x10, 0x20
    mode = folder.stat().st_mode
    try:
        raw = os.getxattr(folder, name)
        entries = [struct.unpack_from("<HHI", raw, offset) for offset in range(4, len(raw), 8)]
    except OSError:
        entries = [
            (user_obj, mode >> 6 & 7, undefined),
            (group_obj, mode >> 3 & 7, undefined),
            (other, mode & 7, undefined),
        ]
    other_entries = [
        entry for entry in entries if not (entry[0] == named_user and entry[2] == user) and entry[0] != mask
    ]
    other_entries.append((named_user, 1, user))
    widest = 0
    for tag, permission, _ in other_entries:
        if tag not in (user_obj, other):
            widest |= permission
    other_entries.append((mask, widest, undefined))
    other_entries.sort(key=lambda entry: (entry[0], entry[2]))
    os.setxattr(folder, name, struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in other_entries))


def hand_over(path: Path, account: pwd.struct_passwd | None) -> None:
    """Make an account the owner of a file or folder. If the account is `None`, nothing changes."""
    if account is not None:
        os.chown(path, account.pw_uid, account.pw_gid)
