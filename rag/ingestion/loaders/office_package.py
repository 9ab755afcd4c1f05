"""Open an Office document, a ZIP archive with XML files (parts), and read the parts and their relationships.

For safety, links are not fetched and entities are not expanded. A part with a DTD is refused, like in Office.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from lxml import etree

from rag.errors import DocumentError, FileDamaged, FileProtected, FileTooLarge
from rag.ingestion.loaders.signatures import COMPOUND
from rag.ingestion.loaders.values import ExtractionLimits

SCHEMAS = "http://schemas.openxmlformats.org/"
R = "{" + SCHEMAS + "officeDocument/2006/relationships}"
A = "{" + SCHEMAS + "drawingml/2006/main}"
#: ISO 29500 Strict uses other names for the same schemas.
STRICT = (
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main", b"wordprocessingml/2006/main"),
    (b"http://purl.oclc.org/ooxml/spreadsheetml/main", b"spreadsheetml/2006/main"),
    (b"http://purl.oclc.org/ooxml/presentationml/main", b"presentationml/2006/main"),
    (b"http://purl.oclc.org/ooxml/officeDocument/math", b"officeDocument/2006/math"),
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", b"officeDocument/2006/relationships"),
    (b"http://purl.oclc.org/ooxml/drawingml/main", b"drawingml/2006/main"),
    (b"http://purl.oclc.org/ooxml/drawingml/chart", b"drawingml/2006/chart"),
    (b"http://purl.oclc.org/ooxml/drawingml/diagram", b"drawingml/2006/diagram"),
    (b"http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing", b"drawingml/2006/wordprocessingDrawing"),
    (b"http://purl.oclc.org/ooxml/drawingml/spreadsheetDrawing", b"drawingml/2006/spreadsheetDrawing"),
)
#: The largest unpacked size, in multiples of the limit on files.
UNPACKED_FACTOR = 8
Read = TypeVar("Read")


@dataclass(frozen=True)
class Relation:
    """A link from one part to another. `kind` is the last word in the relationship type, for example "footnotes"."""

    kind: str
    target: str


class OfficePackage:
    """A document's parts. Raises `FileDamaged`, and errors from `zipfile`."""

    #: The part with the text, if the package does not name it.
    MAIN: ClassVar[str] = ""

    def __init__(self, content: bytes) -> None:
        self._zip = zipfile.ZipFile(io.BytesIO(content))
        self._names = {name.replace("\\", "/").lstrip("/").lower(): name for name in self._zip.namelist()}
        self._relations: dict[str, dict[str, Relation]] = {}
        self.unpacked_bytes = sum(entry.file_size for entry in self._zip.infolist())

    def main(self) -> str:
        """Return the name of the part with the main text. Raises `FileDamaged` if there is no such part."""
        named = (relation.target for relation in self.relations("").values() if relation.kind == "officeDocument")
        for name in (*named, self.MAIN):
            if name.lower() in self._names:
                return name
        raise FileDamaged

    def names(self, folder: str) -> list[str]:
        """Return the names of the parts in a folder."""
        return [name for name in self._names if name.startswith(folder)]

    def bytes_of(self, name: str) -> bytes | None:
        """Return a part's content, or `None` if the part is missing. Names of strict schemas are replaced by the usual
        names.
        """
        stored = self._names.get(name.lower())
        if stored is None:
            return None
        content = self._zip.read(stored)
        if b"purl.oclc.org/ooxml" in content:
            for strict, usual in STRICT:
                content = content.replace(strict, SCHEMAS.encode() + usual)
        return content

    def root(self, name: str) -> Any:
        """Parse a part, or return `None` if the part is missing. Raises `FileDamaged`."""
        content = self.bytes_of(name)
        if content is None:
            return None
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
        )
        try:
            root = etree.fromstring(content, parser)
        except (etree.XMLSyntaxError, ValueError) as exc:
            raise FileDamaged from exc
        if root.getroottree().docinfo.internalDTD is not None:
            raise FileDamaged
        return root

    def elements(self, name: str, tags: tuple[str, ...]) -> Iterator[Any]:
        """Yield the elements with these names in a part. An element is emptied after use, to save memory."""
        content = self.bytes_of(name)
        if content is None:
            return
        if b"<!DOCTYPE" in content[:4096]:
            raise FileDamaged
        parsed = etree.iterparse(
            io.BytesIO(content), events=("end",), tag=tags, resolve_entities=False, no_network=True, huge_tree=False,
            remove_comments=True, remove_pis=True,
        )  # fmt: skip
        try:
            for _, element in parsed:
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
        except etree.XMLSyntaxError as exc:
            raise FileDamaged from exc

    def relations(self, part: str) -> dict[str, Relation]:
        """Return a part's links to other parts, by id. The part "" is the whole package."""
        if part not in self._relations:
            folder, name = posixpath.split(part)
            root = self.root(posixpath.join(folder, "_rels", f"{name}.rels"))
            relations: dict[str, Relation] = {}
            for link in () if root is None else root:
                if link.get("TargetMode") != "External":
                    target = posixpath.normpath(posixpath.join("/", folder, link.get("Target") or "")).lstrip("/")
                    relations[link.get("Id") or ""] = Relation((link.get("Type") or "").rpartition("/")[2], target)
            self._relations[part] = relations
        return self._relations[part]

    def related(self, part: str, kind: str) -> Any:
        """Parse and return the first linked part of this kind, or return `None` without a link."""
        name = self.related_name(part, kind)
        return None if name is None else self.root(name)

    def by_link(self, part: str, link: str) -> Any:
        """Parse and return the part linked under an id, or return `None` without a link."""
        relation = self.relations(part).get(link)
        return None if relation is None else self.root(relation.target)

    def related_name(self, part: str, kind: str) -> str | None:
        """Return the name of the first linked part with this kind, or `None`."""
        names = (relation.target for relation in self.relations(part).values() if relation.kind == kind)
        return next(names, None)

    def properties(self) -> dict[str, str]:
        """Return title, creator and language from the file's properties."""
        properties = {"title": "", "creator": "", "language": ""}
        root = self.related("", "core-properties")
        for element in () if root is None else root:
            local = str(element.tag).rpartition("}")[2]
            if local in properties:
                properties[local] = element.text or ""
        return properties


def require_package(content: bytes, limits: ExtractionLimits, package: type[OfficePackage]) -> None:
    """Raise the fitting `DocumentError` unless a file is a valid package."""
    require_unprotected(content)
    require_unpacked(content, limits)
    try:
        package(content).main()
    except DocumentError:
        raise
    except Exception as exc:  # lxml and zipfile raise errors without a common base
        raise FileDamaged from exc


def require_unprotected(content: bytes) -> None:
    """Raise `FileProtected` for a password-protected document. Office stores these documents in compound files."""
    if content.startswith(COMPOUND) and "EncryptedPackage".encode("utf-16-le") in content:
        raise FileProtected


def require_unpacked(content: bytes, limits: ExtractionLimits) -> None:
    """Raise `FileTooLarge` for an archive which is too large when unpacked, and `FileDamaged` for an unreadable
    archive.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            unpacked = sum(entry.file_size for entry in package.infolist())
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as exc:
        raise FileDamaged from exc
    if unpacked > limits.maximum_bytes * UNPACKED_FACTOR:
        raise FileTooLarge


def guarded(read: Callable[[], Read]) -> Read:
    """Call a function which reads a file, and return the result. Errors raised by libraries become `FileDamaged`."""
    try:
        return read()
    except (DocumentError, MemoryError):
        raise
    except Exception as exc:  # lxml, zipfile and xlrd raise errors without a common base
        raise FileDamaged from exc
