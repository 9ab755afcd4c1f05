"""Check by rules, without a model, whether the cited passages support a sentence.

Numbers are compared in any language. Dates, names, content words and negations are compared only if sentence and
passage are in the same language. In doubt, no warning is given: a wrong warning costs more trust than a missing one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from rag.retrieval.bm25.index import tokenize
from rag.retrieval.search_query import cached_question_words
from rag.text.analysers import analyser_code
from rag.text.figures import days, figures, missing_days, missing_figures
from rag.text.language_detection import detect_language

Fault = Literal["figures", "dates", "names", "words", "negation"]

#: A sentence with fewer words, such as "Yes, you can", is too short to compare.
LEAST_WORDS = 4
#: The same limit in pairs of characters, for languages without spaces.
LEAST_PAIRS = 8
#: Lowest share of a sentence's words in its sources. A paraphrase keeps about half, a sentence about a different
#: subject hardly any.
LEAST_SHARED = 0.25
#: Words with at least this many letters are compared by their first letters.
STEM_LETTERS = 5
#: Two statements are compared for a negation if they share at least this part of all their terms.
SAME_STATEMENT = 0.5
LANGUAGE_CHARACTERS = 400

_UNSPACED = ("ja", "zh", "ko")
_COMPOUNDING = ("de", "nl")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n|\n(?=\s*(?:[-–—*•●▪]|\d{1,2}[.)])\s)")
_CLAUSE = re.compile(
    r"[,;:]\s+|[、，；：]|\s(?:but|and|or|while|whereas|maar|en|of|terwijl|aber|und|oder|während|mais|et|ou|tandis|pero|y|o|"
    r"mientras|ma|e|mentre|mas|enquanto|ale|i|lub)\s",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
#: A heading in bold or before a colon, whose capitals mark no names.
_HEADING = re.compile(r"\*\*[^*\n]{1,120}\*\*:?|^[^.!?\n]{1,60}:\s|^#+[^\n]*")
_TITLE = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau|Mevrouw|Meneer|Dhr|Mevr|Monsieur|Madame|Mme|Señora?|Sra?|Sig|Signora?|Pani?)"
    r"\.?\s+(?P<name>[^\W\d_a-z][^\W\d_]+)"
)

_ARTICLES = frozenset(
    word
    for words in (
        "the a an your our their his her this each any",
        "de het een uw le la les un une votre",
        "el los las su il lo gli o os as seu sua",
    )
    for word in words.split()
)

_NEGATIONS = {
    language: re.compile(words, re.IGNORECASE)
    for language, words in {
        "en": r"\b(?:not|no|never|none|neither|nor|cannot|without|nobody|nothing|unable|unpaid|unavailable|"
        r"prohibited|forbidden|ineligible|excluded?|denied)\b|n['’]t\b",
        "nl": r"\b(?:niet|geen|nooit|niemand|niets|zonder|verboden|uitgesloten)\b",
        "de": r"\b(?:nicht|kein\w{0,2}|nie|niemals|niemand|nichts|ohne|verboten|ausgeschlossen|untersagt)\b",
        "fr": r"\bn['’]|\b(?:ne|jamais|aucune?|sans|interdite?s?|exclue?s?)\b",
        "es": r"\b(?:no|nunca|jamás|ninguna?|ningún|sin|prohibid\w+|excluid\w+)\b",
        "it": r"\b(?:non|mai|nessun\w?|senza|vietat\w+|esclus\w+)\b",
        "pt": r"\b(?:não|nunca|jamais|nenhuma?|nenhum|sem|proibid\w+|excluíd\w+)\b",
        "pl": r"\b(?:nie|nigdy|żad\w+|bez|zabronion\w+|wykluczon\w+)\b",
        "ko": r"않|없|못|아니|아닙|불가|금지|제외|(?:^|\s)안\s?(?:되|됩|돼|하|합)",
        "ja": r"ない|なく|なか|ませ[んぬ]|不可|禁止",
        "zh": r"不|没|沒|无|無|未|禁止",
        "ar": r"(?:^|\s)(?:لا|لم|لن|ليس\w*|غير|دون|بدون|ممنوع\w*|يحظر)(?=\s|$)",
        "tr": r"\b(?:değil\w*|yok\w*|asla|hiç|hiçbir\w*|yasak\w*|olmadan|ücretsiz olmayan)\b"
        r"|\w(?:m[ae]z(?:l[ae]r)?|m[ae]y(?:[ae]ca[kğ]|ece[kğ])\w*|m[iıuü]yor\w*|m[ae]mektedir)\b",
    }.items()
}
#: With these words, rules cannot tell which part of a sentence is denied.
_HEDGES = {
    language: re.compile(words, re.IGNORECASE)
    for language, words in {
        "en": r"\b(?:unless|except\w*|only|until|before|rather|instead|otherwise|whether|if|"
        r"(?:not|no)\s+(?:more|less|fewer|later|longer|earlier|sooner|exceed\w*|just|least))\b",
        "nl": r"\b(?:tenzij|behalve|alleen|slechts|pas|mits|als|indien|"
        r"(?:niet|geen)\s+(?:meer|minder|later|langer|eerder))\b",
        "de": r"\b(?:sofern|außer|nur|erst|sei\s+denn|sondern|wenn|falls|"
        r"nicht\s+(?:mehr|weniger|später|länger|früher))\b",
        "fr": r"\b(?:sauf|seulement|si|moins|plus|que)\b",
        "es": r"\b(?:salvo|excepto|sol[oa]|sólo|solamente|sino|si|más|menos|obstante)\b",
        "it": r"\b(?:salvo|tranne|eccetto|solo|soltanto|se|più|meno|oltre)\b",
        "pt": r"\b(?:salvo|exceto|só|apenas|somente|se|mais|menos)\b",
        "pl": r"\b(?:chyba|tylko|oprócz|dopiero|jeśli|jeżeli|więcej|mniej|później|dłużej|wcześniej)\b",
        "ko": r"만(?=\s|$)|외에|이외|경우|다면",
        "ja": r"だけ|のみ|以外|限り|しか|場合|なければ",
        "zh": r"只|仅|除|以外|超过|少于|如果|若",
        "ar": r"(?:^|\s)(?:إلا|فقط|سوى|إذا|ما\s+لم)(?=\s|$)",
        "tr": r"\b(?:hariç|dışında|ancak|yalnızca|sadece|eğer|önce|sonra|fazla|az|geç|erken|kadar)\b"
        r"|\w(?:[dt]ikçe|m[ae]dıkça|medikçe)\b",
    }.items()
}


@dataclass
class CitedSource:
    """A cited passage in the form given to the model, with the document's and section's names."""

    text: str
    heading: str = ""
    #: Likely languages, first the likeliest.
    likely: tuple[str, ...] = ()

    @cached_property
    def language(self) -> str:
        """Return the passage's language as ISO 639-1 code."""
        return _language_of(self.text[:LANGUAGE_CHARACTERS], self.likely)

    @cached_property
    def full_text(self) -> str:
        """Return the passage with the document's and section's names above."""
        return f"{self.heading}\n{self.text}"

    @property
    def figures(self) -> frozenset[str]:
        """The numbers in the passage and its headings."""
        return figures(self.full_text, self.language)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Return the content words in the passage, the document's name and the section's name."""
        return _terms_of_passage(self.full_text, self.language)

    @cached_property
    def statements(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """The passage's sentences and their clauses, with their content words. Questions are left out."""
        sentences = [" ".join(part.split()) for part in _SENTENCE.split(self.text) if part and part.strip()]
        parts = dict.fromkeys((*sentences, *(clause for sentence in sentences for clause in _clauses(sentence))))
        return tuple((text, _terms(text, self.language)) for text in parts if not text.endswith("?"))


