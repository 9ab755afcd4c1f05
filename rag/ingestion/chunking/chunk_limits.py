"""The limits by which documents of each kind are cut: those of the sources, or what a collection has set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from rag.ingestion.chunking.document_types import Kind
from rag.ingestion.chunking.markdown import USUAL as USUAL_WORDS
from rag.ingestion.chunking.markdown import WordLimits
from rag.ingestion.chunking.narrative import USUAL as USUAL_STORY
from rag.ingestion.chunking.narrative import StoryLimits
from rag.ingestion.chunking.resume import FEWEST, MOST
from rag.ingestion.chunking.splitter import SEPARATORS
from rag.profile import Profile
from rag.types import ChunkingMethod

#: How `auto` cuts each kind of document, as source 001 says.
METHODS_BY_KIND: Mapping[Kind, ChunkingMethod] = {
    "resume": "professional",
    "linkedin": "professional",
    "journey": "narrative",
    "github": "markdown",
    "generic": "generic",
}


@dataclass(frozen=True, kw_only=True)
class ChunkLimits:
    """Tokens, words and separators of the chunkers that do not go by characters alone."""

    separators: tuple[str, ...] = SEPARATORS
    fewest_tokens: int = FEWEST
    most_tokens: int = MOST
    story: StoryLimits = USUAL_STORY
    words: WordLimits = USUAL_WORDS
    #: Characters of a chunk of no known kind, where that is not the size asked for; 0: it is.
    generic_size: int = 0
    methods_by_kind: Mapping[Kind, ChunkingMethod] = field(default_factory=lambda: METHODS_BY_KIND)


def chunk_limits_for(profile: Profile) -> ChunkLimits:
    """A profile's own limits; where it has none (0 or empty), the sources'."""
    usual = ChunkLimits()
    story, words = usual.story, usual.words
    hard = profile.narrative_hard_tokens or story.hard
    soft = min(profile.narrative_soft_tokens or story.soft, hard)
    most_words = profile.markdown_maximum_words or words.maximum
    most_tokens = profile.professional_maximum_tokens or usual.most_tokens
    by_kind = {cast(Kind, kind): cast(ChunkingMethod, method) for kind, method in profile.chunking_by_type}
    return ChunkLimits(
        # The empty separator of source 003, a cut between any two characters, is what the chunker ends with anyway.
        separators=tuple(separator for separator in profile.separators if separator) or usual.separators,
        fewest_tokens=min(profile.professional_minimum_tokens or usual.fewest_tokens, most_tokens),
        most_tokens=most_tokens,
        story=StoryLimits(
            target=min(profile.narrative_target_tokens or story.target, soft),
            soft=soft,
            hard=hard,
            overlap_words=profile.narrative_overlap_words or story.overlap_words,
            overlap_tokens=min(profile.narrative_overlap_tokens or story.overlap_tokens, hard // 2),
        ),
        words=WordLimits(
            target=min(profile.markdown_target_words or words.target, most_words),
            maximum=most_words,
            overlap=min(profile.markdown_overlap_words or words.overlap, most_words // 4),
        ),
        generic_size=profile.generic_chunk_size,
        methods_by_kind={**METHODS_BY_KIND, **by_kind},
    )
