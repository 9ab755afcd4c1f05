"""Work on untrusted files in processes of their own, so that no file can take the application down.

A few processes are kept warm; each has limits on memory, processor time and writing, knows no secrets, is killed when
it takes too long, and is replaced after a crash. They answer in JSON: nothing a file makes them say is executed.
"""

from __future__ import annotations

import atexit
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag.child_process import Reply, end_child, read_message, start_child, write_message
from rag.errors import (
    DocumentError,
    FileDamaged,
    FileEmpty,
    FileKindUnknown,
    FileTooLarge,
    NotAPdf,
    NoTextInPdf,
    PasswordNeeded,
    PasswordWrong,
    PdfDamaged,
    PdfHasNoPages,
    ReadingTookTooLong,
    TooManyPages,
)
from rag.ingestion.extracted import CheckedPdf, ExtractedPdf, ExtractionLimits, extracted_from_json, page_from_json
from rag.settings import Settings
from rag.types import Page

#: Errors a process may answer with; anything else counts as a damaged file.
ERRORS: Mapping[str, type[DocumentError]] = {
    error.__name__: error
    for error in (
        FileDamaged, FileEmpty, FileKindUnknown, FileTooLarge, NoTextInPdf, NotAPdf, PasswordNeeded, PasswordWrong,
        PdfDamaged, PdfHasNoPages, ReadingTookTooLong, TooManyPages,
    )
}  # fmt: skip
#: A process is replaced after so many tasks, before leaks of its libraries matter.
TASKS_PER_PROCESS = 200


class Sandbox:
    """A small pool of processes for reading files and drawing their pages. Thread-safe."""

    def __init__(self, limits: ExtractionLimits, *, processes: int = 3) -> None:
        self._limits = limits
        self._slots = threading.BoundedSemaphore(processes)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        atexit.register(self.close)

    def warm_up(self) -> None:
        """Have one process ready, so that the first file does not wait for it."""
        with self._slots:
            self._put_back(self._take())

    def check_pdf(self, content: bytes, *, password: str | None = None) -> CheckedPdf:
        """Look whether a PDF can be read at all. Raises the `DocumentError` that says why not."""
        return self.check(content, file_name=".pdf", password=password)

    def extract_pages(
        self, content: bytes, *, password: str | None = None, on_page: Callable[[int, int], None] | None = None
    ) -> ExtractedPdf:
        """The text of every page of a PDF; `on_page(done, total)` is told now and then. Raises `DocumentError`s."""
        return self.load(content, file_name=".pdf", password=password, on_page=on_page)

    def check(self, content: bytes, *, file_name: str, mime_type: str = "", password: str | None = None) -> CheckedPdf:
        """Look whether a file of any kind there is a loader for can be read at all. Raises `DocumentError`s."""
        named = {"file_name": file_name, "mime_type": mime_type, "password": password}
        reply = self._run("check", named, content)
        values = reply.values
        return CheckedPdf(page_count=int(values["page_count"]), kind=values["file_kind"], decrypted=reply.blob or None)

    def load(
        self,
        content: bytes,
        *,
        file_name: str,
        mime_type: str = "",
        password: str | None = None,
        on_page: Callable[[int, int], None] | None = None,
    ) -> ExtractedPdf:
        """The pages of a file of any kind there is a loader for; `on_page(done, total)` is told now and then."""
        named = {"file_name": file_name, "mime_type": mime_type, "password": password}
        pages: list[Page] = []
        reply = self._run("extract", named, content, on_page, lambda values: pages.append(page_from_json(values)))
        extracted = extracted_from_json(reply.values, reply.blob or None)
        return replace(extracted, pages=tuple(pages)) if pages else extracted

    def picture(self, content: bytes) -> bytes:
        """A picture of any common kind as PNG for a model to look at. Raises `FileDamaged`."""
        return self._run("picture", {}, content).blob

    def pages_of(self, content: bytes, numbers: Sequence[int]) -> bytes:
        """A PDF of these pages only, counted from 1. Raises `DocumentError`s."""
        return self._run("pages", {"numbers": list(numbers)}, content).blob

    def draw_page(self, content: bytes, page: int, *, highlight: str, scale: float) -> bytes:
        """A page as PNG with the passage marked. Raises `DocumentError`s."""
        return self._run("draw", {"page": page, "highlight": highlight, "scale": scale}, content).blob

    def interrupt(self) -> None:
        """End all work under way: whoever waits for it gets `ReadingTookTooLong`. New work may follow."""
        with self._lock:
            running = list(self._all)
        for process in running:
            process.kill()

    def close(self) -> None:
        """End all processes; the sandbox can be used again."""
        self.interrupt()
        with self._lock:
            ended, self._all, self._idle = self._all, set(), []
        for process in ended:
            process.end()

    def _run(
        self,
        task: str,
        values: Mapping[str, Any],
        content: bytes,
        on_page: Callable[[int, int], None] | None = None,
        take: Callable[[dict[str, Any]], None] | None = None,
    ) -> Reply:
        with self._slots:
            process = self._take()
            is_healthy = False
            try:
                reply = process.run(task, {**values, "limits": self._limits.to_json()}, content, on_page, take)
                is_healthy = not reply.values.get("is_last", False)
            finally:
                if is_healthy and process.tasks < TASKS_PER_PROCESS:
                    self._put_back(process)
                else:
                    self._forget(process)
        if reply.kind == "error":
            error = ERRORS.get(str(reply.values["error"]), PdfDamaged)
            raise error(reply.values.get("message"))
        return reply

    def _take(self) -> _Process:
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.is_alive:
                    return process
                self._all.discard(process)
                process.end()
            process = _Process(self._limits)
            self._all.add(process)
            return process

    def _put_back(self, process: _Process) -> None:
        with self._lock:
            if process in self._all:
                self._idle.append(process)

    def _forget(self, process: _Process) -> None:
        with self._lock:
            self._all.discard(process)
        process.end()


