"""Split text into index terms by script and language. Chunks and questions are split in the same way.

The script decides how words are found: Chinese and Japanese have no spaces, Korean attaches particles to nouns. For
words in Latin, Cyrillic or Greek letters, the language decides stemmer and stopwords. Identifiers, numbers and dates
give a term for the whole and a term for each part: "401k" finds "401(k)", and "90일" finds "90".
"""

from __future__ import annotations

import importlib.util
import re
import threading
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import Stemmer

from rag.errors import SettingsError

# Stopwords: words that carry no topic, by language, and the phrases questions are wrapped in. They are compared before
# stemming, lower case, with their accents. A missing word costs little (its idf is small); a topic word among them
# could never be found, so when in doubt a word is left out.


def _read_lists(path: Path) -> dict[str, tuple[str, ...]]:
    text = re.sub(r"^#.*$", "", path.read_text("utf-8"), flags=re.MULTILINE)
    parts = re.split(r"^\[([a-z-]+)\]$", text, flags=re.MULTILINE)
    return {name: tuple(words.split()) for name, words in zip(parts[1::2], parts[2::2], strict=True)}


_LISTS = _read_lists(Path(__file__).with_name("stopwords.txt"))

#: By ISO 639-1 code.
STOPWORDS = {name: frozenset(words) for name, words in _LISTS.items() if "-" not in name}
#: Particles and endings of Korean words, longest first.
KOREAN_ENDINGS = tuple(sorted(_LISTS["ko-endings"], key=len, reverse=True))
#: Words at which a run of Chinese or Japanese, written without spaces, is split before its bigrams are made; longest
#: first.
BREAKS = {language: tuple(sorted(_LISTS[f"{language}-breaks"], key=len, reverse=True)) for language in ("zh", "ja")}


#: Snowball algorithms by ISO 639-1 code.
STEMMERS = {
    "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "fi": "finnish", "fr": "french", "hu": "hungarian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "nb": "norwegian", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
#: Latin words in texts in these languages are treated as English, which is mostly right.
OWN_SCRIPT = ("ar", "ja", "ko", "zh")
#: Korean words split by kiwipiepy instead of by endings and syllable pairs.
KIWI = "+kiwi"
#: Words as source 003 defines them: every run of at least two letters, digits and underscores, unchanged.
PLAIN = "+plain"
#: Every analyser there is; "" leaves words unstemmed and is used for languages not listed.
LANGUAGES = (*STEMMERS, *OWN_SCRIPT, "ko" + KIWI, "")

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(
    rf"[{_UNSPACED}]+"
    # A number with its surroundings: 401(k), § 4.2, FY25-26, 2026-01-15, 90일, 1,000.50, B2B. The part before it is
    # short and may not follow another sign, so a row of signs is not scanned again from each position.
    rf"|(?:(?<!§)§{{1,3}}\s{{0,20}})?[^\W_{_UNSPACED}]*\d[^\W_{_UNSPACED}]*"
    rf"(?:[.,:/\-–][^\W_{_UNSPACED}]*\d[^\W_{_UNSPACED}]*|\([^\W_]{{1,3}}\))*"
    # A word, or words joined by hyphens.
    rf"|[^\W\d_{_UNSPACED}]+(?:-[^\W\d_{_UNSPACED}]+)*"
)
_PLAIN_BREAK = re.compile(r"[^\w\s가-힣]")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
_DIGIT = re.compile(r"\d")
_PARTS = re.compile(r"\d+|[^\W\d_]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
_LATIN_START = re.compile("[a-z\u00c0-\u024f]+")
_ARABIC = re.compile("[\u0600-\u06ff]")
_BREAKS = {language: re.compile("|".join(map(re.escape, words))) for language, words in BREAKS.items()}
_UNFOLDABLE = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})
_DOUBLE_VOWEL = re.compile(r"([aeou])\1")
_COMBINING_MARKS = re.compile("[\u0300-\u036f]")
_ARABIC_MARKS = re.compile("[\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640]")
_ARABIC_LETTERS = str.maketrans("أإآٱىةؤئگیک", "اااايهويكيك")
_ARABIC_PREFIXES = ("وال", "بال", "كال", "فال", "ولل", "ال", "لل")
_ARABIC_SUFFIXES = ("هما", "كما", "ات", "ون", "ين", "ان", "ها", "هم", "هن", "كم", "نا", "يه", "ه", "ي")

_thread = threading.local()


