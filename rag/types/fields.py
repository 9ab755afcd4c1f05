"""Describe a pydantic model's fields for forms and errors: title, help, kind and limits.

Each limit is only written in the model. Forms, API and errors read the limit there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from rag.errors import InvalidInput
from rag.language import N_

#: "line": a text in a single line, short or long. "lines": several texts, a line each.
Kind = Literal[
    "whole", "percent", "number", "amount", "switch", "choice", "line", "text", "lines",
    "words", "pairs", "patterns", "steps", "boosts", "factors",
]  # fmt: skip
KINDS: Mapping[Any, Kind] = {int: "whole", float: "number", Decimal: "amount", bool: "switch", str: "text"}
#: The end of the sentence for a refused value.
ACCEPTED: Mapping[str, str] = {
    "whole": N_("a whole number from {minimum} to {maximum}"),
    "number": N_("a number from {minimum} to {maximum}"),
    "text": N_("a text of at most {maximum} characters"),
    "filled": N_("a text of {minimum} to {maximum} characters"),
    "choice": "one of {choices}",
    "switch": N_("on or off"),
    "words": N_("a list of texts"),
    "pairs": N_("a list of names, each with a text"),
    "patterns": N_("a list of regular expressions, each with its categories"),
    "steps": N_("a list of numbers of days, the smallest first, each with a weight above 0"),
    "boosts": N_("a list of names, each with a number above 0"),
    "factors": N_("a list of numbers above 0"),
}
SAME_WORDS = {"percent": "whole", "amount": "number", "line": "text", "lines": "words"}
#: Shown for texts with a wrong length.
EMPTY, TOO_LONG = N_("empty"), N_("this long")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class FormField:
    """The description of a field, for forms and errors."""

    name: str
    title: str
    help: str = ""
    kind: Kind = "line"
    #: Shown while the field is empty.
    example: str = ""
    #: Limits for a number, or for a text's characters.
    minimum: float = 0
    maximum: float = 500
    choices: tuple[str, ...] = ()
    #: Whether the value is stored encrypted and never drawn again.
    is_secret: bool = False

    @property
    def accepted(self) -> str:
        """Return the accepted values in words, for the end of a sentence."""
        kind = SAME_WORDS.get(self.kind, self.kind)
        words = ACCEPTED["filled" if kind == "text" and self.minimum else kind]
        choices = ", ".join(self.choices)
        return words.format(minimum=f"{self.minimum:,.12g}", maximum=f"{self.maximum:,.12g}", choices=choices)

    def refusal(self, value: Any) -> InvalidInput:
        """Build the error for an invalid value, with the accepted values."""
        return InvalidInput(f"{self.title} cannot be {self._shown(value)}. Enter {self.accepted}.")

    def _shown(self, value: Any) -> str:
        if value is None or (isinstance(value, str) and not value.strip()):
            return EMPTY
        if isinstance(value, str) and self.kind in ("line", "text") and len(value) > self.maximum:
            return TOO_LONG
        text = str(value) if isinstance(value, Decimal) else repr(value)
        return text if len(text) <= 60 else f"{text[:57]}…"


def field_of(name: str, field: FieldInfo) -> FormField:
    """Return a description for a model's field.

    `X | None` is described like `X`. A string in the metadata names the kind.
    """
    inner, metadata = field, list(field.metadata)
    if get_origin(field.annotation) in (Union, UnionType):
        inner = FieldInfo.from_annotation(get_args(field.annotation)[0])
        metadata += inner.metadata
    kinds = [item for item in metadata if isinstance(item, str)]
    is_choice = get_origin(inner.annotation) is Literal
    examples = field.examples or inner.examples or [""]
    return FormField(
        name=name,
        title=field.title or inner.title or "",
        help=field.description or inner.description or "",
        kind=cast(Kind, kinds[-1]) if kinds else "choice" if is_choice else KINDS[inner.annotation],
        example=str(examples[0]),
        minimum=_bound(metadata, "ge", _bound(metadata, "min_length", 0)),
        maximum=_bound(metadata, "le", _bound(metadata, "max_length", math.inf)),
        choices=get_args(inner.annotation) if is_choice else (),
    )


def fields_of(model: type[BaseModel], *names: str) -> dict[str, FormField]:
    """Return descriptions for a model's fields: all fields, or the named fields in this order."""
    return {name: field_of(name, model.model_fields[name]) for name in names or model.model_fields}


def validated(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Return the model with these values. Raises `InvalidInput` for the first invalid value."""
    try:
        return model.model_validate(values)
    except ValidationError as exc:
        name = first_invalid(exc)
        raise field_of(name, model.model_fields[name]).refusal(values.get(name)) from exc


def first_invalid(error: ValidationError) -> str:
    """Return the first invalid field's name."""
    return str(error.errors(include_url=False)[0]["loc"][0])


def one_line(value: Any) -> Any:
    """Replace control characters and repeated spaces in a text by single spaces. Other values stay unchanged."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", value).split()) if isinstance(value, str) else value


def within(text: str, most: int) -> str:
    """Return a text with at most `most` characters unchanged. Raises `InvalidInput` for a longer text."""
    if len(text) > most:
        raise InvalidInput(f"This text has {len(text):,} characters, and at most {most:,} are kept. Please shorten it.")
    return text


def _bound(metadata: list[Any], name: str, default: float) -> float:
    return next((getattr(item, name) for item in metadata if getattr(item, name, None) is not None), default)
