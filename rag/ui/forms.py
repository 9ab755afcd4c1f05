"""Draw fields described by `rag.types.fields`, and read the entered values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import streamlit as st

from rag.language import _
from rag.types.fields import FormField

#: A longer text is drawn in several lines.
LONGEST_LINE = 200
#: Steps and formats of numbers by kind.
NUMBERS: Mapping[str, tuple[float, str]] = {"whole": (1, "%d"), "number": (0.05, "%g"), "amount": (0.01, "%.2f")}


def draw_field(field: FormField, value: Any = None, *, key: str, **look: Any) -> Any:
    """Draw an input, and return the entered value. `look` has further options for the Streamlit widget.

    The widget does not enforce the field's limits, because Streamlit would cut longer texts and larger numbers
    silently. Instead, the model refuses the value with a message, and the value stays in the form.
    """
    label = _(field.title)
    help_text = _(field.help) or None
    options = {"key": key, **look}
    if field.kind in NUMBERS:
        step, number_format = NUMBERS[field.kind]
        number = float(value) if isinstance(value, Decimal) else value
        return st.number_input(label, value=number, step=step, format=number_format, help=help_text, **options)
    if field.kind == "percent":
        return st.slider(label, int(field.minimum), int(field.maximum), value, step=5, help=help_text, **options)
    if field.kind == "switch":
        return st.toggle(label, bool(value), help=help_text, **options)
    options |= {"placeholder": field.example or None}
    if field.kind == "lines":
        return st.text_area(label, "\n".join(value or ()), help=help_text, **options)
    if field.kind == "text" and field.maximum > LONGEST_LINE:
        return st.text_area(label, value or "", help=help_text, **options)
    kind: Mapping[str, Any] = {"autocomplete": "off"}
    if field.is_secret:
        kind = {"type": "password", "autocomplete": "new-password"}
    return st.text_input(label, value or "", help=help_text, **kind, **options)


def draw_fields(
    fields: Iterable[FormField], key: str, values: Mapping[str, Any] | None = None, *, columns: int = 1
) -> None:
    """Draw fields with their values; an input's key is `{key}_{name}`."""
    # Row by row: the tab key follows the reading order, and a phone keeps it too.
    remaining = list(fields)
    while remaining:
        places = st.columns(columns) if columns > 1 else [st.container()]
        for place, field in zip(places, remaining, strict=False):
            with place:
                draw_field(field, (values or {}).get(field.name), key=f"{key}_{field.name}")
        del remaining[:columns]


def entered(fields: Iterable[FormField], key: str) -> dict[str, Any]:
    """Return the entered values by name, with texts stripped. Raises `InvalidInput` if a text is too long."""
    values: dict[str, Any] = {}
    for field in fields:
        value = st.session_state[f"{key}_{field.name}"]
        text = value.strip() if isinstance(value, str) else value
        if field.kind in ("line", "text") and len(text) > field.maximum:
            raise field.refusal(text)
        values[field.name] = text.splitlines() if field.kind == "lines" else text
    return values
