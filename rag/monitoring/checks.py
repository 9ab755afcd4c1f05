"""The result of a check, for `doctor` and `/api/health`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check's result.

    `failed`: the product does not work. `missing`: a feature is unavailable. `warning`: a problem will follow.
    """

    name: str
    state: Literal["ok", "missing", "warning", "failed"]
    #: In plain words, for an administrator who never saw a terminal.
    sentence: str
    #: For the person who runs the server: settings, commands and versions.
    detail: str = ""
