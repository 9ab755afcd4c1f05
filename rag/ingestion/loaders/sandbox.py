"""Read untrusted files in separate processes, to protect the application from harmful files.

A few processes are kept ready. Each reads files of a single tenant, and can only write results to the application
(`rag.sandbox`). A process is killed after a time limit, and replaced after a crash. The results are JSON: no file can
make the application run code.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from rag.errors import (
    DocumentError,
    FileDamaged,
    FileEmpty,
    FileKindUnknown,
    FileNotAsNamed,
    FileProtected,
    FileTooLarge,
    InvalidInput,
    NotAPdf,
    NoTextInPdf,
    PackagesMissing,
    PasswordNeeded,
    PasswordWrong,
    PdfDamaged,
    PdfHasNoPages,
    ReadingTookTooLong,
    TooManyPages,
)
from rag.ingestion.fairness import Slots
from rag.ingestion.loaders.values import (
    DEFAULT_OPTIONS,
    AttachedFile,
    CheckedFile,
    ExtractedDocument,
    ExtractionLimits,
    LoadOptions,
    extracted_from_json,
    marks_from_json,
    page_from_json,
)
from rag.language import N_
from rag.providers.local_engines import worker_for
from rag.sandbox.child_process import MalformedMessage, Reply, end_child, read_message, start_child, write_message
from rag.sandbox.confinement import READING, AccessRules
from rag.settings import Settings
from rag.types import PageMark, storable

log = logging.getLogger("rag.reading")
#: Errors a process may answer with; all other errors count as a damaged file.
ERRORS: Mapping[str, type[DocumentError]] = {
    error.__name__: error
    for error in (
        FileDamaged, FileEmpty, FileKindUnknown, FileNotAsNamed, FileProtected, FileTooLarge, NoTextInPdf, NotAPdf,
        PasswordNeeded, PasswordWrong, PdfDamaged, PdfHasNoPages, ReadingTookTooLong, TooManyPages,
    )
}  # fmt: skip
#: Tasks after which a process is replaced, before leaks in its libraries matter.
TASKS_PER_PROCESS = 200
#: The longest wait for a process to start.
START_SECONDS = 60.0
#: The limit for reading a server's answer, in seconds of processor and clock time.
ANSWER_SECONDS = 30.0
WORKER = ("-m", "rag.ingestion.loaders.sandbox_worker")
#: Memory for text recognition in MiB.
RECOGNITION_MEMORY_MB = 2048
#: Seconds for which processes that are seldom needed are kept: for text recognition, for servers' answers.
IDLE_SECONDS = 60.0
ARCHIVE_WORKER = ("-m", "rag.ingestion.loaders.archive")


#: The values in a mark from text recognition, in this order.
MARK_NAMES = ("kind", "left", "top", "right", "bottom")


@dataclass(frozen=True)
class FoundText:
    """The text found in an image.

    `lines`, `unread` and `unsure` count lines. `doubt` is the share (0 to 1) of unread and unsure lines, by width.
    """

    text: str
    lines: int
    unread: int
    unsure: int
    doubt: float
    marks: tuple[PageMark, ...] = ()


class Sandbox:
    """A small pool of processes which read files and render their pages. Thread-safe."""

    def __init__(
        self,
        limits: ExtractionLimits,
        *,
        processes: int = 3,
        rules: AccessRules = READING,
        worker: Sequence[str] = WORKER,
        idle_seconds: float | None = None,
    ) -> None:
        """`idle_seconds` is how long idle processes are kept. `None` keeps them until `close`."""
        self._idle_seconds = idle_seconds
        self._limits = limits
        self._command = (*worker, str(limits.memory_mb))
        self._rules = rules
        #: The last process's means of confinement, reported before the first file; `None` before the first process.
        self.known_means: Mapping[str, str] | None = None
        self._processes = processes
        self._slots = Slots(processes)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        atexit.register(self.close)

    def warm_up(self) -> None:
        """Start a process in advance."""
        with self._slots.hold(""):
            self._put_back(self._take_process())

    def check_pdf(self, content: bytes, *, password: str | None = None) -> CheckedFile:
        """Check whether a PDF can be read. Raises a `DocumentError` which names the problem."""
        return self.check(content, file_name=".pdf", password=password)

    def extract_pages(
        self, content: bytes, *, password: str | None = None, on_page: Callable[[int, int], None] | None = None
    ) -> ExtractedDocument:
        """Load the text of a PDF's pages. Calls `on_page(done, total)` now and then. Raises `DocumentError`s."""
        return self.load(content, file_name=".pdf", options=LoadOptions(password=password, on_page=on_page))

    def check(
        self,
        content: bytes,
        *,
        file_name: str,
        mime_type: str = "",
        password: str | None = None,
        tenant_id: str = "",
    ) -> CheckedFile:
        """Check whether a file can be read. Raises a `DocumentError` which names the problem.

        `tenant_id` is the file's owner.
        """
        named = {"file_name": file_name, "mime_type": mime_type, "password": password}
        reply = self._run("check", named, content, tenant_id=tenant_id)
        with well_formed():
            return CheckedFile(
                page_count=int(reply.values["page_count"]),
                kind=reply.values["file_kind"],
                decrypted=reply.blob or None,
            )

    def load(
        self,
        content: bytes,
        *,
        file_name: str,
        mime_type: str = "",
        options: LoadOptions = DEFAULT_OPTIONS,
        tenant_id: str = "",
    ) -> ExtractedDocument:
        """Load a file in any known format, and return the document with all pages.

        The sandbox's limits replace the limits in `options`.
        """
        named = {
            "file_name": file_name,
            "mime_type": mime_type,
            "password": options.password,
            "has_paragraphs_by_gaps": options.has_paragraphs_by_gaps,
            "separate_files": list(options.separate_files),
        }
        pages: list[dict[str, Any]] = []
        reply = self._run("extract", named, content, options.on_page, pages.append, tenant_id=tenant_id)
        with well_formed():
            extracted = extracted_from_json(reply.values, reply.blob or None)
            return replace(extracted, pages=tuple(map(page_from_json, pages))) if pages else extracted

    def attached(
        self, content: bytes, *, file_name: str, password: str | None = None, tenant_id: str = ""
    ) -> list[AttachedFile]:
        """Return the attached files which have a known ending. Raises `DocumentError`s."""
        named = {"file_name": file_name, "password": password}
        reply = self._run("attached", named, content, tenant_id=tenant_id)
        files: list[AttachedFile] = []
        place = 0
        with well_formed():
            for name, size in reply.values["files"]:
                files.append(AttachedFile(storable(str(name)), reply.blob[place : place + int(size)]))
                place += int(size)
        return files

    def picture(self, content: bytes, *, tenant_id: str = "") -> bytes:
        """Convert an image in any common format to PNG for a model. Raises `FileDamaged`."""
        return self._run("picture", {}, content, tenant_id=tenant_id).blob

    def recognise(self, picture: bytes, *, tenant_id: str = "") -> FoundText:
        """Read the text in a PNG. Only works in the sandbox for text recognition. Raises `DocumentError`s."""
        reply = self._run("recognise", {}, picture, tenant_id=tenant_id)
        with well_formed():
            values = reply.values
            return FoundText(
                text=storable(values["text"]),
                lines=int(values["lines"]),
                unread=int(values["unread"]),
                unsure=int(values["unsure"]),
                doubt=float(values["doubt"]),
                marks=marks_from_json([dict(zip(MARK_NAMES, mark, strict=True)) for mark in values["marks"]]) or (),
            )

    def pages_of(self, content: bytes, numbers: Sequence[int], *, tenant_id: str = "") -> bytes:
        """Make a PDF with only these pages, counted from 1. Raises `DocumentError`s."""
        return self._run("pages", {"numbers": list(numbers)}, content, tenant_id=tenant_id).blob

    def draw_page(
        self,
        content: bytes,
        page: int,
        *,
        highlight: str,
        scale: float,
        sentence: str = "",
        ink: bool = False,
        tenant_id: str = "",
    ) -> bytes:
        """Render a page to PNG with a highlighted passage. `sentence`, a part of the passage, is highlighted more
        strongly.

        `ink` converts the page to black and white. Raises `DocumentError`s.
        """
        values = {"page": page, "highlight": highlight, "sentence": sentence, "scale": scale, "ink": ink}
        return self._run("draw", values, content, tenant_id=tenant_id).blob

    def answer(self, kind: str, content: bytes, values: Mapping[str, Any], *, tenant_id: str = "") -> Reply:
        """Parse a response from a source's server, with a time limit. A source is a website or drive followed by a
        collection.

        Only works in a sandbox from `answers_sandbox_of`. Callers unpack the values inside `well_formed`. Raises
        `DocumentError`s.
        """
        reply = self._run(
            "answer", {"of": kind, "told": dict(values)}, content, tenant_id=tenant_id, seconds=ANSWER_SECONDS
        )
        if len(reply.blob) > self._limits.maximum_bytes:
            raise FileTooLarge
        return reply

    @contextmanager
    def archive(self, source: Path | IO[bytes], *, tenant_id: str = "") -> Iterator[OpenArchive]:
        """Yield a ZIP archive of any size, opened in a separate process. Raises `InvalidInput`s."""
        with _as_file(source) as file:
            command = (*ARCHIVE_WORKER, str(file.fileno()), str(self._limits.memory_mb))
            opened = OpenArchive(
                lambda: _Process(self._limits, command, self._rules, (file.fileno(),)),
                lambda: self._slots.hold(tenant_id),
                self._limits,
            )
            try:
                yield opened
            finally:
                opened.close()

    def of_tenant(self, tenant_id: str) -> TenantReader:
        return TenantReader(self, tenant_id)

    def means(self) -> Mapping[str, str]:
        """Return how sandbox processes are confined, with the keys "account", "files", "calls" and "network". Raises
        `DocumentError`s.
        """
        if self.known_means is None:
            self.check(b"a text", file_name="a.txt")
        return self.known_means or {}

    def interrupt(self) -> None:
        """End all current work. The callers get `ReadingTookTooLong`. New work may follow."""
        with self._lock:
            running = list(self._all)
        for process in running:
            process.kill()

    def close(self) -> None:
        """End all processes. The sandbox can be used again."""
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
        *,
        tenant_id: str = "",
        seconds: float | None = None,
    ) -> Reply:
        limits = self._limits
        if seconds is not None:
            limits = replace(limits, timeout_seconds=min(seconds, limits.timeout_seconds))
        with self._slots.hold(tenant_id):
            process = self._take_process(tenant_id)
            is_healthy = False
            try:
                reply = process.run(task, {**values, "limits": limits.to_json()}, content, on_page, take, limits)
                is_healthy = not reply.values.get("is_last", False)
                self.known_means = process.means
            finally:
                if is_healthy and process.tasks < TASKS_PER_PROCESS:
                    self._put_back(process)
                else:
                    self._forget(process)
        if reply.kind == "error":
            error = ERRORS.get(str(reply.values.get("error")), FileDamaged)
            message = reply.values.get("message")
            raise error(message if isinstance(message, str) else None)
        return reply

    def _take_process(self, tenant_id: str | None = None) -> _Process:
        """Return a process which has only read this tenant's files, because a harmful file could spy on later files."""
        with self._lock:
            self._end_idle(lambda process: not process.is_alive)
            for process in reversed(self._idle):
                if process.tenant_id in (None, tenant_id) or tenant_id is None:
                    self._idle.remove(process)
                    break
            else:
                # Busy processes have slots: only idle processes can be too many.
                while self._idle and len(self._all) >= self._processes:
                    oldest = self._idle[0]
                    self._end_idle(lambda process: process is oldest)  # noqa: B023 - called at once
                process = _Process(self._limits, self._command, self._rules)
                self._all.add(process)
            if tenant_id is not None:
                process.tenant_id = tenant_id
            return process

    def _end_idle(self, is_over: Callable[[_Process], bool]) -> None:
        for process in [process for process in self._idle if is_over(process)]:
            self._idle.remove(process)
            self._all.discard(process)
            process.end()

    def _put_back(self, process: _Process) -> None:
        with self._lock:
            if process not in self._all:
                return
            self._idle.append(process)
        if self._idle_seconds is not None:
            timer = threading.Timer(self._idle_seconds, self._end_unused, (process, process.tasks))
            timer.daemon = True
            timer.start()

    def _end_unused(self, process: _Process, tasks: int) -> None:
        with self._lock:
            self._end_idle(lambda idle: idle is process and idle.tasks == tasks)

    def _forget(self, process: _Process) -> None:
        with self._lock:
            self._all.discard(process)
        process.end()


