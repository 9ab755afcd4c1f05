"""Normalise characters: convert ligatures, spaces and line ends which look alike to the same characters."""

from __future__ import annotations

import re

#: Latin ligatures as letters. NFKC would change more: CJK text and figures.
CHARACTERS = str.maketrans(
    {
        "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "ſt", "ﬆ": "st",
        "\ufffe": "", "\u200b": "", "\u2060": "", "\ufeff": "",
        "\u00a0": " ", "\u2007": " ", "\u202f": " ", "\t": " ",
        "\f": "\n", "\v": "\n", "\x85": "\n", "\u2028": "\n", "\u2029": "\n\n", "\r": "\n",
    }
)  # fmt: skip
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
SPACES = re.compile(r" {2,}")


def normalise_characters(text: str) -> str:
    """Normalise ligatures, spaces and line ends; remove control characters and lone surrogates."""
    text = CONTROLS.sub("", text.replace("\r\n", "\n").translate(CHARACTERS))
    text = text.replace("\u00ad\n", "-\n").replace("\u00ad", "")
    return "\n".join(SPACES.sub(" ", line).strip() for line in text.split("\n"))
