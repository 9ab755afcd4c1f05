"""The sandbox process: read tasks from stdin, write results to stdout."""

from __future__ import annotations

import encodings
import importlib
import pkgutil
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import asdict
from typing import Any

from PIL import Image

from rag.ingestion.loaders import attached, check, load
from rag.ingestion.loaders.decoding import decoded
from rag.ingestion.loaders.format_table import CORE, file_formats
from rag.ingestion.loaders.pdf import pages_of
from rag.ingestion.loaders.pictures import as_ink, as_png, draw_page, drawn_picture, pictures_as_pdf
from rag.ingestion.loaders.sandbox_tasks import serve_tasks
from rag.ingestion.loaders.values import ExtractionLimits, LoadOptions
from rag.sandbox.child_process import Reply, answers_to_parent, bound_child, write_message

#: Modules imported only when called by loaders or by Python.
LIBRARIES = ("_strptime", "colorsys", "heapq", "pypdf.filters", "pypdf.generic._image_xobject")
#: The most threads for this account while a decoder starts a thread. The application may have thousands under the same
#: account.
MOST_THREADS = 4096
#: Progress is reported at most this often, in seconds.
PROGRESS_SECONDS = 0.1


def main(memory_mb: int, order: str) -> None:
    """Serve tasks until stdin ends."""
    answers = answers_to_parent()
    load_libraries()
    write_message(answers, "means", bound_child(order, memory_mb, threads=MOST_THREADS))
    serve_tasks(answers, perform)


def load_libraries() -> None:
    """Load everything needed to read files. After confinement, even Python's own files may be out of reach."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for loader in file_formats().installed:
        # A file in a format with a damaged package is refused; all others can be read.
        with nullcontext() if loader in CORE else suppress(ImportError):
            for name in loader.modules:
                importlib.import_module(name)
    for module in pkgutil.iter_modules(encodings.__path__):
        # Encodings for other systems, and codecs which are no text encodings.
        if module.name not in ("mbcs", "oem", "bz2_codec", "zlib_codec"):
            importlib.import_module(f"encodings.{module.name}")
    # chardet reads its model files with the first guess.
    decoded("Щорічна відпустка становить 24 дні. Заява подається за два тижні до її початку.".encode("koi8_u"))
    Image.init()


def perform(task: Reply, limits: ExtractionLimits, answers: Any) -> tuple[dict[str, Any], bytes]:
    """Perform a task for the application. Returns the result: JSON values and bytes."""
    values = task.values
    if task.kind == "check":
        options = LoadOptions(limits=limits, password=values["password"])
        checked = check(task.blob, values["file_name"], values["mime_type"], options)
        return {"page_count": checked.page_count, "file_kind": checked.kind}, checked.decrypted or b""
    if task.kind == "extract":
        reported_at = 0.0

        def tell(done: int, total: int) -> None:
            nonlocal reported_at
            if time.monotonic() - reported_at >= PROGRESS_SECONDS or done == total:
                reported_at = time.monotonic()
                write_message(answers, "progress", {"done": done, "total": total})

        options = LoadOptions(
            limits=limits,
            password=values["password"],
            has_paragraphs_by_gaps=values["has_paragraphs_by_gaps"],
            separate_files=frozenset(values["separate_files"]),
            on_page=tell,
            take=lambda page: write_message(answers, "page", asdict(page)),
        )
        extracted = load(task.blob, values["file_name"], values["mime_type"], options)
        return extracted.to_json(), extracted.decrypted or b""
    if task.kind == "attached":
        files = attached(task.blob, values["file_name"], LoadOptions(limits=limits, password=values["password"]))
        sizes = [[file.name, len(file.content)] for file in files]
        return {"files": sizes}, b"".join(file.content for file in files)
    if task.kind == "pages":
        take_out = pictures_as_pdf if file_formats().picture_of(task.blob) else pages_of
        return {}, take_out(task.blob, values["numbers"])
    if task.kind == "picture":
        loader = file_formats().picture_of(task.blob)
        return {}, as_png(drawn_picture(task.blob, 1, scale=3.0) if loader and loader.decoding else task.blob)
    if task.kind == "draw":
        if file_formats().picture_of(task.blob):
            return {}, drawn_picture(task.blob, values["page"], scale=values["scale"])
        drawing = {name: values[name] for name in ("highlight", "sentence", "scale")}
        picture = draw_page(task.blob, values["page"], **drawing)
        return {}, as_ink(picture) if values["ink"] else picture
    raise ValueError(f"no task is called {task.kind}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