@dataclass(frozen=True)
class TenantReader:
    """Reads a tenant's files in the sandbox (`rag.ingestion.loaders.attachments.AttachmentReader`)."""

    sandbox: Sandbox
    tenant_id: str

    def load(self, content: bytes, *, file_name: str) -> ExtractedDocument:
        return self.sandbox.load(content, file_name=file_name, tenant_id=self.tenant_id)

    def picture(self, content: bytes) -> bytes:
        return self.sandbox.picture(content, tenant_id=self.tenant_id)

    def answer(self, kind: str, content: bytes, **values: Any) -> Reply:
        return self.sandbox.answer(kind, content, values, tenant_id=self.tenant_id)


class OpenArchive:
    """A ZIP archive which a separate process unpacks, file by file.

    If a file crashes the process, only this file is lost. The process stays until `close`, but is busy only while
    unpacking a file.
    """

    def __init__(
        self,
        start: Callable[[], _Process],
        slot: Callable[[], AbstractContextManager[None]],
        limits: ExtractionLimits,
    ) -> None:
        self._start = start
        self._slot = slot
        self._limits = limits
        self._process: _Process | None = None

    def names(self) -> list[str]:
        """Return the readable files by name. Raises `InvalidInput`."""
        try:
            reply = self._run("list", {})
            with well_formed():
                return [storable(name) for name in reply.values["names"]]
        except ReadingTookTooLong as exc:
            raise InvalidInput("Unpacking this archive took too much time or memory. Pack it in parts.") from exc
        except DocumentError as exc:
            raise InvalidInput("This archive is damaged and cannot be opened. Pack it again.") from exc

    def unpack(self, number: int) -> tuple[bytes, str]:
        """Unpack a file, given by index in `names`. Returns bytes and "", or b"" and the reason for the failure."""
        try:
            reply = self._run("unpack", {"number": number})
            with well_formed():
                refusal = storable(reply.values["refusal"])
        except ReadingTookTooLong:
            return b"", N_("Unpacking this file took too much time or memory.")
        except DocumentError:
            return b"", N_("This file cannot be unpacked.")
        if len(reply.blob) > self._limits.maximum_bytes:
            return b"", N_("This file cannot be unpacked.")
        return (b"", refusal) if refusal else (reply.blob, "")

    def close(self) -> None:
        """End the process which unpacks the archive."""
        if self._process is not None:
            self._process.end()

    def _run(self, task: str, values: Mapping[str, Any]) -> Reply:
        with self._slot():
            if self._process is None or not self._process.is_alive:
                self.close()
                self._process = self._start()
            try:
                reply = self._process.run(task, {**values, "limits": self._limits.to_json()}, b"", None, None)
            except BaseException:
                self._process.kill()  # a late answer would be taken for the next answer
                raise
        if reply.kind == "error":
            message = reply.values.get("message")
            raise InvalidInput(message if isinstance(message, str) else None)
        return reply