class _Process:
    """One child, started afresh rather than forked: the application has threads."""

    def __init__(self, limits: ExtractionLimits) -> None:
        self._limits = limits
        self.tasks = 0
        self._is_killed = False
        self._process = start_child("rag.ingestion.sandbox_worker", str(limits.memory_mb))

    @property
    def is_alive(self) -> bool:
        # On a busy machine a killed process lives on for a moment; a file given to it would be taken for one that takes
        # too long.
        return not self._is_killed and self._process.poll() is None

    def run(
        self,
        task: str,
        values: Mapping[str, Any],
        content: bytes,
        on_page: Callable[[int, int], None] | None,
        take: Callable[[dict[str, Any]], None] | None,
    ) -> Reply:
        self.tasks += 1
        process = self._process
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        timer = threading.Timer(self._limits.timeout_seconds, self.kill)
        timer.daemon = True
        timer.start()
        try:
            write_message(process.stdin, task, values, content)  # type: ignore[arg-type]
            while (reply := read_message(process.stdout)) is not None:  # type: ignore[arg-type]
                if reply.kind == "page" and take is not None:
                    take(reply.values)
                elif reply.kind != "progress":
                    return reply
                elif on_page is not None:
                    on_page(int(reply.values["done"]), int(reply.values["total"]))
        except (BrokenPipeError, ValueError) as exc:
            raise self._reason() from exc
        finally:
            timer.cancel()
        raise self._reason()

    def _reason(self) -> DocumentError:
        """Why the process is gone: killed for its time or by a limit, or crashed on what it read."""
        code = self._process.wait()
        return PdfDamaged() if code in (-11, -6, -4, -8, -7) else ReadingTookTooLong()

    def kill(self) -> None:
        self._is_killed = True
        self._process.kill()

    def end(self) -> None:
        end_child(self._process)


@functools.cache
def _shared(limits: ExtractionLimits) -> Sandbox:
    return Sandbox(limits)


def sandbox_for(settings: Settings) -> Sandbox:
    """The process-wide sandbox of these settings; its processes start when first needed."""
    return _shared(ExtractionLimits.of(settings))
