"""How many tokens a text has, without the tokenizer's files, which would have to be downloaded.

For estimates and budgets only: what is billed is what the provider counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
# Words that every few English words bring along. Tokenizers know English words best: a token holds more of it.
ENGLISH_WORDS = frozenset({"the", "of", "and", "to", "is", "for", "with"})
PATTERNS: Mapping[str, re.Pattern[str]] = {
    "accented": re.compile(r"[\u00c0-\u024f]"),
    "arabic": re.compile(r"[\u0600-\u06ff]"),
    "hangul": re.compile(r"[\uac00-\ud7a3]"),
    "han": re.compile(r"[\u4e00-\u9fff]"),
    "kana": re.compile(r"[\u3040-\u30ff]"),
    "other": re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f\u0600-\u06ff\uac00-\ud7a3\u4e00-\u9fff\u3040-\u30ff]"),
    "digits": re.compile(r"\d{1,3}"),
    "punctuation": re.compile(r"[^\w\s]+|_+"),
    "lines": re.compile(r"\s*\n"),
    # Keys, hashes, encoded data: no words to know.
    "unbroken": re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40,}"),
}

# Tokens for one of each, fitted by least squares to tiktoken's own counts of six English HR handbooks, XQuAD (ar, de,
# en, es, tr, zh), JaQuAD (ja), SQuAD-it and a little Korean and Dutch. Error of a whole corpus: English handbooks at
# most 4 %, other languages at most 10 %; of single paragraphs, 95 in 100 are within 20 %, of Dutch and Korean ones
# within 25 %. "other" (Cyrillic, Greek, Thai and so on) and "unbroken" are set by hand, on the high side.
O200K = {
    "words": 0.738, "letters": 0.101, "accented": 0.694, "arabic": 0.341, "hangul": 0.740, "han": 0.805, "kana": 0.803,
    "other": 0.4, "digits": 1.738, "punctuation": 0.972, "lines": 1.300,
}  # fmt: skip
O200K_ENGLISH = O200K | {
    "words": 0.909, "letters": 0.036, "accented": 0.762, "digits": 1.536, "punctuation": 0.573, "lines": 0.919,
}  # fmt: skip
CL100K = {
    "words": 0.706, "letters": 0.158, "accented": 1.209, "arabic": 0.814, "hangul": 1.295, "han": 1.278, "kana": 1.058,
    "other": 0.8, "digits": 1.887, "punctuation": 0.931, "lines": 0.750,
}  # fmt: skip
CL100K_ENGLISH = CL100K | {
    "words": 0.811, "letters": 0.064, "accented": 1.620, "digits": 1.573, "punctuation": 0.427, "lines": 0.624,
}  # fmt: skip
#: Patterns that find nothing where no letter is beyond ASCII, as in most English text.
BEYOND_ASCII = frozenset({"accented", "arabic", "hangul", "han", "kana", "other"})
LETTER_BEYOND_ASCII = re.compile(r"[^\W\d_\x00-\x7f]")
UNBROKEN_TOKENS_PER_CHARACTER = 0.7
#: Models that count as the older tokenizer, cl100k_base, does; all others as o200k_base.
CL100K_MODEL = re.compile(r"^(text-embedding-|gpt-4-|gpt-4$|gpt-3\.5)")


def estimate_tokens(text: str, *, model: str = "") -> int:
    """About how many tokens the text has: 0 for an empty one, at least 1 for any other.

    English has some 5 characters to a token, Korean 1.4 (1.0 for OpenAI's embedding models, which use an older
    tokenizer: name the `model` where it matters). Errors: see the figures above.
    """
    if not text:
        return 0
    words = LATIN_WORD.findall(text)
    is_english = bool(words) and sum(map(ENGLISH_WORDS.__contains__, text.lower().split())) * 20 >= len(words)
    if CL100K_MODEL.match(model):
        weights = CL100K_ENGLISH if is_english else CL100K
    else:
        weights = O200K_ENGLISH if is_english else O200K
    tokens = len(words) * weights["words"] + len("".join(words)) * weights["letters"]
    has_other_letters = LETTER_BEYOND_ASCII.search(text) is not None
    has_long_words = any(len(word) >= 40 for word in text.split())
    for name, pattern in PATTERNS.items():
        if (name in BEYOND_ASCII and not has_other_letters) or (name == "unbroken" and not has_long_words):
            continue
        found = pattern.findall(text)
        if name == "unbroken":
            tokens += sum(map(len, found)) * UNBROKEN_TOKENS_PER_CHARACTER
        else:
            tokens += len(found) * weights[name]
    return max(1, round(tokens))
