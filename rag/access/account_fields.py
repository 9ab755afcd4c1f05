"""The fields of an account as people type them, brought into one form or refused with a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.errors import InvalidInput
from rag.types import Role

MAXIMUM_EMAIL_CHARACTERS = 254  # RFC 5321, 4.5.3.1.3
MAXIMUM_NAME_CHARACTERS = 120
EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+")


def is_email(text: str) -> bool:
    """Whether this can be an address; only a message sent to it could tell whether it is one."""
    return len(text) <= MAXIMUM_EMAIL_CHARACTERS and EMAIL.fullmatch(text) is not None


def normal_email(text: str) -> str:
    """The address in lower case. Raises `InvalidInput` when it cannot be one."""
    address = text.strip().lower()
    if not is_email(address):
        raise InvalidInput("Enter an e-mail address, such as name@example.com.")
    return address


def normal_domain(text: str) -> str:
    """The part of an address after the @, in lower case. Raises `InvalidInput` when it cannot be one."""
    domain = text.strip().lower().removeprefix("@")
    if not is_email(f"name@{domain}"):
        raise InvalidInput(f"{text!r} is no domain of e-mail addresses. Write it as example.com.")
    return domain


def require_domain(address: str, domains: Sequence[str]) -> None:
    """Raise `InvalidInput` unless the address is of one of these domains; every one is where there are none."""
    if domains and address.rpartition("@")[2] not in domains:
        raise InvalidInput(f"Your company's people have addresses at {', '.join(domains)}. Use one of those.")


def normal_name(text: str) -> str:
    """The name without stray spaces and control characters. Raises `InvalidInput` when nothing is left."""
    name = _one_line(text)
    if not name:
        raise InvalidInput("Enter a name.")
    if len(name) > MAXIMUM_NAME_CHARACTERS:
        raise InvalidInput(f"Enter a name of at most {MAXIMUM_NAME_CHARACTERS} characters.")
    return name


def normal_group(text: str) -> str:
    """The user group, which may be empty. Raises `InvalidInput` when it is too long."""
    group = _one_line(text)
    if len(group) > MAXIMUM_NAME_CHARACTERS:
        raise InvalidInput(f"Enter a group of at most {MAXIMUM_NAME_CHARACTERS} characters.")
    return group


def role_from(text: Role | str) -> Role:
    """The role of that name. Raises `InvalidInput` naming those there are."""
    try:
        return Role(text)
    except ValueError:
        raise InvalidInput(f"There is no role {text!r}; choose one of {', '.join(Role)}.") from None


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
