"""Draft legal opinions: find references for a case, let a model write the draft, and store the draft.

Only the author can see a draft. The text is streamed to the author. If the author leaves, the text written until then
is stored. Source 002 in docs/sources.md, sections 6 and 8.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from threading import Event
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.answering.citations import CitationFilter
from rag.answering.logged_search import Searches
from rag.answering.prompts import opinion_rules
from rag.errors import BudgetSpent, InvalidInput, NotFound, ProviderError, ProviderStreamEmpty, SettingsError
from rag.language import N_
from rag.money.metered import MeteredChatModel
from rag.profiles import PROFILES, REFERENCE_PROFILES, profile_of
from rag.profiles.profile import Options, Profile
from rag.providers import Completed, Discarded, TextDelta, defused
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.context_builder import ContextPassage, fill_template
from rag.storage.database import Database
from rag.types import ChatMessage, Collection, Identity, Question, SearchFilters, SearchResult, storable

#: The default form for references.
REFERENCE_FORMAT = PROFILES[REFERENCE_PROFILES[0]].answer.context_format
HEADING = "【참고자료】"
PART_HEADING = re.compile(r"【\s*(사건\s*자료|작성\s*예시|참고\s*자료|요청)\s*】")
#: A longer analysis blurs the search; its beginning names the case.
ANALYSIS_CHARACTERS = 300


def reference_query(profile: Profile, opinion_type: str, *, summary: str = "", issues: Sequence[str] = ()) -> str:
    """Return the search query for a case: the profile's words for the opinion type, followed by the summary.

    Without a summary, the issues follow. For an unknown opinion type, the query begins with the type's name.
    """
    kind = " ".join(opinion_type.split())
    beginning = dict(profile.search.opinion_queries).get(kind, kind)
    analysis = " ".join((summary.strip() or " ".join(issues)).split())[:ANALYSIS_CHARACTERS]
    return f"{beginning} {analysis}".strip()


def reference_block(profile: Profile, results: Sequence[SearchResult]) -> str:
    """Format the hits for the prompt, each below the legal topic and the criminal offence; "" without hits."""
    template = profile.answer.context_format or REFERENCE_FORMAT
    passages = (ContextPassage(number=number, result=r, text=r.content) for number, r in enumerate(results, 1))
    parts = "".join(_without_headings(fill_template(template, passage)) for passage in passages)
    return f"{HEADING}\n\n{parts}" if parts else ""


def _without_headings(passage: str) -> str:
    """Change headings in a chunk which look like headings in the prompt."""
    return PART_HEADING.sub(r"〔\1〕", defused(passage))


def build_full_prompt(
    opinion_type: str,
    data_block: str,
    user_prompt: str,
    learning_examples: str | Sequence[str] = "",
    reference_rag_block: str = "",
) -> str:
    """Build the prompt for an opinion: rules, case, style examples, references and request.

    If a part is empty, the part's heading is left out too. `reference_rag_block` comes from `reference_block` and is
    inserted unchanged.
    """
    examples = [learning_examples] if isinstance(learning_examples, str) else list(learning_examples)
    parts = [
        opinion_rules(opinion_type),
        _part("【사건 자료】", data_block),
        _part("【작성 예시】", "\n\n".join(example.strip() for example in examples if example.strip())),
        reference_rag_block.strip(),
        _part("【요청】", user_prompt),
    ]
    return "\n\n".join(part for part in parts if part)


def _part(heading: str, text: str) -> str:
    return f"{heading}\n\n{text.strip()}" if text.strip() else ""


#: An opinion is several pages long; an answer in the chat is not.
LEAST_OUTPUT_TOKENS = 4096
CUT = N_("The draft reached its length limit and ends here.")
INCOMPLETE = N_("This draft is incomplete: the connection was closed before it was finished.")
NO_MODEL = N_(
    "There is no language model, so nothing can be drafted. An administrator can paste a key of Google Gemini or "
    "OpenAI on the page Set-up."
)


@dataclass(frozen=True, kw_only=True)
class OpinionCase:
    """The case for a legal opinion, the author's instructions, and example texts in the wanted style."""

    opinion_type: str
    facts: str
    instructions: str = ""
    examples: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class FoundReferences:
    """The search query for a case, and the hits, most similar first."""

    query: str
    results: tuple[SearchResult, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """A row in `opinions`: a legal opinion's draft, with the case and the references."""

    id: UUID
    collection_id: UUID
    opinion_type: str
    facts: str
    instructions: str
    query: str
    #: The passages in the block: number, chunk_id, document_id, title, page_number, content, metadata, and `cited`: the
    #: passage's number in the text, null if the text does not cite it.
    citations: list[dict[str, Any]]
    content: str
    state: Literal["writing", "complete", "cut", "failed"]
    message: str
    model: str
    cost: Decimal | None
    created_at: datetime

    @property
    def cited(self) -> list[dict[str, Any]]:
        """The references cited in the text, sorted by their numbers there."""
        return sorted((c for c in self.citations if c.get("cited")), key=lambda c: int(c["cited"]))


@dataclass(kw_only=True)
class Draft:
    """A draft in progress. Iterating over `pieces` lets the model write the draft, and yields the text."""

    id: UUID
    pieces: Generator[str]
    prompt: str


class Opinions:
    """Find references, write drafts and store them. Thread-safe."""

    def __init__(
        self,
        database: Database,
        providers: Providers,
        searches: Searches,
        chat_logs: ChatLogs,
        *,
        stop_spending: Callable[[Identity], str] = lambda _identity: "",
    ) -> None:
        """`stop_spending` returns the reason why a person may not use paid models, or "" if this is allowed."""
        self._database = database
        self._providers = providers
        self._searches = searches
        self._chat_logs = chat_logs
        self._stop_spending = stop_spending

    def find_references(
        self,
        identity: Identity,
        collection: Collection,
        query: str,
        *,
        top_k: int | None = None,
        filters: Mapping[str, str] | None = None,
    ) -> FoundReferences:
        """Return the references found with a query from `reference_query`. No similarity threshold applies.

        Raises `InvalidInput` for an unknown filter.
        """
        profile = profile_of(collection)
        conditions = dict(filters or {})
        if unknown := [name for name in conditions if name not in profile.search.metadata_filters]:
            allowed = ", ".join(profile.search.metadata_filters) or "none"
            raise InvalidInput(f"The filter {unknown[0][:60]!r} is not available here. Choose one of: {allowed}.")
        retrieval = self._searches.search(
            Question(text=query, identity=identity, collection=collection),
            profile=profile,
            top_k=top_k,
            options=Options(filters=SearchFilters(metadata=conditions)),
        )
        # Like in the source, the nearest at any distance: the author judges them.
        hits = retrieval.hits[: top_k or profile.search.top_k]
        return FoundReferences(query=query, results=hits, notices=retrieval.response.notices)

    def begin(
        self,
        identity: Identity,
        collection: Collection,
        case: OpinionCase,
        *,
        references: Sequence[SearchResult],
        query: str = "",
    ) -> Draft:
        """Store and return a new draft with these references.

        The model only writes while the caller iterates over the draft's `pieces`, which also bills and stores the text.
        Raises `InvalidInput` if the type or the facts are missing, `SettingsError` without a chat model, and
        `BudgetSpent`.
        """
        kind = " ".join(case.opinion_type.split())
        if not kind or not case.facts.strip():
            raise InvalidInput("Choose the kind of opinion and write down the facts of the case first.")
        profile = profile_of(collection)
        model = self._providers.chat_model_for(profile)
        if model is None:
            raise SettingsError(NO_MODEL)
        if why := self._stop_spending(identity):
            raise BudgetSpent(why)
        prompt = build_full_prompt(
            kind, case.facts, case.instructions, case.examples, reference_block(profile, references)
        )
        citations = [_citation(number, result) for number, result in enumerate(references, 1)]
        opinion_id = self._database.fetch_value(
            identity,
            "begin_opinion",
            collection_id=collection.id,
            owner_id=identity.account_id,
            opinion_type=storable(kind),
            facts=storable(case.facts),
            instructions=storable(case.instructions),
            query=storable(query),
            citations=Jsonb(citations),
            model=model.model,
        )
        pieces = self._pieces(identity, opinion_id, collection, prompt, len(citations))
        return Draft(id=opinion_id, pieces=pieces, prompt=prompt)

    def _pieces(
        self, identity: Identity, opinion_id: UUID, collection: Collection, prompt: str, references: int
    ) -> Generator[str]:
        profile = profile_of(collection)
        model = self._providers.chat_model_for(profile)
        if model is None:
            raise SettingsError(NO_MODEL)
        messages = [ChatMessage(role="user", content=prompt)]
        bill = self._chat_logs.bill_for(collection)
        text, state, message = "", "cut", INCOMPLETE
        filtered = CitationFilter(range(1, references + 1))
        try:
            for event in MeteredChatModel(model, bill).stream(
                messages,
                temperature=profile.answer.temperature,
                maximum_output_tokens=max(LEAST_OUTPUT_TOKENS, profile.answer.maximum_output_tokens),
                cancel=Event(),
            ):
                if isinstance(event, TextDelta):
                    if piece := filtered.feed(event.text):
                        text += piece
                        yield piece
                elif isinstance(event, Discarded):
                    text, filtered = "", CitationFilter(range(1, references + 1))
                elif isinstance(event, Completed):
                    is_complete = event.finish_reason != "length"
                    state, message = ("complete", "") if is_complete else ("cut", CUT)
            if piece := filtered.finish():
                text += piece
                yield piece
            if not text.strip():
                raise ProviderStreamEmpty
        except ProviderError as error:
            state, message = "failed", str(error)
            raise
        finally:
            self._database.execute(
                identity,
                "end_opinion",
                id=opinion_id,
                content=storable(text),
                state=state,
                message=message,
                shown=Jsonb({str(number): shown for number, shown in filtered.text_numbers.items()}),
                cost=bill.cost,
            )

    def list(self, identity: Identity, *, limit: int = 20, offset: int = 0) -> tuple[Sequence[Opinion], int]:
        """Return at most `limit` drafts by a person after the first `offset`, newest first, and the total number."""
        return self._find(identity, limit=limit, offset=offset), int(
            self._database.fetch_value(identity, "count_opinions", owner_id=identity.account_id) or 0
        )

    def get(self, identity: Identity, opinion_id: UUID) -> Opinion:
        """Return a person's draft. Raises `NotFound`."""
        opinions = self._find(identity, opinion_id=opinion_id)
        if not opinions:
            raise NotFound("This draft does not exist. It may have been deleted.")
        return opinions[0]

    def delete(self, identity: Identity, opinion_id: UUID) -> str:
        """Delete a person's draft. Return a value for `put_back`, which restores the draft. Raises `NotFound`."""
        removed = self._database.fetch_value(identity, "delete_opinion", id=opinion_id, owner_id=identity.account_id)
        if removed is None:
            raise NotFound("This draft does not exist. It may have been deleted.")
        return str(removed)

    def put_back(self, identity: Identity, removed: str) -> None:
        """Restore a deleted draft. Raises `PlaceTaken` if the collection was deleted."""
        self._database.put_back(identity, "put_opinion_back", kept=removed)

    def _find(
        self, identity: Identity, *, opinion_id: UUID | None = None, limit: int = 1, offset: int = 0
    ) -> Sequence[Opinion]:
        return self._database.fetch_all(
            identity, "find_opinions", Opinion, owner_id=identity.account_id, id=opinion_id, limit=limit, offset=offset
        )


def _citation(number: int, result: SearchResult) -> dict[str, Any]:
    return {
        "number": number,
        "chunk_id": str(result.chunk_id),
        "document_id": str(result.document_id),
        "title": result.title,
        "page_number": result.first_page,
        "content": result.content,
        "metadata": dict(result.metadata),
    }


def as_docx(opinion: Opinion) -> bytes:
    """Write a draft to a Word document. The cited references are listed after the text."""
    import docx  # imported here, because drafts are saved seldom

    document = docx.Document()
    document.add_heading(opinion.opinion_type, level=1)
    for block in opinion.content.split("\n"):
        text = block.strip()
        if not text:
            continue
        hashes = len(text) - len(text.lstrip("#"))
        plain = text.lstrip("#").replace("**", "").strip()
        if hashes:
            document.add_heading(plain, level=min(hashes + 1, 9))
        elif text.startswith(("- ", "* ")):
            document.add_paragraph(plain[2:], style="List Bullet")
        else:
            document.add_paragraph(plain)
    if opinion.cited:
        document.add_heading("참고자료", level=2)
        for item in opinion.cited:
            document.add_paragraph(f"[{item['cited']}] {item['title']}, {item['page_number']}쪽")
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()
