"""From a question to numbered passages: the only ordering of the retrieval steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rag.database import Database
from rag.profiles import Profile
from rag.types import ContextResponse, Question

if TYPE_CHECKING:
    from rag.providers.registry import Providers


class Retriever:
    """Finds the passages that answer a question. Thread-safe."""

    def __init__(self, database: Database, providers: Providers) -> None:
        self._database = database
        self._providers = providers

    def retrieve_context(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        language: str | None = None,
        on_step: Callable[[str, str], None] | None = None,
    ) -> ContextResponse:
        """Find, order and number the passages for a question."""
        raise NotImplementedError
