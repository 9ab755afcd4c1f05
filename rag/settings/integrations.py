"""Read integrations' settings; each folder declares them in `settings.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Variable:
    """An integration's setting, always text."""

    default: str = ""
    is_secret: bool = False


def read_variables(folder: Path) -> dict[str, Variable]:
    """Map the environment variables of all integrations to their settings."""
    return {
        name: Variable(**values)
        for path in sorted(folder.glob("*/*/settings.toml"))
        for name, values in tomllib.loads(path.read_text("utf-8")).items()
    }


INTEGRATION_VARIABLES = read_variables(Path(__file__).resolve().parent.parent / "integrations")
