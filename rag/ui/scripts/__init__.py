"""The pages' scripts and styles: the files `NAME.js` and `NAME.css` in this folder, as HTML elements."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@cache
def _read(file_name: str) -> str:
    return (FOLDER / file_name).read_text("utf-8")


def script(name: str, **values: object) -> str:
    """Return a script. Words in `values` are replaced by their values in JSON."""
    encoded = {word: json.dumps(value).replace("<", "\\u003c") for word, value in values.items()}
    text = _read(f"{name}.js")
    if encoded:
        text = re.sub(rf"\b(?:{'|'.join(encoded)})\b", lambda word: encoded[word[0]], text)
    return f"<script>\n{text}</script>\n"


def style(name: str) -> str:
    return f"<style>\n{_read(f'{name}.css')}</style>\n"
