"""A collection's profile: its settings for reading, chunking, search, ranking and answers.

`parts.py` declares each setting once, with default, title, bounds, unit and source. The settings page, collections'
overrides, options for a call and the API's limits are derived from this declaration. A setting has the same name
everywhere: `profile.search.top_k` is the override `top_k` and the option `top_k`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from rag.errors import InvalidInput
from rag.language import N_
from rag.profiles.parts import Answer, Chunking, Embedding, Language, Part, Ranking, Reading, Search, Understanding
from rag.types import SearchFilters
from rag.types.fields import FormField, field_of, first_invalid

__all__ = [
    "GROUPS", "PER_CALL", "SETTINGS", "WITHOUT_OUR_STEPS", "Answer", "Chunking", "Embedding", "Language", "Options",
    "Part", "Profile", "Ranking", "Reading", "Search", "Setting", "Understanding",
]  # fmt: skip

#: The groups on the settings page, in order.
GROUPS = (N_("Documents"), N_("Search"), N_("Order"), N_("Language and answers"))
#: Candidates for a question; Cohere takes 1000 documents a call.
MAXIMUM_CANDIDATES = 1000
LOCKED = "The {title} cannot be changed for a collection: {why}."


class Profile(BaseModel):
    """All settings of a collection. The defaults come from source 004 in docs/sources.md."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    title: str
    #: A sentence for the administrator who chooses a profile.
    description: str
    #: A board holds posts, which come from a table and carry dates, pins and attachments.
    content: Literal["documents", "posts"] = "documents"
    #: Readers for the profile's special content, by media type: `module:class` names a
    #: `rag.ingestion.reading.ContentReader`.
    readers: Mapping[str, str] = {}
    #: Collections with the reference documents for `/api/reference-documents` and opinions.
    holds_references: bool = False
    #: Whether the profile answers as a person, named in the settings.
    is_personal: bool = False
    #: What `/api/rag/chat` adds to its answers.
    api_extras: tuple[Literal["follow_ups", "source_names"], ...] = ()
    #: Whether paid models may be called; false after a budget is spent.
    spends: bool = True

    chunking: Chunking = Chunking()
    reading: Reading = Reading()
    embedding: Embedding = Embedding()
    search: Search = Search()
    understanding: Understanding = Understanding()
    ranking: Ranking = Ranking()
    language: Language = Language()
    answer: Answer = Answer()

    def value(self, name: str) -> Any:
        return getattr(getattr(self, SETTINGS[name].part), name)

    def changed(self, **values: Any) -> Self:
        """Copy the profile with other values for some settings. Contradictions are not checked.

        Raises: InvalidInput: a setting is unknown, or a value is invalid.
        """
        by_part: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            setting = SETTINGS.get(name)
            if setting is None:
                raise InvalidInput(f"A profile has no setting {name!r}.")
            by_part.setdefault(setting.part, {})[name] = value
        parts = {}
        for part_name, changes in by_part.items():
            part: Part = getattr(self, part_name)
            unchanged = {name: getattr(part, name) for name in part.model_fields_set if name not in changes}
            try:
                parts[part_name] = type(part).model_validate({**unchanged, **changes})
            except ValidationError as exc:
                invalid = first_invalid(exc)
                raise SETTINGS[invalid].refusal(changes[invalid]) from exc
        return self.model_copy(update=parts)

    def with_overrides(self, overrides: Mapping[str, Any]) -> Self:
        """Return a copy with a collection's overrides.

        Raises:
            InvalidInput: a setting is unknown or locked, or its value is invalid or contradicts another setting.
        """
        for name in overrides:
            if name in SETTINGS and (why := SETTINGS[name].locked):
                raise InvalidInput(LOCKED.format(title=SETTINGS[name].title.lower(), why=why))
        profile = self.changed(**overrides)
        if sentence := profile.contradiction():
            raise InvalidInput(sentence)
        return profile

    def differences(self, other: Profile) -> dict[str, tuple[Any, Any]]:
        """Return the settings which differ from `other`, with both values."""
        pairs = {name: (self.value(name), other.value(name)) for name in SETTINGS}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def passages(self, top_k: int | None = None) -> int:
        """Return the number of chunks in the context: `top_k`, but with reranking at most `rerank_top_n`."""
        maximum = top_k or self.search.top_k
        return (
            min(maximum, self.ranking.rerank_top_n) if self.ranking.reranking and self.ranking.rerank_top_n else maximum
        )

    def threshold(self, embedder_default: float, calibrated: float | None = None) -> float:
        """Return the lowest cosine similarity for hits: the setting, the calibrated value or the embedder's default."""
        mode, absolute = self.search.threshold_mode, self.search.similarity_threshold
        if mode == "absolute" and absolute is not None:
            return absolute
        if mode == "calibrated" and calibrated is not None:
            return calibrated
        return embedder_default

    def contradiction(self) -> str:
        """Return a sentence about settings which contradict each other, or "" without a contradiction."""
        cut, search, ranking = self.chunking, self.search, self.ranking
        candidates = search.top_k * search.candidate_factor
        rules = (
            (
                cut.chunk_overlap >= cut.chunk_size,
                "The text repeated between passages has to be shorter than a passage.",
            ),
            (cut.minimum_chunk_size > cut.chunk_size, "The smallest passage cannot be larger than the passage size."),
            (
                not cut.narrative_target_tokens <= cut.narrative_soft_tokens <= cut.narrative_hard_tokens,
                "For stories, the sizes have to rise: target size, preferred end, largest passage.",
            ),
            (
                cut.professional_minimum_tokens > cut.professional_maximum_tokens,
                "The smallest passage of a résumé cannot be larger than the largest.",
            ),
            (
                cut.markdown_target_words > cut.markdown_maximum_words,
                "The target size of Markdown passages cannot be above their maximum size.",
            ),
            (
                search.threshold_mode == "absolute" and search.similarity_threshold is None,
                "A fixed value needs a number: set “Required similarity” first.",
            ),
            (
                ranking.reranking and ranking.rerank_top_n > search.top_k,
                "The second sorting cannot keep more passages than are wanted: keep fewer, or raise “Passages wanted”.",
            ),
            (
                search.korean_analyser == "kiwi" and importlib.util.find_spec("kiwipiepy") is None,
                "The package kiwipiepy is not installed. Install it, then choose it: "
                ".venv/bin/pip install kiwipiepy==0.24.1",
            ),
            (
                search.search_type == "hybrid"
                and search.fusion != "rrf"
                and search.vector_weight + search.keyword_weight == 0,
                "The weights of meaning and of keywords cannot both be 0.",
            ),
            (
                ranking.recency_boost and not ranking.recency_steps,
                "“Recent documents first” needs weights: set “Weight of documents by age” first.",
            ),
            (
                ranking.multi_signal
                and not (ranking.category_boosts or ranking.year_boosts or ranking.quality_maximum_words),
                "Ordering by category, year and length needs weights: set one of them first.",
            ),
            (
                ranking.quality_minimum_words > ranking.quality_maximum_words,
                "The shortest passage of the best length cannot be longer than the longest.",
            ),
            (
                candidates > MAXIMUM_CANDIDATES,
                f"These are {candidates:,} candidates for one question; at most {MAXIMUM_CANDIDATES:,} are compared.",
            ),
        )
        return next((sentence for is_so, sentence in rules if is_so), "")