@dataclass
class QuestionContext:
    """The question and the answer's language, for checking a sentence. Facts in the question need no source."""

    question: str = ""
    #: ISO 639-1; "" compares figures only.
    language: str = ""
    _figures: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._figures = figures(self.question, self.language)

    @property
    def figures(self) -> frozenset[str]:
        return self._figures


def faults(
    claim: str,
    sources: Sequence[CitedSource],
    question_context: QuestionContext,
    *,
    more: Callable[[], Sequence[CitedSource]] = tuple,
) -> frozenset[Fault]:
    """Return the types of facts in a sentence which the sources do not support; empty for a supported sentence.

    `more` returns the text on the sources' pages and is called only if the passages do not support the sentence. The
    pages can supply missing facts. A negation which contradicts the passages stays a fault.
    """
    kinds = _faults(claim, sources, question_context)
    if kinds:
        pages = [page for page in more() if page.text]
        if pages:
            # The page may add support the passage lacks, but cannot excuse a contradiction of the passage.
            kinds &= _faults(claim, [*sources, *pages], question_context) | {"negation"}
    return kinds


def _faults(claim: str, sources: Sequence[CitedSource], question_context: QuestionContext) -> frozenset[Fault]:
    kinds: set[Fault] = set()
    if not sources:
        return frozenset()
    source_figures = question_context.figures.union(*(source.figures for source in sources))
    if missing_figures(claim, source_figures):
        kinds.add("figures")
    language = question_context.language
    if not language or any(source.language != language for source in sources):
        return frozenset(kinds)
    terms = frozenset[str]().union(*(source.terms for source in sources))
    if missing_days(claim, days(question_context.question).union(*(days(source.full_text) for source in sources))):
        kinds.add("dates")
    if _has_unknown_name(
        claim, "\n".join((question_context.question, *(s.full_text for s in sources))), terms, language
    ):
        kinds.add("names")
    if _is_about_something_else(claim, terms, question_context, source_figures):
        kinds.add("words")
    if _is_denied(claim, sources, language):
        kinds.add("negation")
    return frozenset(kinds)


