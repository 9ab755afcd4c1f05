"""Our own small pages: templates beside this file, every value escaped, nothing loaded from anywhere."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template

_TEXTS = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "templates").glob("*.html")}
#: What pages share: colours and icon, the name above them, and the end of a form that sets a password.
_SHARED = {name: _TEXTS.pop(name) for name in ("head", "brand", "choose_password")}
TEMPLATES = {name: Template(Template(text).safe_substitute(_SHARED)) for name, text in _TEXTS.items()}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def page(template: str, /, *, title: str, foot: str = "", **values: str) -> str:
    """A whole page around one template. Values are escaped unless they are `Markup`."""
    body = _filled(template, values)
    return _filled("frame", {"title": title, "body": body, "foot": foot})


def note(text: str, *, is_error: bool = True) -> Markup:
    """A sentence above a form, read out when it appears; nothing for an empty one."""
    if not text:
        return Markup("")
    kind, role = ("wrong", "alert") if is_error else ("right", "status")
    return Markup(f'<p class="note {kind}" role="{role}">{escape(text)}</p>')


def _filled(template: str, values: dict[str, str]) -> Markup:
    escaped = {key: value if isinstance(value, Markup) else escape(value) for key, value in values.items()}
    return Markup(TEMPLATES[template].substitute(escaped))
