"""Read the words of a question, and find them in texts through synonyms, compounds and translations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from rag.answering.answer_types import UNITS
from rag.answering.extractive.rule import RULE
from rag.answering.thresholds import in_digits
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.bm25.synonyms import without_other_ideas
from rag.retrieval.evidence import compound_share
from rag.retrieval.query_understanding import split_question
from rag.retrieval.search_query import COMPOUNDING, cached_question_words
from rag.text.analysers import analyser_code
from rag.text.language_detection import detect_language
from rag.text.number_words import years_written
from rag.types import Citation

#: Asks for a place, and may be answered by a link.
ASKS_WHERE = re.compile(
    r"\b(?:where|link|url|website|site|form|page|waar|pagina|formulier|wo|seite|formular|où|lien|formulaire|dónde|enlace"
    r"|formulario|dove|modulo|onde|formulário|gdzie|strona|formularz|nerede|sayfa)\b|어디|링크|どこ|リンク|哪|链接|أين|رابط",
    re.IGNORECASE,
)
#: Asks how to do something, and may be answered by listed steps.
ASKS_HOW = re.compile(
    r"\b(?:how (?:do|can|should|to|does|must|would)|steps?|hoe|stappen|wie|schritte?|comment|étapes?|cómo|pasos|come"
    r"|passaggi|como|passos|jak|kroki|nasıl|adımlar)\b|어떻게|방법|절차|どうやって|どのように|どうすれば|方法|手順|怎么|怎样|如何|步骤|كيف|خطوات",
    re.IGNORECASE,
)
#: Names by spelling: "PerksPlus", "eBike"; in languages with lower-case nouns also "Northwind" inside a sentence.
NAME = re.compile(r"\b\w*[a-zà-ÿ][A-ZÀ-Þ]\w*")
NAME_OR_CAPITAL = re.compile(rf"{NAME.pattern}|(?<=[\w,;] )[A-ZÀ-Þ][\w-]+")
FIGURE = re.compile(r"\d[\d.,]*")
#: The unit in the question, right after the question word: "days" in "How many days of leave …?", but not "credit
#: hours".
UNIT = re.compile(
    rf"\b(?:how (?:many|much)|hoeveel|wie ?viele?|combien d[e']|cuánt[oa]s|quant[oaie]s?|ile|kaç) ?({UNITS})\b",
    re.IGNORECASE,
)
#: A number in words before "years". Only years, because tables give service in years.
YEARS = re.compile(
    r"([^\W\d_]+) (?:(?:full|complete|volle|hele) )?(?:years?|jaar|jaren|dienstja\w+|jahre?n?|ans|années|años|ann[io]"
    r"|anos?|lat|lata(?:ch)?|yıl\w*)\b"
)
#: Words between the parts of a question, by language. Polish "i" and English "and", for example.
_AND = {
    "en": "and|or", "nl": "en|of", "de": "und|oder", "fr": "et|ou", "es": "y|e|o", "it": "e|ed|o", "pt": "e|ou",
    "pl": "i|oraz|lub", "tr": "ve|veya", "ar": "و|أو",
}  # fmt: skip
#: Separators between the parts of a question: "Overtime on Sunday + time off?", "pay; notice", "임금과 휴가".
_BETWEEN = r"[?？]\s*(?=\S)|\s[+&/]\s|;\s|；|及び|및|그리고|와\s|과\s|、|と(?=\S{2})|和|以及|\sو(?=\S)"


def parts_of(question: str, language: str) -> list[str]:
    """Return the parts of a compound question, or an empty list for a simple question."""
    parts = split_question(question, language) or _between(language).split(question)
    stripped = [part.strip() for part in parts if part and tokenize(part, language)]
    return stripped if len(stripped) > 1 else []


@cache
def _between(language: str) -> re.Pattern[str]:
    words = _AND.get(language)
    return re.compile(_BETWEEN + (rf"|,?\s(?:{words})\s" if words else ""), re.IGNORECASE)


def without_units(weights: dict[str, float], question: str, language: str) -> dict[str, float]:
    """Return the weights without the question's units, like "days". If no other word would remain, units are kept."""
    units = frozenset(term for unit in UNIT.findall(question) for term in tokenize(unit, language))
    return {term: weight for term, weight in weights.items() if term not in units} or weights


