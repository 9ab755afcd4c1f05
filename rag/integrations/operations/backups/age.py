"""Encrypt backups in the format of age (https://age-encryption.org), which the program age can also read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import BinaryIO

from rag.errors import PackagesMissing, SettingsError
from rag.storage.backup import Encryption

try:
    import pyrage
except ModuleNotFoundError as exc:
    raise PackagesMissing from exc


def encryption(recipients: str) -> Encryption:
    """Return a function which encrypts a file for these public keys, separated by spaces.

    Only the matching private keys can decrypt the file. Raises `SettingsError` for an invalid key.
    """
    try:
        keys = [pyrage.x25519.Recipient.from_str(key) for key in recipients.replace(",", " ").split()]
    except pyrage.RecipientError as exc:
        raise SettingsError(
            "A public key of age looks like age1…, with 62 letters and digits. One is made by "
            "`python -m rag backups new-key FILE`."
        ) from exc

    def encrypt(plain: BinaryIO, encrypted: BinaryIO) -> None:
        pyrage.encrypt_io(plain, encrypted, keys)

    return encrypt


def decryption(identity: Path) -> Encryption:
    """Return a function which decrypts with the private keys in a file by age-keygen.

    The file is read when the function is called.
    """
    return partial(_decrypt, identity)


def new_key() -> tuple[str, str]:
    """Make a private key, and return the key and the public key."""
    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def _decrypt(identity: Path, encrypted: BinaryIO, plain: BinaryIO) -> None:
    keys = _read_identities(identity)
    try:
        pyrage.decrypt_io(encrypted, plain, keys)
    except pyrage.DecryptError as exc:
        raise SettingsError(f"{identity} does not open {encrypted.name}, or the backup is damaged: {exc}.") from exc


def _read_identities(path: Path) -> list[pyrage.x25519.Identity]:
    try:
        lines = [line.strip() for line in path.read_text("ascii").splitlines()]
        keys = [pyrage.x25519.Identity.from_str(line) for line in lines if line and not line.startswith("#")]
    except (OSError, UnicodeDecodeError, pyrage.IdentityError) as exc:
        raise SettingsError(f"{path} holds no private key of age; such a key begins with AGE-SECRET-KEY-1.") from exc
    if not keys:
        raise SettingsError(f"{path} holds no private key of age; such a key begins with AGE-SECRET-KEY-1.")
    return keys
