"""The built-in embedder: works without a key, a download or a network, and costs nothing.

It compares words and parts of words, in any script. It knows nothing of synonyms, hence its name: lexical.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rag.errors import InvalidInput
from rag.types import Embeddings, FloatMatrix

DIMENSIONS = 1536
# Weights next to 1 for a word (of a pair of characters in scripts without spaces), chosen on XQuAD and JaQuAD:
# paragraph found among the first 5: en .97, de .97, es .97, tr .93, ar .93, it .92, zh .96, ja .85.
NGRAM_WEIGHT = 0.5
CHARACTER_WEIGHT = 0.3

# Scripts written without spaces (kana, Han, Thai): there pairs of characters carry the meaning.
_DENSE = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f\U00020000-\U0003134f"
DENSE = re.compile(f"[{_DENSE}]+")
WORD = re.compile(rf"[{_DENSE}]+|[^\W{_DENSE}]+")
# Particles stick to Korean words, so that short pieces of them are compared.
HANGUL = re.compile(r"[\uac00-\ud7a3]")
# Accents of Latin, Greek and Cyrillic, vowel signs of Arabic and Hebrew: typed or left out at will.
MARKS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670\u0640]")


def _normalise(text: str) -> str:
    """Lower case, one form per character, no accents."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", MARKS.sub("", unicodedata.normalize("NFKD", text.casefold())))


# Function words that say nothing of the subject, all languages in one set: a word that is one in any of them rarely
# carries a question in another. A part of what the vectors mean: with another list it would be another embedder.
STOPWORDS = frozenset(_normalise(Path(__file__).with_name("stopwords.txt").read_text("utf-8")).split())


class LexicalEmbedder:
    """Hashed words and character n-grams: pure, deterministic across processes and machines, some 3,000 paragraphs/s.

    `default_threshold` is measured: the cosine of the paragraph that answers a question is above 0.12 for 95 % of
    English, German, Spanish and Italian questions, and above 0.08 for Turkish, Arabic, Chinese and Japanese ones.
    """

    id = f"builtin/lexical@{DIMENSIONS}"
    provider = "builtin"
    model = "lexical"
    dimensions = DIMENSIONS
    default_threshold = 0.12
    is_paid = False

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed the texts in their order: (texts, 1536) float32, rows of length 1. The purpose makes no difference.

        Raises `InvalidInput` for a text of only spaces: it has no direction.
        """
        vectors: FloatMatrix = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = _embed(text)
        return Embeddings(vectors=vectors)


def _embed(text: str) -> FloatMatrix:
    if not text.strip():
        raise InvalidInput("A text of only spaces cannot be embedded.")
    words = WORD.findall(_normalise(text))
    counts = Counter(word for word in words if word not in STOPWORDS)
    if not counts:  # "to be or not to be", "***": better compared as they are than not at all
        counts = Counter(words or [text.strip()])
    features = [_features(word) for word in counts]
    repeats = [1.0 + math.log(count) for count in counts.values()]
    positions = np.concatenate([found[0] for found in features])
    weights = np.concatenate([found[1] for found in features])
    weights = weights * np.repeat(repeats, [len(found[0]) for found in features])
    vector = np.bincount(positions, weights, minlength=DIMENSIONS)
    length = float(np.sqrt(vector @ vector))
    if length == 0.0:  # signs may cancel out, if only in theory
        vector[positions[0]], length = 1.0, 1.0
    return (vector / length).astype(np.float32)


@lru_cache(maxsize=50_000)
def _features(word: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Positions and signed weights of a word and its parts, so that a long word does not outweigh the others."""
    if DENSE.match(word):
        parts = [word[i : i + 2] for i in range(len(word) - 1)]
        weighted = [*((pair, 1.0) for pair in parts), *((character, CHARACTER_WEIGHT) for character in word)]
    else:
        marked, size = f"<{word}>", 2 if HANGUL.search(word) else 4
        parts = [marked[i : i + size] for i in range(len(marked) - size + 1)]
        weight = NGRAM_WEIGHT if len(parts) <= 4 else NGRAM_WEIGHT * 2 / math.sqrt(len(parts))
        weighted = [(word, 1.0), *((part, weight) for part in parts)]
    hashes = np.array([zlib.crc32(part.encode("utf-8", "surrogatepass")) for part, _ in weighted], dtype=np.int64)
    signs = np.where(hashes >> 31 & 1, 1.0, -1.0)  # collisions cancel out on average instead of adding up
    return hashes % DIMENSIONS, np.array([weight for _, weight in weighted]) * signs
