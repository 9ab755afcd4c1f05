"""Detect the language of a text by script and function words, or by a statistical model of letters.

Only thirteen languages are considered, because questions are short and a wrong guess costs a translation. If a text has
only a word or two, or is misspelt, the caller's likely languages decide.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lingua import Language, LanguageDetector, LanguageDetectorBuilder

from rag.text.analysers import STOPWORDS

#: Detected languages in Latin letters.
LATIN = ("en", "nl", "de", "fr", "es", "it", "pt", "pl", "tr")
DETECTED = (*LATIN, "ko", "ja", "zh", "ar")

_SCRIPTS = (
    # Kana decides before Han, because Japanese has both.
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
#: Letters and endings typical for a single language.
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
#: A mark's weight; a function word weighs 1, shared by all languages with this word.
_MARK_WEIGHT = 0.4
#: Longer words are hardly ever function words.
_LONGEST_EXCHANGED = 8
_A_TO_Z = frozenset("abcdefghijklmnopqrstuvwxyz")
#: The weight of a function word with two letters exchanged ("teh").
_EXCHANGED_WEIGHT = 0.5
#: The lead over the next language needed to be believed, and the lead over a likely language which needs no detector.
_LEAD, _CLEAR_LEAD = 0.45, 1.25
#: Against a likely language, the detector is believed from this probability and number of letters on.
_PROBABILITY, _LEAST_LETTERS = 0.9, 12
#: The results for texts up to this length are cached.
_REMEMBERED_CHARACTERS = 1000
_LONGEST_CHARACTERS = 200_000
#: The detector takes quadratic time in a word's length.
_DETECTED_CHARACTERS = 20_000
#: Up to this many Chinese characters without kana may be Japanese.
_HAN_LETTERS = 6
#: Characters simplified in Chinese, but not in Japanese.
_SIMPLIFIED = re.compile("[么谁吗们这为时间规请说现门员关税医险单资产]")
#: Up to this many words in Latin letters may be names or a greeting in a language with other letters.
_FOREIGN_WORDS = 2
_OWN_SCRIPT = frozenset({"ko", "ja", "zh", "ar"})
#: Letters of each language beyond a to z; a text with other letters is in a different language.
_ALPHABETS = {
    "en": "é", "nl": "áéèëêïíóöúü", "de": "äöüßé", "fr": "àâæçéèêëîïôœùûüÿ", "es": "áéíñóúü", "it": "àèéìíîòóùú",
    "pt": "áâãàçéêíóôõúü", "pl": "ąćęłńóśźż", "tr": "çğıöşüâîû",
}  # fmt: skip


@dataclass(frozen=True)
class _Evidence:
    language: str
    #: The distance to the next language's score.
    lead: float
    letter_count: int
    #: Scores for all languages in Latin letters; empty if the script decides.
    scores: Mapping[str, float]

    def lead_over(self, language: str) -> float:
        return self.scores.get(self.language, 0.0) - self.scores.get(language, 0.0)


def detect_language_heuristic(text: str) -> str:
    """Detect a text's language (ISO 639-1) by script and function words alone; "" if they are inconclusive."""
    return _guess(text).language


def detect_language(text: str, likely: Sequence[str] = ()) -> str:
    """Detect a text's language (ISO 639-1) by script and function words, else by a statistical detector.

    If both are inconclusive, the result is the first of the `likely` languages whose alphabet fits the text. Only the
    first 200,000 characters are read.
    """
    text = unicodedata.normalize("NFC", text[:_LONGEST_CHARACTERS]).lower()
    evidence = _evidence(text)
    is_open = evidence.lead < _LEAD or bool(likely)
    return _choose(text, evidence, _probabilities(text) if is_open and _has_words(evidence) else {}, likely)


def _evidence(text: str) -> _Evidence:
    return _cached_guess(text) if len(text) <= _REMEMBERED_CHARACTERS else _guess(text)


def _has_words(evidence: _Evidence) -> bool:
    return bool(evidence.scores and evidence.letter_count)


def _choose(text: str, evidence: _Evidence, probabilities: Mapping[str, float], likely: Sequence[str]) -> str:
    if evidence.lead < _LEAD and probabilities:
        evidence = replace(evidence, language=max(probabilities, key=lambda code: probabilities[code]), lead=0.0)
    expected = next((code for code in map(_code, likely) if _can_be(text, code, evidence)), "")
    return evidence.language if not expected or _outweighs(evidence, text, expected, probabilities) else expected