def names_in(question: str, language: str) -> frozenset[str]:
    """Return the terms of names in a question: words with a capital inside, or capitalised inside a sentence."""
    pattern = NAME if language == "de" else NAME_OR_CAPITAL
    return frozenset(term for name in pattern.findall(question) for term in tokenize(name, language))


def figures_written(text: str) -> frozenset[str]:
    return frozenset(number.rstrip(".,") for number in FIGURE.findall(text))


def years_in_words(question: str, language: str) -> frozenset[str]:
    """Return the numbers of years written in words: "after six years"."""
    values = (years_written(word, language) for word in YEARS.findall(question.lower()))
    return frozenset(str(value) for value in values if value >= 1)


def passage_language(citation: Citation, language: str) -> str:
    return detect_language(citation.passage[: RULE.language_characters], [language])


def translatable_terms(question: str, language: str, text_language: str) -> frozenset[str] | None:
    """Return the question's terms which have synonyms in `text_language`; `None` if the text is in the question's
    language.
    """
    if text_language == language:
        return None
    return frozenset[str]().union(*(terms for terms, _ in other_words(question, language, text_language)))


@lru_cache(maxsize=500)
def other_words(
    question: str, language: str, text_language: str
) -> tuple[tuple[frozenset[str], tuple[frozenset[str], ...]], ...]:
    """Return a pair for each question word with synonyms: the word's terms, and each synonym's terms in
    `text_language`.
    """
    terms_by_word = {
        word.text: word.terms for word in cached_question_words(question, language, analyser_code(language))
    }
    return tuple(
        (frozenset(terms_by_word[word.text]), tuple(map(frozenset, word.synonyms)))
        for word in cached_question_words(question, language, analyser_code(text_language))
        if word.synonyms and word.text in terms_by_word
    )


def comparable_terms(
    text: str,
    *,
    language: str,
    text_language: str,
    words: Sequence[tuple[frozenset[str], tuple[frozenset[str], ...]]],
    question_terms: frozenset[str] = frozenset(),
    ideas: frozenset[int] = frozenset(),
) -> frozenset[str]:
    """Return a text's terms, with the question's terms which the text expresses in a different way.

    The text may have synonyms, compounds or number words: "zehnjährig" contains "10 Jahre". `language` is the
    question's language and `text_language` the text's. `words` are the synonyms from `other_words`. `ideas` are the ids
    for the question's synonym groups; expressions from other groups are ignored.
    """
    in_order = tokenize(text, language)
    terms = frozenset(in_order)
    text_terms = in_order if text_language == language else tokenize(text, text_language)
    translated = [
        (word_terms, synonyms)
        for word_terms, synonyms in words
        if any(_stand_together(other, text_terms) for other in synonyms)
    ]
    if translated:
        text_terms = tokenize(without_other_ideas(text, text_language, ideas), text_language)
    matched = (
        word_terms
        for word_terms, synonyms in translated
        if any(_stand_together(other, text_terms) for other in synonyms)
    )
    has_number = any(term.isdigit() for term in question_terms)
    in_numbers = question_terms.intersection(tokenize(in_digits(text, text_language), language)) if has_number else ()
    return terms.union(*matched, in_numbers, in_compounds(question_terms, terms) if language in COMPOUNDING else ())


def _stand_together(expression: frozenset[str], terms: Sequence[str]) -> bool:
    """Whether an expression's terms stand close together in a text: not "pay day" in "pay for each working day"."""
    if not expression <= frozenset(terms):
        return False
    width = len(expression) + RULE.within_expression
    return any(expression <= frozenset(terms[start : start + width]) for start in range(max(1, len(terms) - width + 1)))


def in_compounds(question_terms: frozenset[str], terms: frozenset[str]) -> frozenset[str]:
    """Return the question's terms which a text contains inside a longer word, or split into several words.

    "Zulassung" is in "Zulassungsverfahren", and "Kündigungsfrist" in "die Frist der Kündigung".
    """
    return frozenset(
        question_term
        for question_term in question_terms - terms
        if len(question_term) >= RULE.least_compounded
        and (
            any(
                question_term != term and (term.startswith(question_term) or term.endswith(question_term))
                for term in terms
            )
            or compound_share(question_term, terms) >= RULE.enough_of_compound
        )
    )
