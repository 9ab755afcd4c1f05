"""Define the value which describes a file format to the product."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from rag.errors import FileKindUnknown, PackagesMissing
from rag.ingestion.loaders.values import FileKind

#: How an original is served: shown by the browser, shown as plain text, or handed over to be saved.
Serving = Literal["shown", "as text", "saved"]


@dataclass(frozen=True, kw_only=True)
class Loader:
    """A file format: how files are recognised, the functions which load them, and how the product treats them.

    Functions are named "module:name". A module name which starts with a dot belongs to this package. The module which
    creates the `Loader` must not import third-party packages, because they may not be installed.
    """

    kind: FileKind
    #: The name in lists, and the name in a sentence: "a Word document".
    label: str
    named: str
    media_type: str
    endings: tuple[str, ...]
    #: Takes bytes and `LoadOptions`, returns an `ExtractedDocument`.
    loads: str
    #: The same for a check before the file is accepted; without it, only size and name are checked.
    checks: str = ""
    #: Likewise, a function which yields name and bytes for each attached file.
    attaches: str = ""
    #: For mails: takes bytes, returns a `Message`. Mails attached to other mails are read with it.
    parses_mail: str = ""
    #: Pillow's name for a picture format, and a context manager for opening its pictures, if Pillow needs one.
    pillow_format: str = ""
    decoding: str = ""
    #: The first bytes of its files; several formats may share them.
    signature: bytes = b""
    #: Whether bytes surely have this format, or look like it if neither name nor media type decides.
    is_sure: Callable[[bytes], bool] = field(default=lambda content: False)
    looks_like: Callable[[bytes], bool] = field(default=lambda content: False)
    #: Whether its files contain only text.
    is_text: bool = True
    #: Whether its files have numbered pages for citations, and whether pages may be pictures for text recognition.
    has_pages: bool = False
    may_be_pictures: bool = False
    #: Whether its files have numbered rows for citations.
    has_rows: bool = False
    served: Serving = "saved"
    #: For an integration's format: the core's format which it follows in lists.
    after: FileKind = ""
    #: Whether the packages of its integration are installed. Without them, its files are recognised and refused.
    is_installed: bool = True

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the full names of the modules with the loader's functions."""
        places = (self.loads, self.checks, self.attaches, self.parses_mail, self.decoding)
        modules = (place.partition(":")[0] for place in places if place)
        return tuple(dict.fromkeys(importlib.util.resolve_name(module, __package__) for module in modules))


def function_of(place: str) -> Callable[..., Any]:
    """Import and return a loader's function. Raises `FileKindUnknown` if required packages are missing."""
    module, _, name = place.partition(":")
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module, __package__), name)
    except ImportError as exc:
        if module.startswith("."):
            raise
        raise packages_missing() from exc
    return function


def packages_missing() -> FileKindUnknown:
    """Return the error for a file in a format without installed packages."""
    return FileKindUnknown(PackagesMissing().message)