@contextmanager
def _as_file(source: Path | IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a file opened read-only, for a child process.

    Content in memory is written to a temporary file without a name. This file disappears even if the process is killed.
    """
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield file
        return
    with tempfile.NamedTemporaryFile(delete=False) as temporary:
        try:
            file = open(temporary.name, "rb")  # noqa: SIM115 - closed below, once its name is gone
        finally:
            os.unlink(temporary.name)
        with file:
            shutil.copyfileobj(source, temporary)
            temporary.flush()
            yield file


class _Process:
    """A child process. The process is not forked, because the application has threads."""

    def __init__(
        self, limits: ExtractionLimits, command: Sequence[str], rules: AccessRules, descriptors: Sequence[int] = ()
    ) -> None:
        self._limits = limits
        self.tasks = 0
        #: The tenant whose files were read; `None` before the first file.
        self.tenant_id: str | None = None
        self._is_killed = False
        self.means: Mapping[str, str] | None = None
        self._process = start_child(*command, rules=rules, descriptors=descriptors)

    @property
    def is_alive(self) -> bool:
        # On a busy machine a killed process lives on for a moment; a file given to it would seem to take too long.
        return not self._is_killed and self._process.poll() is None

    def run(
        self,
        task: str,
        values: Mapping[str, Any],
        content: bytes,
        on_page: Callable[[int, int], None] | None,
        take: Callable[[dict[str, Any]], None] | None,
        limits: ExtractionLimits | None = None,
    ) -> Reply:
        self.tasks += 1
        process = self._process
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        if self.means is None:
            self._wait_until_confined()
        timer = self._kill_after((limits or self._limits).timeout_seconds)
        try:
            write_message(process.stdin, task, values, content)  # type: ignore[arg-type]
            remaining_bytes = self._limits.memory_mb * 2**20  # the text of a file was in the process's memory
            while (reply := read_message(process.stdout, remaining_bytes)) is not None:  # type: ignore[arg-type]
                remaining_bytes -= reply.size
                if reply.kind == "page" and take is not None:
                    take(reply.values)
                elif reply.kind != "progress":
                    return reply
                elif on_page is not None:
                    with well_formed():
                        progress = int(reply.values["done"]), int(reply.values["total"])
                    on_page(*progress)
        except BrokenPipeError as exc:
            raise self._error_of_end() from exc
        except MalformedMessage as exc:
            raise FileDamaged from exc
        finally:
            timer.cancel()
        raise self._error_of_end()

    def _wait_until_confined(self) -> None:
        """Wait until the process reports confinement. Until then, the process gets no file."""
        timer = self._kill_after(START_SECONDS)
        try:
            first = read_message(self._process.stdout, 65_536)  # type: ignore[arg-type]
        except MalformedMessage as exc:
            raise FileDamaged from exc
        finally:
            timer.cancel()
        if first is None or first.kind != "means":
            log.warning("A process that reads files ended before it was confined (%s)", self._process.poll())
            raise self._error_of_end()
        self.means = first.values

    def _kill_after(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self.kill)
        timer.daemon = True
        timer.start()
        return timer

    def _error_of_end(self) -> DocumentError:
        code = self._process.wait()
        return FileDamaged() if code in (-11, -6, -4, -8, -7) else ReadingTookTooLong()

    def kill(self) -> None:
        self._is_killed = True
        self._process.kill()

    def end(self) -> None:
        end_child(self._process)


@contextmanager
def well_formed() -> Iterator[None]:
    """Convert any error in the `with` block to `FileDamaged`.

    The block unpacks a result, which a harmful file may have forged.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as exc:
        raise FileDamaged from exc


@functools.cache
def sandbox_of(limits: ExtractionLimits) -> Sandbox:
    """Return the application's shared sandbox for these limits. The processes start on first use."""
    return Sandbox(limits)


@functools.cache
def recognition_sandbox_of(limits: ExtractionLimits) -> Sandbox:
    """Return the application's shared sandbox for text recognition. A process runs only while there are scans.

    Raises `PackagesMissing`.
    """
    worker = worker_for("recognition")
    if worker is None:
        raise PackagesMissing
    return Sandbox(
        replace(limits, memory_mb=max(RECOGNITION_MEMORY_MB, limits.memory_mb)),
        processes=1,
        worker=("-m", worker),
        idle_seconds=IDLE_SECONDS,
    )


@functools.cache
def answers_sandbox_of(limits: ExtractionLimits, worker: str) -> Sandbox:
    """Return the application's shared sandbox for parsing responses from servers. `worker` is the source's module."""
    return Sandbox(limits, worker=("-m", worker), idle_seconds=IDLE_SECONDS)


def sandbox_for(settings: Settings) -> Sandbox:
    """Return the application's shared sandbox for these settings."""
    return sandbox_of(ExtractionLimits.of(settings))
