"""Choose a document's title and author from the file's name and properties."""

from __future__ import annotations

import re

from rag.ingestion.loaders.format_table import file_formats

#: Titles left behind by programs, not by people.
MACHINE_TITLE = re.compile(
    r"^(microsoft (word|powerpoint|excel)\b|untitled|img[_-]?\d|\(?(anonymous|unspecified|unknown|none|null)\)?$"
    r"|(new |word |google )?(document|dokument|presentation|book|mappe|slide|layout|print|printing|scan|titel|title)"
    r"[ _-]?\d*$|powerpoint presentation$|no title$|ohne titel|\S*_\S*$)"
    r"|\.(docx?|pptx?|xlsx?|indd|qxd|pdf|odt|rtf|txt|tex|dvi|hwpx?|pub)$|[\\/]",
    re.IGNORECASE,
)


def title_from_file_name(file_name: str) -> str:
    """Make a title from a file name: drop the ending, replace underscores by spaces, and start with a capital."""
    stem, dot, ending = file_name.rpartition(".")  # unlike splitext, a name which is only an ending has no stem
    stem = stem if dot + ending.lower() in file_formats().by_ending else file_name
    stem = re.sub(r"[_\s]+|(?<=\w)-(?=[^\W\d])", " ", stem).strip() if " " not in stem else stem.strip()
    if not stem:
        return "Document"
    return stem[0].upper() + stem[1:] if stem.islower() else stem


def title_from_metadata(title: str) -> str:
    """Return the title from the file's properties, or "" if a program made the title."""
    title = " ".join(title.split())
    if not 4 <= len(title) <= 150 or MACHINE_TITLE.search(title) or not re.search(r"[^\W\d_]{2}", title):
        return ""
    return title


#: Author properties written by programs instead of a name.
NO_AUTHOR = re.compile(
    r"\(?(anonymous|unspecified|unknown|none|null|author|user|admin|administrator)\)?", re.IGNORECASE
)


def author_from_metadata(author: str) -> str:
    """Return the author from the file's properties, or "" if a program filled in a placeholder."""
    author = " ".join(author.split())[:200]
    return "" if NO_AUTHOR.fullmatch(author) else author
