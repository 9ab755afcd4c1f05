"""What a document is called: the title it gives itself where that is one, else its file's name made readable."""

from __future__ import annotations

import re

#: Titles that programs leave behind rather than people.
MACHINE_TITLE = re.compile(
    r"^(microsoft (word|powerpoint|excel)\b|untitled|document\d*$|powerpoint presentation|presentation\d*$|book\d*$"
    r"|slide \d+|layout \d+|print|printing|scan|img[_-]?\d|unknown|titel|title)"
    r"|\.(docx?|pptx?|xlsx?|indd|qxd|pdf|odt|rtf|txt|tex|dvi|hwpx?|pub)$|[\\/]",
    re.IGNORECASE,
)


def title_from_file_name(file_name: str) -> str:
    """The name without its ending, underscores as spaces, a lower-case name begun with a capital."""
    stem = re.sub(r"\.(?:pdf|docx|html?|md|markdown|txt)$", "", file_name, flags=re.IGNORECASE)
    stem = re.sub(r"[_\s]+|(?<=\w)-(?=[^\W\d])", " ", stem).strip() if " " not in stem else stem.strip()
    if not stem:
        return "Document"
    return stem[0].upper() + stem[1:] if stem.islower() else stem


def title_from_metadata(title: str) -> str:
    """The PDF's own title, or nothing when it looks like a program's rather than a person's."""
    title = " ".join(title.split())
    if not 4 <= len(title) <= 150 or MACHINE_TITLE.search(title) or not re.search(r"[^\W\d_]{2}", title):
        return ""
    return title