@lru_cache(maxsize=256)
def _language_of(text: str, likely: tuple[str, ...]) -> str:
    return detect_language(text, likely)


# The same passages are compared while an answer is written, when it is complete, and for other people's answers.
@lru_cache(maxsize=8192)
def _terms(text: str, language: str) -> frozenset[str]:
    return frozenset(tokenize(text, language))


@lru_cache(maxsize=256)
def _terms_of_passage(text: str, language: str) -> frozenset[str]:
    return frozenset(tokenize(text, language))


def _is_about_something_else(
    claim: str, terms: frozenset[str], question_context: QuestionContext, source_figures: frozenset[str]
) -> bool:
    language = question_context.language
    claim_terms = _terms(claim, language) - _terms(question_context.question, language)
    if len(claim_terms) < (LEAST_PAIRS if language in _UNSPACED else LEAST_WORDS):
        return False
    # A shared figure outweighs missing words, because words can be paraphrased.
    if (figures(claim, language) - question_context.figures) & source_figures:
        return False
    return _count_shared(claim_terms, terms, language) < LEAST_SHARED * len(claim_terms)


def _count_shared(claim_terms: frozenset[str], source_terms: frozenset[str], language: str) -> int:
    rest = claim_terms - source_terms
    if language in _UNSPACED:
        return len(claim_terms) - len(rest)
    stems = {term[:STEM_LETTERS] for term in source_terms}
    rest = frozenset(term for term in rest if len(term) < STEM_LETTERS or term[:STEM_LETTERS] not in stems)
    if language in _COMPOUNDING and rest:
        long = [term for term in source_terms if len(term) >= STEM_LETTERS]
        rest = frozenset(
            term for term in rest if len(term) < STEM_LETTERS or not any(term in part or part in term for part in long)
        )
    return len(claim_terms) - len(rest)


