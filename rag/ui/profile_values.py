"""Values of a profile as people read and type them: lists with an item per line, pairs as `name = value`."""

from __future__ import annotations

from typing import Any

from rag.errors import InvalidInput
from rag.profile import Setting

LISTS = ("words", "pairs", "patterns", "steps", "boosts", "factors")
EMPTY = "None"


def shown_value(field: Setting, value: Any) -> str:
    """A value on one line; `None` for what is empty."""
    if isinstance(value, bool):
        return "On" if value else "Off"
    if value is None or value in ("", ()):
        return EMPTY
    if isinstance(value, int | float):
        return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    if field.kind in LISTS:
        return " · ".join(_lines(field, value))
    return _escaped(str(value))


def text_of(field: Setting, value: Any) -> str:
    """A text or a list as it is edited."""
    return "\n".join(_lines(field, value)) if field.kind in LISTS else str(value)


def value_from(field: Setting, text: str) -> Any:
    """What was typed, as a value to check. Raises `InvalidInput` naming the line that cannot be read."""
    if field.kind not in LISTS:
        return text
    return [_item(field, line) for line in text.splitlines() if line.strip()]


def is_left_out(value: Any) -> bool:
    """Whether a profile makes no use of a field."""
    return value is None or (not isinstance(value, bool) and value in (0, "", ()))


def _lines(field: Setting, value: Any) -> list[str]:
    if field.kind == "words":
        # Blanks at an end would be lost from sight, and a blank item with them.
        return [_escaped(item) if item and item == item.strip(" ") else f'"{_escaped(item)}"' for item in value]
    if field.kind == "factors":
        return [f"{item:g}" for item in value]
    if field.kind == "patterns":
        return [f"{_escaped(pattern)} = {', '.join(categories)}" for pattern, categories in value]
    return [
        f"{_escaped(str(name))} = {_escaped(f'{item:g}' if isinstance(item, float) else item)}" for name, item in value
    ]


def _item(field: Setting, line: str) -> Any:
    if field.kind == "words":
        is_quoted = len(line.strip()) >= 2 and line.strip()[0] == line.strip()[-1] == '"'
        return _unescaped(line.strip()[1:-1] if is_quoted else line.strip())
    try:
        if field.kind == "factors":
            return float(line)
        # A pattern may hold the sign itself, and so may a text.
        name, sign, item = line.rpartition("=") if field.kind == "patterns" else line.partition("=")
        if not sign:
            raise ValueError
        name, item = name.strip(), item.strip()
        if field.kind == "patterns":
            return [name, [category.strip() for category in item.split(",") if category.strip()]]
        if field.kind == "steps":
            return [int(name), float(item)]
        return [name, float(item) if field.kind == "boosts" else _unescaped(item)]
    except ValueError as exc:
        raise InvalidInput(f"{field.title} cannot be read at “{line.strip()}”: it has to be {field.wanted}.") from exc


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in text else text


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\\\", "\\") if "\\n" in text else text
