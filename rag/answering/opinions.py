"""Drafting opinions (source 002, 6 and 8): what is searched for, the block of references, and the whole prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.answering.prompts import opinion_rules
from rag.profile import Profile
from rag.profiles import PROFILES, REFERENCE_PROFILES
from rag.providers import defused
from rag.retrieval.context_builder import Passage, filled
from rag.types import SearchResult

#: The form of a reference where a collection's profile has none.
REFERENCE_FORMAT = PROFILES[REFERENCE_PROFILES[0]].answer.context_format
HEADING = "【참고자료】"
PART_HEADING = re.compile(r"【\s*(사건\s*자료|작성\s*예시|참고\s*자료|요청)\s*】")
#: More of an analysis makes a search less sharp; its beginning names the case.
ANALYSIS_CHARACTERS = 300


def reference_query(profile: Profile, opinion_type: str, *, summary: str = "", issues: Sequence[str] = ()) -> str:
    """Return what is searched for: the profile's words for this kind of opinion, then the summary, else the issues.

    A kind that the profile does not know is searched for by its own name.
    """
    kind = " ".join(opinion_type.split())
    known = dict(profile.search.opinion_queries).get(kind, kind)
    analysis = " ".join((summary.strip() or " ".join(issues)).split())[:ANALYSIS_CHARACTERS]
    return f"{known} {analysis}".strip()


def reference_block(profile: Profile, results: Sequence[SearchResult]) -> str:
    """Return the passages as one block, each under its topic and offence; empty where nothing was found."""
    template = profile.answer.context_format or REFERENCE_FORMAT
    passages = (Passage(number=number, result=r, text=r.content) for number, r in enumerate(results, 1))
    parts = "".join(_without_headings(filled(template, passage)) for passage in passages)
    return f"{HEADING}\n\n{parts}" if parts else ""


def _without_headings(passage: str) -> str:
    """Return a passage with none of the headings that parts of the prompt have."""
    return PART_HEADING.sub(r"〔\1〕", defused(passage))


def build_full_prompt(
    opinion_type: str,
    data_block: str,
    user_prompt: str,
    learning_examples: str | Sequence[str] = "",
    reference_rag_block: str = "",
) -> str:
    """Return the whole prompt of an opinion: rules, the case, examples to learn the style from, references, what is
    asked.

    Parts that are empty are left out with their headings. `reference_rag_block` stands as `reference_block` made it.
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