def supported_share(claim: str, source: CitedSource, language: str) -> float:
    """Return the share (0 to 1) of a sentence's content words which are in a passage in the same language.

    Synonyms count. A sentence without content words gives 1.
    """
    if language in _UNSPACED:
        claim_terms = _terms(claim, language)
        return _count_shared(claim_terms, source.terms, language) / len(claim_terms) if claim_terms else 1.0
    words = cached_question_words(claim, language, analyser_code(language))
    supported = sum(
        _count_shared(frozenset(word.terms), source.terms, language) * 2 >= len(word.terms)
        or any(source.terms.issuperset(synonym) for synonym in word.synonyms)
        for word in words
    )
    return supported / len(words) if words else 1.0


def _has_unknown_name(claim: str, source_text: str, terms: frozenset[str], language: str) -> bool:
    """Whether a claim has an e-mail address or a person's name which is not in the sources.

    A name is two capitalised words, or a word after a title like "Mr". In German, all nouns are capitalised, and only
    words after a title count.
    """
    if not any(map(str.isupper, claim)) and "@" not in claim:
        return False
    lowered = source_text.lower()
    if any(address.lower() not in lowered for address in _EMAIL.findall(claim)):
        return True
    text = _HEADING.sub(" ", _EMAIL.sub(" ", claim))
    if any(match["name"].lower() not in lowered for match in _TITLE.finditer(text)):
        return True
    if language == "de":
        return False
    return any(_is_unknown(run, source_text, lowered, terms, language) for run in _find_capitalised_runs(text))


def _find_capitalised_runs(text: str) -> list[list[str]]:
    """Return all runs with at least two capitalised words, for example "Sarah Jones".

    A run after an article, like "the Line Manager", is a role and is left out.
    """
    runs: list[list[str]] = [[]]
    end, before = 0, ""
    for match in _WORD.finditer(text):
        word = match[0]
        is_next = text[end : match.start()].strip(" ") == ""
        is_name = word[:1].isupper() and len(word) > 1 and not word.isupper() and not days(word)
        is_name &= word.lower() not in _ARTICLES and not (before in _ARTICLES and is_next)
        if not is_next or not is_name:
            runs.append([])
        if is_name:
            runs[-1].append(word)
        # An article applies to the whole run.
        before = before if before in _ARTICLES and is_next and word[:1].isupper() else word.lower()
        end = match.end()
    return [run for run in runs if len(run) > 1]


def _is_unknown(run: Sequence[str], source_text: str, lowered: str, terms: frozenset[str], language: str) -> bool:
    last_terms = tokenize(run[-1], language)
    if run[-1].lower() in lowered or not last_terms or terms.intersection(last_terms):
        return False
    initials = "".join(word[0] for word in run)
    return re.search(rf"\b{re.escape(initials)}\b", source_text) is None


def _is_denied(claim: str, sources: Sequence[CitedSource], language: str) -> bool:
    return any(_is_contradicted(clause, sources, language) for clause in _clauses(claim))


def _is_contradicted(clause: str, sources: Sequence[CitedSource], language: str) -> bool:
    negation, hedge = _NEGATIONS.get(language), _HEDGES.get(language)
    if negation is None or hedge is None or hedge.search(clause):
        return False
    terms, denials = _terms(clause, language), len(negation.findall(clause))
    if denials > 1 or len(terms) < 2:
        return False
    alike: list[tuple[float, int]] = []
    for source in sources:
        for statement, statement_terms in source.statements:
            shared = len(terms & statement_terms)
            if shared > 1 and shared >= SAME_STATEMENT * (together := len(terms) + len(statement_terms) - shared):
                count = -1 if hedge.search(statement) else len(negation.findall(statement))
                alike.append((shared / together, count))
    if not alike:
        return False
    best = max(likeness for likeness, _ in alike)
    counts = [count for likeness, count in alike if likeness >= best - 0.1]
    return all(count in (0, 1) and count != denials for count in counts)


def is_negated(sentence: str, language: str) -> bool:
    """Whether a sentence contains a negation."""
    negation = _NEGATIONS.get(language)
    return negation is not None and bool(negation.search(sentence))


def _clauses(sentence: str) -> list[str]:
    return [clause.strip() for clause in _CLAUSE.split(sentence) if clause.strip()]
