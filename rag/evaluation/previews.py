"""Compare search results under a collection's current and changed settings, before saving the changes.

Only retrieval runs, twice per question, and nothing is written. Paid search models are used only if the administrator
asks for them. Their calls are in the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal
from uuid import UUID

from rag.access.sessions import require_admin
from rag.answering.logged_search import Searches
from rag.errors import RagError
from rag.money.price_list import charge
from rag.profiles.profile import Options, Profile
from rag.providers.registry import Providers
from rag.storage.database import Database
from rag.types import Citation, Collection, Identity, Operation, Question, Usage

#: Questions of a comparison.
MAXIMUM_QUESTIONS = 10
LONGEST_QUESTION = 500
#: Tokens in a question, and in a request to translate or reword it; for the estimate.
QUESTION_TOKENS, REQUEST_TOKENS, REPLY_TOKENS = 40, 400, 80

Verdict = Literal["answered", "perhaps", "none"]


@dataclass(frozen=True, kw_only=True)
class SearchOutcome:
    """The hits for a question under certain settings, and whether they answer the question."""

    verdict: Verdict
    passages: tuple[Citation, ...]
    #: The reason for a failed search, as a sentence; "" otherwise.
    problem: str = ""

    def without(self, other: SearchOutcome) -> tuple[Citation, ...]:
        """Return the hits which `other` does not have."""
        other_ids = {passage.chunk_id for passage in other.passages}
        return tuple(passage for passage in self.passages if passage.chunk_id not in other_ids)


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The hits for a question under the current and the changed settings."""

    question: str
    before: SearchOutcome
    after: SearchOutcome
    #: The cost of both searches; `None` without a price.
    cost: Decimal | None

    @property
    def is_same(self) -> bool:
        """Whether both settings give the same hits in the same order, and the same verdict on the evidence."""
        order = [[passage.chunk_id for passage in outcome.passages] for outcome in (self.before, self.after)]
        return order[0] == order[1] and self.before.verdict == self.after.verdict


class Previews:
    """Compare settings over several questions. Thread-safe."""

    def __init__(self, database: Database, searches: Searches, providers: Providers) -> None:
        self._database = database
        self._searches = searches
        self._providers = providers

    def recent_questions(self, identity: Identity, collection_id: UUID) -> list[str]:
        """Return the latest distinct questions that people asked a collection. For administrators."""
        require_admin(identity)
        questions = self._database.fetch_value(
            identity,
            "recent_questions",
            collection_id=collection_id,
            limit=MAXIMUM_QUESTIONS,
            longest=LONGEST_QUESTION,
        )
        return [str(question) for question in questions or []]

    def needs_paid_calls(self, collection: Collection) -> bool:
        """Whether every search in this collection calls a paid embedder."""
        try:
            return self._providers.embedder_for(collection.embedding_model).is_paid
        except RagError:
            return False

    def estimate(self, collection: Collection, *profiles: Profile, questions: int) -> Decimal | None:
        """Return the maximum cost of a comparison with paid models, in US dollars; `None` if a price is unknown."""
        usages: list[tuple[Operation, Usage]] = []
        for profile in profiles:
            if self.needs_paid_calls(collection):
                embedder = self._providers.embedder_for(collection.embedding_model)
                used = Usage(provider=embedder.provider, model=embedder.model, input_tokens=QUESTION_TOKENS)
                usages.append(("embedding", used))
            reranker = self._providers.reranker_for(profile)
            if reranker is not None:
                usages.append(("reranking", Usage(provider=reranker.provider, model=reranker.model, search_units=1)))
            if model := self._providers.translation_model_for(profile):
                used = Usage(
                    provider=model.provider,
                    model=model.model,
                    input_tokens=REQUEST_TOKENS,
                    output_tokens=REPLY_TOKENS,
                )
                usages.append(("translation", used))
        costs = [charge(operation, usage).cost for operation, usage in usages]
        if any(cost is None for cost in costs):
            return None
        return sum((cost for cost in costs if cost is not None), Decimal(0)) * questions

    def compare(
        self,
        identity: Identity,
        collection: Collection,
        before: Profile,
        after: Profile,
        questions: Sequence[str],
        *,
        with_paid_models: bool = False,
    ) -> list[Preview]:
        """Search for each question with both profiles, and return the hits of both. For administrators.

        Without paid models, nothing is translated or reranked, the same as when a budget is spent. Raises
        `DatabaseUnavailable`.
        """
        require_admin(identity)
        profiles = [profile.model_copy(update={"spends": with_paid_models}) for profile in (before, after)]
        previews = []
        for text in questions[:MAXIMUM_QUESTIONS]:
            question = Question(text=text[:LONGEST_QUESTION], identity=identity, collection=collection)
            both = [self._search_outcome(question, profile) for profile in profiles]
            costs = [cost for _, cost in both]
            priced = [cost for cost in costs if cost is not None]
            cost = sum(priced, Decimal(0)) if len(priced) == len(costs) else None
            previews.append(Preview(question=text, before=both[0][0], after=both[1][0], cost=cost))
        return previews

    def _search_outcome(self, question: Question, profile: Profile) -> tuple[SearchOutcome, Decimal | None]:
        # Answers are compared, so the rule for a search without an answer does not apply.
        options = Options(only_evidence=profile.ranking.only_evidence)
        try:
            response = self._searches.search(question, profile=profile, options=options).response
        except RagError as exc:
            return SearchOutcome(verdict="none", passages=(), problem=exc.message), Decimal(0)
        verdict: Verdict = "none"
        if response.citations:
            verdict = "perhaps" if response.evidence == "perhaps" else "answered"
        is_priced = all(paid.cost is not None for paid in response.charges)
        outcome = SearchOutcome(verdict=verdict, passages=tuple(response.citations))
        return outcome, response.cost if is_priced else None