#: Short and frequent Turkish nouns with their inflections: Snowball cuts "günü" to "g" and keeps "izni".
_TURKISH_ROOTS = {"izn": "izin", "hakk": "hak"}
_TURKISH = re.compile(
    r"(?!aynı|hakkında)(gün|izin|izn|ay|saat|hafta|hakk?|para|mola|kaza)"
    r"(?:l[ae]r)?(?:[ıiuü]m(?:[ıiuü]z)?|[ıiuü]n(?:[ıiuü]z)?|s?[ıiuü]|n[ıiuü]z|m)?"
    r"(?:n?[dt][ae]n?|y?[ıiuüae]|n?[ıiuü]n|n[ae]|n[ıiuü]|yl[ae])?(?:[dt][ıiuü]r)?(?:l[ıiuü])?"
)


def analyse(text: str, language: str) -> list[str]:
    """Split a text into index terms, in order, with repetitions.

    `language` is an ISO 639-1 code, with or without region. Words in an unknown language are not stemmed.
    """
    return [term for _, terms in words_with_terms(text, language) for term in terms]


def words_with_terms(text: str, language: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return a text's words in lower case, each with its index terms. Stopwords have no terms.

    In scripts without spaces, each pair of characters is both a word and a term.
    """
    language = analyser_for(language)
    if is_plain(language):
        return [(word, (word,)) for word in _PLAIN_BREAK.sub(" ", text).split() if len(word) > 1]
    words: list[tuple[str, tuple[str, ...]]] = []
    for word in _WORD.findall(_lower(text)):
        if is_unspaced(word):
            words += [(term, (term,)) for term in _bigrams(word, language)]
        else:
            words.append((word, _terms(word, language)))
    return words


def analyser_for(language: str) -> str:
    """Return the keyword index's code for a language, or "" if the language is not supported."""
    code = analyser_code(language)
    return code if code in LANGUAGES or is_plain(code) else ""


def is_plain(language: str) -> bool:
    """Whether a language code ends with the option for plain words. Plain words are not stemmed, and stopwords are
    kept.
    """
    return language.endswith(PLAIN)


def analyser_code(language: str) -> str:
    """Normalise a language code for the index: lower case, without region. An option after "+" is kept."""
    code, plus, option = language.lower().partition("+")
    return code.replace("_", "-").split("-")[0] + plus + option


def is_unspaced(word: str) -> bool:
    """Whether a word begins with a character from a script without spaces."""
    return word[0] >= "\u0e00" and _UNSPACED_START.match(word) is not None


@lru_cache(maxsize=100_000)
def _terms(word: str, language: str) -> tuple[str, ...]:
    if _DIGIT.search(word):
        return tuple(_identifier(word, language))
    if "-" not in word:
        return _word(word, language)
    parts = word.split("-")
    terms = [term for part in parts for term in _word(part, language)]
    # "co-pay" and "copay", "e-mail" and "email" are the same word to an asker.
    if len(parts) == 2 and min(map(len, parts)) <= 3:
        terms += _word("".join(parts), language)
    return tuple(terms)


def _word(word: str, language: str) -> tuple[str, ...]:
    if _HANGUL.search(word):
        return _korean(word, language)
    if _ARABIC.match(word):
        return _arabic(word)
    latin = "en" if language.removesuffix(KIWI) in OWN_SCRIPT else language
    if len(word) < 2 or word in STOPWORDS.get(latin, ()):
        return ()
    if not latin:
        return (fold(word),)
    if latin == "tr" and (inflected := _TURKISH.fullmatch(word)):
        return (fold(_TURKISH_ROOTS.get(inflected[1], inflected[1])),)
    stem = fold(_stemmer(STEMMERS[latin]).stemWord(word))
    # Snowball's Dutch lengthens the vowel in a plural: "dagen" becomes "daag", but "dag" stays "dag".
    return (_DOUBLE_VOWEL.sub(r"\1", stem) if latin == "nl" else stem,)


def _lower(text: str) -> str:
    """Return the text in lower case and in Unicode form NFKC.

    "İ" becomes "i" first. `str.lower` would add a combining dot, which would split the word.
    """
    return unicodedata.normalize("NFKC", text).replace("İ", "i").lower()


def fold(word: str) -> str:
    """Return a word without accents, because people often leave them out."""
    if word.isascii():
        return word
    return _COMBINING_MARKS.sub("", unicodedata.normalize("NFD", word)).translate(_UNFOLDABLE)


def _stemmer(algorithm: str) -> Stemmer.Stemmer:
    """Return this thread's stemmer for an algorithm. Stemmers hold a buffer and must not be shared between threads."""
    stemmers: dict[str, Stemmer.Stemmer] = _thread.__dict__.setdefault("stemmers", {})
    if algorithm not in stemmers:
        stemmers[algorithm] = Stemmer.Stemmer(algorithm)
    return stemmers[algorithm]


def _identifier(word: str, language: str) -> list[str]:
    word = _THOUSANDS.sub("", "".join(word.split()))
    identifier = re.sub(r"[()]", "", word).replace("–", "-")
    if _HANGUL.search(identifier):
        identifier = without_particle(identifier)
    # Computed here instead of for each part: a text with digits and dots is a single word with two thousand parts.
    is_korean = _HANGUL.search(identifier) is not None
    parts = _PARTS.findall(identifier)
    terms = [identifier.lstrip("§")]
    if identifier.startswith("§"):
        terms.append(identifier)
    if len(parts) > 1:
        for part in parts:
            if part.isdigit():
                if len(part) > 1 or is_korean:
                    terms.append(part)
            elif len(part) > 1:
                terms += _word(part, language)
    return terms


def _bigrams(run: str, language: str) -> list[str]:
    pieces = _BREAKS[language].split(run) if language in _BREAKS else [run]
    return [
        term
        for piece in pieces
        for term in ((piece,) if len(piece) == 1 else (piece[i : i + 2] for i in range(len(piece) - 1)))
        if term
    ]


def _korean(word: str, language: str) -> tuple[str, ...]:
    stem = without_particle(word)
    if word in STOPWORDS["ko"] or stem in STOPWORDS["ko"]:
        return ()
    latin = _LATIN_START.match(stem)
    if latin:  # "HR팀에게"
        return (stem, *_word(latin.group(), language))
    if language.endswith(KIWI):
        return morphemes(word) or (stem,)
    if len(stem) <= 2:
        return (stem,)
    return (stem, *(stem[i : i + 2] for i in range(len(stem) - 1)))


#: Looked up by the last character: most words in a long question have no such ending.
_ENDINGS_BY_LAST: dict[str, tuple[str, ...]] = {
    last: tuple(ending for ending in KOREAN_ENDINGS if ending[-1] == last) for last in {e[-1] for e in KOREAN_ENDINGS}
}


def without_particle(word: str) -> str:
    """Return a Korean word without particles and endings."""
    for josa in _ENDINGS_BY_LAST.get(word[-1:], ()):
        # At least two syllables stay, or one after a number: "회의" is a meeting, not "회" with a particle.
        if word.endswith(josa) and len(word) - len(josa) >= 2:
            return word[: -len(josa)]
    return word


def _arabic(word: str) -> tuple[str, ...]:
    if word in STOPWORDS["ar"]:
        return ()
    word = _ARABIC_MARKS.sub("", word).translate(_ARABIC_LETTERS)
    for prefix in _ARABIC_PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= 3:
            word = word[len(prefix) :]
            break
    for suffix in _ARABIC_SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    return (word,) if len(word) > 1 else ()


# Korean words split by kiwipiepy: an option, because its model (some 100 MB) takes 460 MB in each process. Compared
# with stripping particles and using syllable pairs, it finds no more in the first five results and 0.6 points more in
# the first.

#: Content words: nouns, verbs, adjectives, adverbs, roots, foreign words, numbers.
CONTENT = ("NNG", "NNP", "NR", "VV", "VA", "MAG", "XR", "SL", "SH", "SN")
_kiwi_lock = threading.Lock()


@lru_cache(maxsize=100_000)
def morphemes(word: str) -> tuple[str, ...]:
    """Return the content words in a Korean word, found by kiwipiepy. Empty for a purely grammatical word.

    Raises `SettingsError` if kiwipiepy is not installed.
    """
    with _kiwi_lock:
        tokens = _kiwi().tokenize(word)
    return tuple(token.form.lower() for token in tokens if token.tag.startswith(CONTENT))


@cache
def _kiwi() -> Any:
    if importlib.util.find_spec("kiwipiepy") is None:
        raise SettingsError(
            "Korean documents here were indexed with kiwipiepy, which is not installed: "
            ".venv/bin/pip install kiwipiepy==0.24.1"
        )
    from kiwipiepy import Kiwi

    return Kiwi()
