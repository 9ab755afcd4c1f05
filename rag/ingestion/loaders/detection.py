"""Detect a file's format, and check the content against the file's name."""

from __future__ import annotations

import re

from rag.errors import FileKindUnknown, FileNotAsNamed
from rag.ingestion.loaders.format_table import file_formats, formats_in_words
from rag.ingestion.loaders.loader import Loader
from rag.ingestion.loaders.signatures import COMPOUND, LOOKED_AT, ZIP
from rag.ingestion.loaders.values import FileKind

#: Control characters which never occur in text; a file with them is binary.
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
#: The largest share of control characters in a text; stray ones occur.
MOST_CONTROLS = 0.02
#: The first bytes of foreign formats sometimes saved as text files, and the formats' names.
FOREIGN_SIGNATURES = (
    (ZIP, "an archive"),
    (COMPOUND, "an Office document in the format of before 2007"),
    (b"GIF8", "a picture"),
)


def kind_of(content: bytes, file_name: str, mime_type: str = "") -> FileKind:
    """Detect a file's format by the name's ending, else by the first bytes, else by the declared type.

    For a file named .pdf, the format is always PDF, because the PDF loader raises a more precise error. Raises
    `FileKindUnknown`.
    """
    ending = re.search(r"\.[^./\\]+$", file_name.lower())
    formats = file_formats()
    if ending and ending[0] in formats.by_ending:
        return formats.by_ending[ending[0]].kind
    for loader in formats.loaders:
        if loader.is_sure(content):
            return loader.kind
    declared = formats.by_media_type.get(mime_type.split(";")[0].strip().lower())
    if declared is not None:
        return declared.kind
    for loader in formats.loaders:
        if loader.looks_like(content):
            return loader.kind
    if ending is None and content and not BINARY.search(content[:LOOKED_AT]):
        return "text"
    raise FileKindUnknown(f"Files of this kind cannot be read. Upload {formats_in_words()}.")


def media_type_of(content: bytes, file_name: str, mime_type: str = "") -> str:
    """Detect a file's format like `kind_of`, and return the media type. Raises `FileKindUnknown`."""
    return file_formats().by_kind[kind_of(content, file_name, mime_type)].media_type


def require_as_named(loader: Loader, content: bytes, file_name: str) -> None:
    """Raise `FileNotAsNamed` if the content is not in the format of the file's name.

    A text file may contain markup, but no binary data.
    """
    ending = file_name[file_name.rfind(".") :].lower() if "." in file_name else "a text"
    for other in file_formats().loaders:
        is_other = other.signature and content.startswith(other.signature) and other.is_sure(content)
        # Programs export tables as HTML and name them .xls.
        is_markup = not loader.is_text and not content.startswith(loader.signature) and other.looks_like(content)
        # Phones and browsers often save a WebP as .jpg.
        is_same = other.loads == loader.loads or (other.pillow_format and loader.pillow_format)
        if (is_other or is_markup) and not is_same:
            hint = f"Rename the file so that its name ends in {other.endings[0]}, and upload it again."
            raise FileNotAsNamed(f"The name of this file ends in {ending}, but the file is {other.named}. {hint}")
    if not loader.is_text:
        return
    for signature, means in FOREIGN_SIGNATURES:
        if content.startswith(signature):
            hint = "Save the file as a PDF or as text and upload the new file."
            raise FileNotAsNamed(f"The name of this file ends in {ending}, but the file is {means}. {hint}")
    if _is_binary(content):
        raise FileNotAsNamed(
            f"The name of this file ends in {ending}, but the file holds no text. Check that it is the right file."
        )


def _is_binary(content: bytes) -> bool:
    from rag.ingestion.loaders.decoding import decode  # imports chardet, which the application seldom needs

    text, _ = decode(content[:LOOKED_AT])
    return len(CONTROL.findall(text)) > len(text) * MOST_CONTROLS
