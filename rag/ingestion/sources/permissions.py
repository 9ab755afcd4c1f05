"""Copy read access from a source: groups which may read a document at the source may read it here.

A collection has a single set of groups: the groups which can read the source folder. Only files which all these groups
may read are imported. Therefore nobody can read more here than at the source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from rag.access.account_rows import normal_group
from rag.errors import InvalidInput
from rag.ingestion.sources.sync import SourceContent, SourceItem
from rag.language import N_

#: A group without members, because a collection must have a group while its readers change.
NOBODY = "(nobody until the next sync)"
LEFT_OUT = N_("Documents left out because some readers of this collection may not read them at the source: {count}.")


@dataclass(frozen=True, kw_only=True)
class Readers:
    """The groups which may read a file or folder at its source, or everybody there."""

    groups: frozenset[str] = frozenset()
    is_everybody: bool = False

    def include(self, other: Readers) -> bool:
        """Whether everybody in `other` is also among these readers."""
        if self.is_everybody:
            return True
        return not other.is_everybody and other.groups <= self.groups

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of our groups, or () for everybody. Raises `InvalidInput` if a name is too long."""
        return () if self.is_everybody else tuple(sorted({normal_group(name) for name in self.groups} - {""}))


def readers_meanwhile(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """Return the groups which may read both before and after a change, or `NOBODY` without a common group.

    An empty list means everybody.
    """
    if not before or not after:
        return tuple(before or after)
    return tuple(sorted(set(before) & set(after))) or (NOBODY,)


EVERYBODY = Readers(is_everybody=True)


def require_groups(readers: Readers) -> Readers:
    """Return the readers. Raises `InvalidInput` if there are no groups, because the collection would be open to
    everybody.
    """
    if not readers.is_everybody and not readers.names:
        raise InvalidInput(
            "At the source, only individual people may read this folder, not groups. Give a group access there. Or "
            "follow the folder without taking over its permissions, and choose the groups here."
        )
    return readers


def note_of_left_out(count: int) -> str:
    """Return a sentence telling how many files were left out because of their readers."""
    return LEFT_OUT.format(count=f"{count:,}")


class SharedFolderSource(ABC):
    """A shared folder on a service which reports who may read each file, and reports changes since the last sync."""

    def __init__(self, *, has_readers: bool, state: Mapping[str, Any] | None) -> None:
        self._has_readers = has_readers
        self._readers: Readers | None = None
        self._state = dict(state or {})
        self.notes: list[str] = []

    @property
    def state(self) -> dict[str, Any]:
        """Return the state for the next sync: the known files and folders, and the position in the service's list of
        changes.
        """
        return self._state

    def readers(self) -> tuple[str, ...] | None:
        """Return the groups with access to the folder, () for everybody, or `None` if access is not copied.

        Raises `InvalidInput` if only single people have access.
        """
        if not self._has_readers:
            return None
        if self._readers is None:
            self._readers = require_groups(self._readers_of_folder())
        return self._readers.names

    def expected(self) -> int:
        """Return 0 for "unknown", because the service's list also has folders and unreadable files."""
        return 0

    @abstractmethod
    def _readers_of_folder(self) -> Readers:
        """Ask the service who may read the followed folder."""

    @abstractmethod
    def _load(self, entry: Mapping[str, Any]) -> SourceContent:
        """Fetch a file. Raises `DocumentError` for an unusable file."""

    def _item(self, entry: Mapping[str, Any]) -> SourceItem:
        return SourceItem(
            key=str(entry["id"]),
            updated_at=moment_of(entry.get("changed")),
            # A new name changes the title.
            hash=f"{entry['tag']} {entry['name']}",
            title=str(entry["name"]),
            load=partial(self._load, entry),
        )

    def _items_for_readers(
        self, files: Sequence[Mapping[str, Any]], readers_of: Callable[[Sequence[Mapping[str, Any]]], Iterable[Readers]]
    ) -> Iterator[SourceItem]:
        """Yield the files which all the folder's readers may read, and count the files left out."""
        if self.readers() is None or self._readers is None:
            yield from map(self._item, files)
            return
        left_out = 0
        for entry, readers in zip(files, readers_of(files), strict=True):
            if readers.include(self._readers):
                yield self._item(entry)
            else:
                left_out += 1
        if left_out:
            self.notes.append(note_of_left_out(left_out))


def moment_of(text: object) -> datetime | None:
    """Parse a time from an API; `None` for other text."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
