"""Who may read what a source holds, carried over as groups of ours.

A collection has one set of groups. So it gets those that may read the folder at its source, and takes only the files
that all of them may read there: nobody reads here what they may not read there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag.access.account_rows import normal_group
from rag.errors import InvalidInput

#: A group that nobody is in, for a collection must not be without one while its readers change.
NOBODY = "(nobody until the next sync)"


@dataclass(frozen=True, kw_only=True)
class Readers:
    """The groups that may read a file or a folder at its source, or everybody there."""

    groups: frozenset[str] = frozenset()
    is_everybody: bool = False

    def include(self, others: Readers) -> bool:
        """Return whether all of the others may read it."""
        if self.is_everybody:
            return True
        return not others.is_everybody and others.groups <= self.groups

    @property
    def names(self) -> tuple[str, ...]:
        """The names as groups of ours, () for everybody. Raises `InvalidInput` for one that is too long."""
        return () if self.is_everybody else tuple(sorted({normal_group(name) for name in self.groups} - {""}))


def readers_meanwhile(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """Return the groups in both lists, where an empty list is everybody; `NOBODY` where there is none."""
    if not before or not after:
        return tuple(before or after)
    return tuple(sorted(set(before) & set(after))) or (NOBODY,)


EVERYBODY = Readers(is_everybody=True)


def require_groups(found: Readers) -> Readers:
    """Raise `InvalidInput` where no group may read: a collection without groups would be open to everybody here."""
    if not found.is_everybody and not found.names:
        raise InvalidInput(
            "At the source only single people may read this folder, and no group. Give a group access there, or follow "
            "it without carrying over who may read, and choose the groups here."
        )
    return found


def note_of_left_out(count: int) -> str:
    """Say how many files were left out for their readers."""
    return f"Documents that not everybody who may read this collection may read there, and that were left out: {count}."