@dataclass(frozen=True, kw_only=True)
class Setting(FormField):
    """The description of a setting, for the settings page and for errors."""

    #: The setting's part of the profile.
    part: str
    group: str
    default: Any
    unit: str
    source: str
    locked: str
    new_documents_only: bool
    per_call: bool
    only_with: tuple[str, tuple[Any, ...]] | None

    def has_effect(self, profile: Profile) -> bool:
        """Whether this setting has an effect in a profile. With `only_with`, this depends on a different setting."""
        if self.only_with is None:
            return True
        other, values = self.only_with
        return profile.value(other) in values


def _settings() -> Iterator[Setting]:
    for part_name, part_field in Profile.model_fields.items():
        part = part_field.annotation
        if not (isinstance(part, type) and issubclass(part, Part)):
            continue
        for name, field in part.model_fields.items():
            facts = cast(dict[str, Any], field.json_schema_extra)
            yield Setting(
                **vars(field_of(name, field)),
                part=part_name,
                group=part.group,
                default=field.default,
                unit=facts["unit"],
                source=facts["source"],
                locked=facts["locked"],
                new_documents_only=facts["new_documents_only"] or part.new_documents_only,
                per_call=facts["per_call"],
                only_with=facts["only_with"],
            )


#: Every setting by name. Names are unique among all parts.
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _settings()}


@dataclass(frozen=True, init=False)
class Options:
    """The options for a single call: filters, and values for settings declared `per_call`.

    `None` keeps the collection's value.

    Raises:
        InvalidInput: a setting is unknown or not `per_call`, or its value is invalid.
    """

    #: Conditions from the caller, besides the question's.
    filters: SearchFilters | None
    settings: Mapping[str, Any]

    def __init__(self, *, filters: SearchFilters | None = None, **settings: Any) -> None:
        values = {name: value for name, value in settings.items() if value is not None}
        for name in settings:
            if name not in PER_CALL:
                raise InvalidInput(f"A call cannot change {name!r}; it can change {', '.join(PER_CALL)}.")
        object.__setattr__(self, "filters", filters)
        object.__setattr__(self, "settings", values)

    def changed(self, **settings: Any) -> Options:
        """Return a copy with other values; `None` removes a value."""
        return Options(filters=self.filters, **{**self.settings, **settings})

    def applied_to(self, profile: Profile) -> Profile:
        """Return the profile with these options. A similarity threshold in the options replaces the calibrated
        threshold.
        """
        if not self.settings:
            return profile
        mode = {"threshold_mode": "absolute"} if "similarity_threshold" in self.settings else {}
        return profile.changed(**self.settings, **mode)


PER_CALL = tuple(name for name, setting in SETTINGS.items() if setting.per_call)
#: Settings that switch off the steps without a source document.
WITHOUT_OUR_STEPS: Mapping[str, Any] = {
    "index_titles": False,
    "correct_spelling": False,
    "split_questions": False,
    "refine_order": False,
    "collapse_near_repeats": False,
    "only_evidence": False,
    "stitch_neighbours": False,
    "own_replies": False,
    "rewrite_follow_ups": False,
    "withdraw_unsupported": False,
}
