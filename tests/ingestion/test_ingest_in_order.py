"""A folder from the command line: two files at once, told in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from uuid import UUID

import pytest

from rag.commands.documents import in_order
from rag.errors import DocumentError, PdfDamaged
from rag.ingestion.queue import DOCUMENTS_AT_ONCE
from rag.ingestion.sources.folder import FoundFile
from rag.types import ProcessingCosts, ProcessingResult
from tests.patience import patient

DONE = ProcessingResult(
    document_id=UUID(int=1), chunk_count=1, processing_time=1, costs=ProcessingCosts(total=Decimal(0))
)


def files(*names: str) -> Iterator[FoundFile]:
    return (FoundFile(name, f"folder/{name}", b"content", path=name) for name in names)


def test_two_files_are_worked_on_at_once_and_never_more() -> None:
    both = threading.Barrier(DOCUMENTS_AT_ONCE, timeout=patient(5))
    lock, under_way, most = threading.Lock(), 0, 0

    def process(found: FoundFile) -> ProcessingResult:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        both.wait()  # breaks when they come one after the other
        with lock:
            under_way -= 1
        return DONE

    assert all(future.result() == DONE for _, future in in_order(process, files("a", "b", "c", "d")))
    assert most == DOCUMENTS_AT_ONCE


def test_the_files_are_told_in_their_order_whichever_is_done_first() -> None:
    second_is_done = threading.Event()

    def process(found: FoundFile) -> ProcessingResult:
        if found.name == "first":
            assert second_is_done.wait(patient(5))
        else:
            second_is_done.set()
        return DONE

    told = [found.name for found, future in in_order(process, files("first", "second", "third")) if future.result()]
    assert told == ["first", "second", "third"]


def test_a_file_that_fails_keeps_no_other_from_its_turn() -> None:
    def process(found: FoundFile) -> ProcessingResult:
        if found.name == "bad":
            raise PdfDamaged
        return DONE

    outcomes = [future.exception() for _, future in in_order(process, files("bad", "good", "bad"))]
    assert [type(outcome) for outcome in outcomes] == [PdfDamaged, type(None), PdfDamaged]


def test_files_of_one_name_become_versions_in_their_order() -> None:
    under_way: set[str] = set()

    def process(found: FoundFile) -> ProcessingResult:
        assert found.name not in under_way
        under_way.add(found.name)
        threading.Event().wait(0.05)
        under_way.discard(found.name)
        return DONE

    names = ("rules.pdf", "rules.pdf", "other.pdf", "rules.pdf")
    assert [future.result() for _, future in in_order(process, files(*names))] == [DONE] * 4


def test_an_archive_that_turns_out_bad_half_way_is_told_and_leaves_no_thread() -> None:
    def broken() -> Iterator[FoundFile]:
        yield from files("a")
        raise DocumentError("The archive is damaged.")

    with pytest.raises(DocumentError, match="damaged"):
        list(in_order(lambda found: DONE, broken()))
    waited = [thread for thread in threading.enumerate() if thread.name.startswith("ingest")]
    for thread in waited:
        thread.join(patient(5))
    assert not any(thread.is_alive() for thread in waited)
