"""Words that carry no topic, by language: function words and the phrases questions are wrapped in.

They are compared before stemming, lower case, with their accents. A missing word costs little (its idf is small); a
topic word among them could never be found, so when in doubt a word is left out. The lists are in `stopwords.txt`.
"""

from __future__ import annotations

import re
from pathlib import Path


def _read_lists(path: Path) -> dict[str, tuple[str, ...]]:
    text = re.sub(r"^#.*$", "", path.read_text("utf-8"), flags=re.MULTILINE)
    parts = re.split(r"^\[([a-z-]+)\]$", text, flags=re.MULTILINE)
    return {name: tuple(words.split()) for name, words in zip(parts[1::2], parts[2::2], strict=True)}


_LISTS = _read_lists(Path(__file__).with_suffix(".txt"))

#: By ISO 639-1 code.
STOPWORDS = {name: frozenset(words) for name, words in _LISTS.items() if "-" not in name}
#: Particles and endings at the end of a Korean word, longest first.
KOREAN_ENDINGS = tuple(sorted(_LISTS["ko-endings"], key=len, reverse=True))
#: What splits a run of Chinese or Japanese, which have no spaces, before its bigrams are made; longest first.
BREAKS = {language: tuple(sorted(_LISTS[f"{language}-breaks"], key=len, reverse=True)) for language in ("zh", "ja")}
