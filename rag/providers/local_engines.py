"""Find the engines for meaning, text recognition and reranking, which integrations run on this machine."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from rag.errors import PackagesMissing, SettingsError
from rag.providers import Reranker

#: Integrations are found by name, because the core imports none.
INTEGRATIONS = "rag.integrations.registry"


@cache
def worker_for(engine: Literal["meaning", "recognition"]) -> str | None:
    """Return the module to run as the engine's process, or `None` if the engine is not installed."""
    worker: str | None = import_module(INTEGRATIONS).workers().get(engine)
    return worker


def cross_encoder(path: Path) -> Reranker:
    """Load the cross-encoder in an ONNX file. Raises `SettingsError`."""
    try:
        reranker: Reranker = import_module(INTEGRATIONS).cross_encoder(path)
    except PackagesMissing as exc:
        raise SettingsError(f"RAG_CROSS_ENCODER cannot be used. {exc}") from exc
    return reranker