def is_evident(text: str) -> bool:
    """Whether a text's language is clear, and does not depend on the languages assumed to be likely."""
    text = unicodedata.normalize("NFC", text).lower()
    evidence = _evidence(text)
    probabilities = _probabilities(text) if _has_words(evidence) else {}
    return len({_choose(text, evidence, probabilities, [code]) for code in DETECTED}) == 1


def _outweighs(evidence: _Evidence, text: str, expected: str, probabilities: Mapping[str, float]) -> bool:
    if not evidence.language:
        return False
    if not evidence.scores:
        return evidence.language != "zh" or evidence.letter_count > _HAN_LETTERS or bool(_SIMPLIFIED.search(text))
    ahead = evidence.lead_over(expected)
    if evidence.lead >= _LEAD:
        # A single function word may be a misspelt word in the expected language.
        return ahead >= _CLEAR_LEAD or probabilities.get(evidence.language, 0.0) >= probabilities.get(expected, 0.0)
    return (
        ahead >= 0
        and evidence.letter_count >= _LEAST_LETTERS
        and probabilities.get(evidence.language, 0.0) >= _PROBABILITY
    )


def _can_be(text: str, language: str, evidence: _Evidence) -> bool:
    if language not in DETECTED:
        return False
    if evidence.language and not evidence.scores:
        return language == evidence.language or {language, evidence.language} == {"ja", "zh"}
    if language in _OWN_SCRIPT:
        return len(_WORDS.findall(text)) <= _FOREIGN_WORDS
    return not set(_LATIN_LETTERS.findall(text)) - _A_TO_Z - set(_ALPHABETS[language])


def _code(language: str) -> str:
    return re.split("[-_]", language.strip().lower(), maxsplit=1)[0]


def _probabilities(text: str) -> Mapping[str, float]:
    """Return the statistical detector's probability for each language, or {} without evidence."""
    # Each answer asks again about the beginnings of its cited passages.
    return _cached_probabilities(text) if len(text) <= _REMEMBERED_CHARACTERS else _detect(text)


@lru_cache(maxsize=2000)
def _cached_probabilities(text: str) -> Mapping[str, float]:
    return _detect(text)


def _detect(text: str) -> Mapping[str, float]:
    values = _detector().compute_language_confidence_values(text[:_DETECTED_CHARACTERS])
    probabilities = {value.language.iso_code_639_1.name.lower(): value.value for value in values}
    return probabilities if any(probabilities.values()) else {}


@lru_cache(maxsize=2000)
def _cached_guess(text: str) -> _Evidence:
    return _guess(text)


def _guess(text: str) -> _Evidence:
    text = unicodedata.normalize("NFC", text).lower()
    letter_count = sum(map(str.isalpha, text))
    for language, pattern in _SCRIPTS:
        # Names keep their letters: "Windows 업데이트는?" is Korean, "the word 회의 in English" is not.
        count = len(pattern.findall(text))
        if count >= max(1, (0.15 if language in ("ko", "ja", "zh") else 0.4) * letter_count):
            return _Evidence(language, 1.0, count, {})
    scores = dict.fromkeys(LATIN, 0.0)
    for word in _WORDS.findall(text):
        owners, weight = _owners(word), 1.0
        if not owners:
            owners, weight = _owners_of_misspelt(word), _EXCHANGED_WEIGHT
        for language in owners:
            scores[language] += weight / len(owners)
    for language, mark in _MARKS.items():
        scores[language] += _MARK_WEIGHT * len(mark.findall(text))
    ranked = sorted(scores, key=lambda language: -scores[language])
    best, second = ranked[0], ranked[1]
    if scores[best] == scores[second]:
        return _Evidence("", 0.0, letter_count, scores)
    return _Evidence(best, scores[best] - scores[second], letter_count, scores)


@lru_cache(maxsize=20_000)
def _owners(word: str) -> tuple[str, ...]:
    return tuple(language for language in LATIN if word in STOPWORDS[language])


@lru_cache(maxsize=20_000)
def _owners_of_misspelt(word: str) -> tuple[str, ...]:
    """Return the languages which have a function word with two letters swapped, like "teh" for "the"."""
    if not 3 <= len(word) <= _LONGEST_EXCHANGED:
        return ()
    exchanged = (word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1))
    return tuple(sorted({language for spelt in exchanged if spelt != word for language in _owners(spelt)}))


@lru_cache(maxsize=1)
def _detector() -> LanguageDetector:
    codes = {code.upper() for code in DETECTED}
    languages = [language for language in Language.all() if language.iso_code_639_1.name in codes]
    return LanguageDetectorBuilder.from_languages(*languages).with_low_accuracy_mode().build()
