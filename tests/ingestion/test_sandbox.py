from __future__ import annotations

import io
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hostile
import pytest
from PIL import Image, ImageChops

from rag.errors import DocumentError, PasswordNeeded, ReadingTookTooLong
from rag.ingestion.extracted import ExtractionLimits
from rag.ingestion.sandbox import Sandbox


@pytest.fixture
def hurried() -> Iterator[Sandbox]:
    """A sandbox whose files get half a second."""
    running = Sandbox(ExtractionLimits(timeout_seconds=0.5), processes=1)
    running.warm_up()
    yield running
    running.close()


def test_errors_arrive_as_what_they_are_and_the_process_goes_on(sandbox: Sandbox) -> None:
    with pytest.raises(PasswordNeeded):
        sandbox.check_pdf(hostile.encrypted())
    assert sandbox.check_pdf(hostile.leave_policy()).page_count == 1


def test_progress_is_told_and_ends_with_the_last_page(sandbox: Sandbox) -> None:
    told: list[tuple[int, int]] = []
    sandbox.extract_pages(hostile.long_document(4), on_page=lambda done, total: told.append((done, total)))
    assert told[-1] == (4, 4)


def test_a_file_that_takes_too_long_is_ended_and_the_next_is_read(hurried: Sandbox) -> None:
    slow = hostile.long_document(300)
    with pytest.raises(ReadingTookTooLong):
        hurried.extract_pages(slow)
    hurried._limits = ExtractionLimits()  # on a busy machine half a second is not enough to begin
    assert hurried.check_pdf(hostile.leave_policy()).page_count == 1


def test_a_file_that_unpacks_to_more_than_the_memory_ends_without_text_and_the_next_is_read() -> None:
    small = Sandbox(ExtractionLimits(memory_mb=400, timeout_seconds=20), processes=1)
    try:
        with suppress(DocumentError):  # refused, or its only page left empty: both are a stated reason
            assert [page.method for page in small.extract_pages(hostile.flate_bomb(500)).pages] == ["none"]
        assert small.check_pdf(hostile.leave_policy()).page_count == 1
    finally:
        small.close()


def test_the_process_knows_no_keys(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-canary")
    fresh = Sandbox(ExtractionLimits(), processes=1)
    try:
        fresh.warm_up()
        process = fresh._idle[0]._process.pid
        assert b"secret-canary" not in Path(f"/proc/{process}/environ").read_bytes()
    finally:
        fresh.close()


def test_a_process_that_was_interrupted_is_given_no_file_even_while_it_is_still_dying(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = Sandbox(ExtractionLimits(), processes=1)
    try:
        running.warm_up()
        interrupted, kill = running._idle[0]._process.pid, subprocess.Popen.kill
        # As on a busy machine, where a killed process takes its time to go.
        monkeypatch.setattr(subprocess.Popen, "kill", lambda process: threading.Timer(0.1, kill, [process]).start())
        running.interrupt()
        assert running.check_pdf(hostile.leave_policy()).page_count == 1
        assert running._idle[0]._process.pid != interrupted
    finally:
        running.close()


def test_interrupting_ends_work_under_way_at_once(sandbox: Sandbox) -> None:
    running = Sandbox(ExtractionLimits(), processes=1)
    failures: list[BaseException] = []
    begun = threading.Event()

    def read() -> None:
        try:
            running.extract_pages(hostile.long_document(300), on_page=lambda *_: begun.set())
        except DocumentError as exc:
            failures.append(exc)

    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(5)
    running.interrupt()
    thread.join(timeout=2)
    assert not thread.is_alive()
    assert len(failures) == 1
    running.close()


def test_a_passage_is_marked_where_it_stands(sandbox: Sandbox) -> None:
    content = hostile.leave_policy()
    plain = Image.open(io.BytesIO(sandbox.draw_page(content, 1, highlight="", scale=1.0)))
    passage = "Everyone has 25 days of\npaid leave a year."
    marked = Image.open(io.BytesIO(sandbox.draw_page(content, 1, highlight=passage, scale=1.0)))
    box = ImageChops.difference(plain, marked).getbbox()
    assert box is not None
    left, top, right, bottom = box
    # The line stands 780 - 26 points above the foot of an A4 page of 842 points.
    assert 55 <= left <= 62
    assert 842 - 754 - 12 <= top < bottom <= 842 - 754 + 6
    assert right > 200


def test_a_passage_that_goes_on_to_another_page_is_marked_by_its_sentences(sandbox: Sandbox) -> None:
    content = hostile.leave_policy()
    passage = "Words of the page before. Up to five days may be carried over. Words of the page after."
    plain = sandbox.draw_page(content, 1, highlight="", scale=1.0)
    assert sandbox.draw_page(content, 1, highlight=passage, scale=1.0) != plain
    assert sandbox.draw_page(content, 1, highlight="Nothing of this is there.", scale=1.0) == plain
