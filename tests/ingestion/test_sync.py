"""Making a collection equal to a source, whatever the source lists and whatever cannot be read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from rag.errors import DocumentError, ProviderUnavailable, RagError
from rag.ingestion.sources.sync import SourceContent, SourceItem, SyncReport, SyncWriter, sync_collection
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection


class Shelf:
    """A source of texts by their keys, in the order given; an error in place of a text is what reading it raises."""

    kind = "folder"

    def __init__(self, *texts: tuple[str, str | RagError]) -> None:
        self._texts: Sequence[tuple[str, str | RagError]] = texts
        self.loaded: list[str] = []

    def items(self) -> Iterator[SourceItem]:
        for key, text in self._texts:
            load = partial(self._load, key, text)
            yield SourceItem(key=key, updated_at=None, hash=str(text), title=key, load=load)

    def expected(self) -> int:
        return 0

    def _load(self, key: str, text: str | RagError) -> SourceContent:
        self.loaded.append(key)
        if isinstance(text, RagError):
            raise text
        return SourceContent(file_name=key, content=text.encode())


Synced = Callable[[Shelf], SyncReport]


@pytest.fixture
def synced(database: Database, files: FileStore, collection: Collection) -> Synced:
    return lambda shelf: sync_collection(SyncWriter(database, files, collection, shelf.kind, queue=None), shelf)


def outcome(report: SyncReport) -> tuple[int, int, int, int, int]:
    return report.added, report.updated, report.unchanged, report.removed, report.failed


def test_an_item_that_is_listed_twice_is_read_once(synced: Synced) -> None:
    """Pages of a list that grows meanwhile have an item again."""
    shelf = Shelf(("leave.txt", "25 days of leave."), ("travel.txt", "By train."), ("leave.txt", "26 days of leave."))
    assert outcome(synced(shelf)) == (2, 0, 0, 0, 0)
    assert shelf.loaded == ["leave.txt", "travel.txt"]


@pytest.mark.parametrize(
    ("error", "is_temporary"),
    [(ProviderUnavailable("It does not answer."), True), (DocumentError("It is damaged."), False)],
    ids=["not reached", "damaged"],
)
def test_an_item_that_cannot_be_read_keeps_its_document_and_says_whether_to_try_again(
    synced: Synced, error: RagError, is_temporary: bool
) -> None:
    assert outcome(synced(Shelf(("leave.txt", "25 days of leave.")))) == (1, 0, 0, 0, 0)
    report = synced(Shelf(("leave.txt", error), ("travel.txt", "By train.")))
    assert outcome(report) == (1, 0, 0, 0, 1)
    assert report.problems == (f"leave.txt: {error.message}",)
    assert report.is_temporary is is_temporary
    assert outcome(synced(Shelf(("travel.txt", "By train.")))) == (0, 0, 1, 1, 0)
