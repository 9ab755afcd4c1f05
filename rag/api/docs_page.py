"""placeholder"""

from __future__ import annotations

from typing import Any


def docs_page(described: dict[str, Any], address: str) -> str:
    return ""
