"""Which language a question is in: by its script and function words, and by a model of letters where those do not tell.

Questions are short, so both look at a dozen languages and Turkish only; a wrong guess costs a translation.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from lingua import Language, LanguageDetector, LanguageDetectorBuilder

from rag.retrieval.stopwords import STOPWORDS

#: The languages told apart among those in Latin letters.
LATIN = ("en", "nl", "de", "fr", "es", "it", "pt", "pl", "tr")
DETECTED = (*LATIN, "ko", "ja", "zh", "ar")

_SCRIPTS = (
    # In this order: kana decides before Han, because Japanese has both.
    ("ko", re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")),
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
_LATIN_LETTERS = re.compile("[a-zà-öø-ÿ\u0100-\u024f]")
_WORDS = re.compile(r"[^\W\d_]+")
#: Letters and endings that one of the languages has and the others have not or hardly.
_MARKS = {
    "de": re.compile(r"ß|\w(?:ung|ungen|keit|heit|isch|ische|ischen|lich|lichen)\b|sch\w|ä|ö(?!l)"),
    "fr": re.compile(r"[çœêèùû]|\b[ldjnscm]['’]|\bqu['’]|\w(?:eux|euse|ement|ique)\b"),
    "es": re.compile(r"[¿¡ñ]|\w(?:ción|ciones|dad|ados|idos)\b|[áíóú]"),
    "pt": re.compile(r"[ãõ]|\w(?:ção|ções|dade|agem|inho)\b|lh[aeo]|nh[aeo]"),
    "it": re.compile(
        r"\b(?:dell|nell|all|dall|sull|un|cos|qual|l|c|d)['’]|\w(?:zione|zioni|ità|mente|ggio|tti|tto|lli|gli)\b|[òìù]"
    ),
    "nl": re.compile(r"ij\w|\w(?:heid|lijk|lijke|tie|ties|eren|isch|atie)\b|aa|uu|\w(?:oo|ee)[^d]"),
    "pl": re.compile(r"[łąęśćńżź]|\w(?:owie|ego|ych|ość)\b|sz\w|cz\w"),
    "tr": re.compile(r"[ığş]|\w(?:lar|ler|dir|dır|mış|miş|ları|leri|nın|nin|ının)\b"),
    "en": re.compile(r"\w(?:ing|ed|ly|tion|tions|ship|ness)\b|\bth\w|wh\w|['’]s\b"),
}  # fmt: skip
#: What a mark counts against a function word, which counts one shared among the languages that have it.
_MARK_WEIGHT = 0.4
#: How far the best language has to be ahead before it is believed.
_LEAD = 0.45


def detect_language_heuristic(text: str) -> str:
    """The language of a text as an ISO 639-1 code by script and function words alone; "" when these do not tell."""
    language, _ = _guess(text)
    return language


def detect_language(text: str) -> str:
    """The language of a text as an ISO 639-1 code: the heuristic where it is sure, else a statistical detector."""
    language, lead = _guess(text)
    if lead >= _LEAD or not _LATIN_LETTERS.search(text.lower()):
        return language
    found = _detector().detect_language_of(text)
    return found.iso_code_639_1.name.lower() if found is not None else language


def _guess(text: str) -> tuple[str, float]:
    """The likeliest language and how far it is ahead of the next."""
    text = unicodedata.normalize("NFC", text).lower()
    letters = sum(map(str.isalpha, text))
    for language, letter in _SCRIPTS:
        # Names stay in their own letters: "Windows 업데이트는?" is Korean, "the word 회의 in English" is not.
        found = len(letter.findall(text))
        if found >= max(1, (0.15 if language in ("ko", "ja", "zh") else 0.4) * letters):
            return language, 1.0
    scores = dict.fromkeys(LATIN, 0.0)
    for word in _WORDS.findall(text):
        owners = _owners(word)
        for language in owners:
            scores[language] += 1.0 / len(owners)
    for language, mark in _MARKS.items():
        scores[language] += _MARK_WEIGHT * len(mark.findall(text))
    ranked = sorted(scores, key=lambda language: -scores[language])
    best, second = ranked[0], ranked[1]
    if scores[best] == scores[second]:
        return "", 0.0
    return best, scores[best] - scores[second]


@lru_cache(maxsize=20_000)
def _owners(word: str) -> tuple[str, ...]:
    return tuple(language for language in LATIN if word in STOPWORDS[language])


@lru_cache(maxsize=1)
def _detector() -> LanguageDetector:
    """Loaded when first needed: 0.1 s and 20 MB, a tenth of the full models' at the same share right on questions."""
    codes = {code.upper() for code in DETECTED}
    languages = [language for language in Language.all() if language.iso_code_639_1.name in codes]
    return LanguageDetectorBuilder.from_languages(*languages).with_low_accuracy_mode().build()
