"""A package index on this machine: each installed package as an empty wheel, in the locked version and a newer one."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

#: This suffix makes a version newer than the release, and still within every range which the release is in.
NEWER = ".post1"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)


def normal(name: str) -> str:
    """Normalise a package's name as PEP 503 does."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write_index(folder: Path, lock: Path) -> str:
    """Write a simple index of all locked packages installed here. Return a lock file for its wheels."""
    lines = []
    for name, extras, version in PINNED.findall(lock.read_text("utf-8")):
        try:
            real = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system
        if real["Version"] != version:
            continue  # for another Python
        asked = [f"Requires-Dist: {line}" for line in real.get_all("Requires-Dist") or []]
        asked += [f"Provides-Extra: {extra}" for extra in real.get_all("Provides-Extra") or []]
        wheels = [write_wheel(folder / normal(name), name, number, asked) for number in (version, version + NEWER)]
        write_page(folder / normal(name), wheels)
        lines.append(f"{name}{extras}=={version} --hash=sha256:{hashlib.sha256(wheels[0].read_bytes()).hexdigest()}\n")
    return "".join(lines)


def write_wheel(folder: Path, name: str, version: str, more: list[str]) -> Path:
    """Write a wheel with its metadata and without code."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{normal(name).replace('-', '_')}-{version}"
    path = folder / f"{stem}-py3-none-any.whl"
    parts = {
        "METADATA": "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *more, "", ""]),
        "WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        parts["RECORD"] = "".join(f"{stem}.dist-info/{part},,\n" for part in (*parts, "RECORD"))
        for part, text in parts.items():
            # Without a timestamp, so that the same package has the same hash.
            archive.writestr(zipfile.ZipInfo(f"{stem}.dist-info/{part}"), text)
    return path


def repack_uv(folder: Path) -> str:
    """Add the uv which made this environment to the index. Return its line for the lock; "" without uv."""
    try:
        installed = importlib.metadata.distribution("uv")
    except importlib.metadata.PackageNotFoundError:
        return ""
    (folder / "uv").mkdir(parents=True, exist_ok=True)
    path = folder / "uv" / f"uv-{installed.version}-py3-none-any.whl"
    names = []
    with zipfile.ZipFile(path, "w") as archive:
        for file in installed.files or []:
            is_program = file.parent.name == "bin"
            name = f"uv-{installed.version}.data/scripts/{file.name}" if is_program else str(file)
            if "__pycache__" in name or file.name in ("RECORD", "INSTALLER", "REQUESTED"):
                continue
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o100755 if is_program else 0o100644) << 16
            archive.writestr(info, file.read_binary())
            names.append(name)
        record = f"uv-{installed.version}.dist-info/RECORD"
        archive.writestr(record, "".join(f"{name},,\n" for name in (*names, record)))
    write_page(folder / "uv", [path])
    return f"uv=={installed.version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def write_page(folder: Path, wheels: list[Path]) -> None:
    links = "".join(
        f'<a href="{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}">{wheel.name}</a>\n'
        for wheel in wheels
    )
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>\n{links}</body></html>\n", "utf-8")


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the index over HTTP. Yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
