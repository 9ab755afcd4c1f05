from __future__ import annotations

import io
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from rag.errors import DocumentError, PasswordNeeded, ReadingTookTooLong
from rag.ingestion.fairness import Slots
from rag.ingestion.loaders.pictures import MARK, STRONG_MARK
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits, LoadOptions
from tests import hostile
from tests.patience import patient


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
    slow = hostile.long_document(1500)
    with pytest.raises(ReadingTookTooLong):
        hurried.extract_pages(slow)
    hurried._limits = ExtractionLimits()  # on a busy machine half a second is not enough to begin
    assert hurried.check_pdf(hostile.leave_policy()).page_count == 1


def test_a_file_that_unpacks_to_more_than_the_memory_ends_without_text_and_the_next_is_read() -> None:
    small = Sandbox(ExtractionLimits(memory_mb=400, timeout_seconds=patient(20)), processes=1)
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
        with suppress(PermissionError):  # closed even to its own account, whom root reads past
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

    running.means()  # a process is there and ready
    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(patient(60))
    running.interrupt()
    thread.join(timeout=patient(2))
    assert not thread.is_alive()
    assert len(failures) == 1
    running.close()


def test_slow_files_of_one_tenant_keep_no_other_from_reading() -> None:
    running = Sandbox(ExtractionLimits(), processes=3)
    release = threading.Event()
    begun = [threading.Event() for _ in range(4)]

    def read(number: int) -> None:
        def wait(done: int, total: int) -> None:
            begun[number].set()
            release.wait(patient(60))

        with suppress(DocumentError):
            running.load(
                hostile.long_document(6), file_name="a.pdf", options=LoadOptions(on_page=wait), tenant_id="slow"
            )

    readers = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    for reader in readers:
        reader.start()
    assert all(event.wait(patient(30)) for event in begun[:3])  # all there are
    readers.append(threading.Thread(target=read, args=(3,)))
    readers[-1].start()
    checked: list[int] = []
    other = threading.Thread(
        target=lambda: checked.append(
            running.check(hostile.leave_policy(), file_name="b.pdf", tenant_id="other").page_count
        ),
        daemon=True,
    )
    other.start()
    other.join(patient(30))
    assert checked == [1]
    assert not begun[3].is_set()  # a fourth of its own has to wait
    release.set()
    for reader in readers:
        reader.join(patient(30))
    assert begun[3].is_set()
    running.close()


def test_tenants_take_turns_where_all_slots_are_taken() -> None:
    slots = Slots(1)
    order: list[str] = []
    begun = threading.Semaphore(0)
    release = {tenant: threading.Event() for tenant in ("slow", "other", "third")}

    def hold(tenant: str) -> None:
        with slots.hold(tenant):
            order.append(tenant)
            begun.release()
            release[tenant].wait(patient(30))

    threads = []
    for waiting, tenant in enumerate(("slow", "other", "slow", "slow", "third"), -1):
        threads.append(threading.Thread(target=hold, args=(tenant,)))
        threads[-1].start()
        if waiting < 1:
            assert begun.acquire(timeout=patient(30))  # the one slot, and the spare one
        while slots.waiting < waiting:
            time.sleep(0.001)
    release["other"].set()
    assert begun.acquire(timeout=patient(30))
    # Whoever has least comes first, although it came last.
    assert order == ["slow", "other", "third"]
    for event in release.values():
        event.set()
    for thread in threads:
        thread.join(patient(30))


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


def test_the_sentence_of_a_passage_is_marked_more_strongly_than_the_rest_of_it(sandbox: Sandbox) -> None:
    content = hostile.leave_policy()
    passage = "Everyone has 25 days of\npaid leave a year.\nUp to five days may be carried over."

    def drawn(sentence: str) -> Image.Image:
        png = sandbox.draw_page(content, 1, highlight=passage, sentence=sentence, scale=1.0)
        return Image.open(io.BytesIO(png)).convert("RGB")

    def pixels(picture: Image.Image, color: tuple[int, int, int]) -> int:
        return {found: count for count, found in picture.getcolors(1_000_000) or ()}.get(color, 0)

    light = pixels(drawn(""), MARK)
    both = drawn("Up to five  days may be carried over.")
    assert light > 0
    assert pixels(drawn(""), STRONG_MARK) == 0
    assert pixels(both, STRONG_MARK) > 0
    assert 0 < pixels(both, MARK) < light
    box = ImageChops.difference(drawn(""), both).getbbox()
    whole = ImageChops.difference(
        Image.open(io.BytesIO(sandbox.draw_page(content, 1, highlight="", scale=1.0))).convert("RGB"), both
    ).getbbox()
    assert box is not None
    assert whole is not None
    assert box[1] > whole[1], "below the sentence before it"
    elsewhere = drawn("No sentence of the passage.")
    assert (pixels(elsewhere, STRONG_MARK), pixels(elsewhere, MARK)) == (0, light)


def test_a_passage_that_goes_on_to_another_page_is_marked_by_its_sentences(sandbox: Sandbox) -> None:
    content = hostile.leave_policy()
    passage = "Words of the page before. Up to five days may be carried over. Words of the page after."
    plain = sandbox.draw_page(content, 1, highlight="", scale=1.0)
    assert sandbox.draw_page(content, 1, highlight=passage, scale=1.0) != plain
    assert sandbox.draw_page(content, 1, highlight="Nothing of this is there.", scale=1.0) == plain


def test_a_process_reads_files_of_one_tenant_only() -> None:
    """What a hostile file leaves in a process would read along with the next ones."""
    running = Sandbox(ExtractionLimits(), processes=2)
    readers: dict[str, set[int]] = {"a": set(), "b": set(), "c": set()}

    def read(tenant_id: str) -> None:
        running.check(hostile.leave_policy(), file_name="a.pdf", tenant_id=tenant_id)
        readers[tenant_id].add(running._idle[-1]._process.pid)

    try:
        for tenant_id in "aabbab":
            read(tenant_id)
        assert [len(processes) for processes in readers.values()] == [1, 1, 0]
        assert not readers["a"] & readers["b"]
        read("c")  # in the place of the one that was idle longest
        read("b")
        assert len(running._all) == 2
        assert len(readers["b"]) == 1
        assert not readers["c"] & (readers["a"] | readers["b"])
    finally:
        running.close()
