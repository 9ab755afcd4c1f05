"""Recognise "since when" in questions: "Since when is the hotel limit 180 euros?".

The rule is searched for without "since when", because documents seldom contain these words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rag.retrieval.bm25.index import tokenize
from rag.text.relative_days import whole_words


@dataclass(frozen=True)
class _Words:
    #: Always asks for a past day: "since when".
    since: str
    #: Asks for a day in the past only beside a figure or a word like "valid"; "From when may I take leave?" does not.
    from_when: str
    #: Words for "is valid" and "this rule", which are removed from the search.
    holds: str
    rule: str


_BY_LANGUAGE = {
    "en": _Words(
        r"since (?:when|(?:what|which) (?:date|day|month|year|version))"
        r"|(?:for )?how long(?= ha(?:s|ve)\b.*\bbeen\b)",
        r"(?:from|as of|starting) (?:when|(?:what|which) (?:date|day|month|year))(?: on(?:wards?)?)?"
        r"|when(?=.*\b(?:in|into|take|took) (?:force|effect)\b)",
        r"appl(?:y|ies|ied)|(?:be|been|come|came|put)? ?(?:in|into) (?:force|effect)|(?:take|took) effect|valid"
        r"|effective|been",
        r"(?:this|that|the) (?:rule|regulation|provision)s?(?: (?:on|for|about|that))?",
    ),
    "de": _Words(
        r"seit (?:wann|welche[mnr] (?:tag|datum|jahr|monat|zeitpunkt|version))|wie lange(?=.*\bschon\b)",
        r"ab (?:wann|welche[mn] (?:tag|datum|jahr|monat|zeitpunkt))|wann(?=.*\bin kraft\b)",
        r"gelten|gilt|galt|gültig|in kraft(?: getreten)?|schon|bereits",
        r"(?:diese[rs]?|die) (?:regel|regelung|vorschrift|bestimmung)(?: (?:für|zu[rm]?|über))?",
    ),
    "nl": _Words(
        r"sinds (?:wanneer|welke (?:datum|dag|maand)|welk jaar)|hoe lang(?=.*\bal\b)",
        r"(?:vanaf|per) (?:wanneer|welke (?:datum|dag|maand)|welk jaar)",
        r"gelden|geldt|gold|geldig|van kracht|al",
        r"(?:deze|die|de) (?:regels?|regeling|bepaling)(?: (?:voor|over))?",
    ),
    "fr": _Words(
        r"depuis (?:quand|quel(?:le)? (?:date|jour|mois|année)|combien de temps)",
        r"(?:à partir de|dès) (?:quand|quel(?:le)? (?:date|jour|mois|année))",
        r"s['’]appliqu\w+(?:-t-(?:elle|il))?|(?:en )?vigueur|valables?|est-(?:elle|il)|sont-(?:elles|ils)",
        r"(?:cette|ces|la|les) (?:règle|règlementation|disposition)s?(?: (?:sur|pour|de))?",
    ),
    "es": _Words(
        r"desde (?:cu[áa]ndo|qué (?:fecha|día|mes|año))",
        r"a partir de (?:cu[áa]ndo|qué (?:fecha|día|mes|año))",
        r"se aplican?|rigen?|(?:en )?vigor|vigentes?|válid[oa]s?",
        r"(?:esta|la) (?:regla|norma|disposición)(?: (?:sobre|de|para))?",
    ),
    "it": _Words(
        r"da (?:quando|(?:che|quale) (?:data|giorno|mese|anno))",
        r"a partire da (?:quando|(?:che|quale) (?:data|giorno|mese|anno))",
        r"si applican?o?|vale|valgono|in vigore|valid[oaie]",
        r"(?:questa|la) (?:regola|norma|disposizione)(?: (?:su|per|di))?",
    ),
    "pt": _Words(
        r"desde (?:quando|que (?:data|dia|mês|ano))",
        r"a partir de (?:quando|que (?:data|dia|mês|ano))",
        r"se aplicam?|vale|valem|vigoram?|em vigor|válid[oa]s?",
        r"(?:esta|essa|a) (?:regra|norma|disposição)(?: (?:sobre|de|para))?",
    ),
    "pl": _Words(
        r"odkąd",
        r"od (?:kiedy|(?:jakiego|którego) (?:dnia|roku|miesiąca)|jakiej daty)",
        r"obowiązuj\w+|w mocy|ważn[aey]|wynosi",
        r"(?:ta|ten) (?:zasada|reguła|przepis)",
    ),
    "tr": _Words(
        r"ne zamandan ?(?:beri|bu yana)|hangi tarihten ?(?:beri|bu yana)",
        r"(?:ne zamandan|hangi tarihten) itibaren|ne zamandan",
        r"geçerli(?:dir)?|yürürlükte(?:dir)?|uygulanıyor|uygulanır",
        r"(?:bu )?kural",
    ),
    "ko": _Words(
        r"언제부터 ?(?=.*(?:였|았|었|했|됐|인가))|언제 이후로",
        r"언제부터(?:는)?|며칠부터|몇 ?년도?부터|몇 ?월부터|어느 날짜부터",
        r"적용\w*|시행\w*|유효\w*",
        r"이 ?(?:규칙|규정)[은이]?",
    ),
    "ja": _Words(
        r"いつ以来",
        r"(?:いつ|何年|何月|何日)(?:から|以降)(?:は|の)?",
        r"適用\w*|有効\w*|施行\w*|ですか|になりましたか",
        r"この(?:規則|ルール|規定)[はが]?",
    ),
    "zh": _Words(
        r"(?:自|从|從)?(?:什么时候|什麼時候|何时|何時|哪天|哪一天|哪年)以来",
        r"(?:自|从|從)?(?:什么时候|什麼時候|何时|何時|哪天|哪一天|哪年|几时|几月)(?:开始|開始|起)?",
        r"生效的?|适用的?|有效|实行的?|施行的?|是(?=\d)",
        r"(?:这|這)(?:条|項|项|个|個)?(?:规定|规则|規定)",
    ),
    "ar": _Words(
        r"من[ذد] (?:متى|أي (?:تاريخ|يوم|شهر|سنة|عام))",
        r"(?:ابتداء[ً]? )?من (?:متى|أي (?:تاريخ|يوم|شهر|سنة|عام))",
        r"تسري|يسري|تنطبق|ينطبق|ساري[ةا]?",
        r"هذه القاعدة|هذا الحكم",
    ),
}


def without_since(text: str, language: str) -> str | None:
    """Return a question without "since when", or `None` for other questions.

    Returns "" if the question names no rule: "Since when does this rule apply?".
    """
    base_language = language.split("-")[0]
    for code in dict.fromkeys((base_language if base_language in _BY_LANGUAGE else "en", "en")):
        since, from_when, holds, rule = _patterns(code)
        match = since.search(text)
        if match is None and (holds.search(text) or re.search(r"\d", text)):
            match = from_when.search(text)
        if match is not None:
            remaining = f"{text[: match.start()]} {text[match.end() :]}"
            for filler in (rule, holds):
                remaining = filler.sub(" ", remaining)
            remaining = (
                re.sub(r"\s+(?=[?？؟.,!]|$)", "", " ".join(remaining.split())).replace("¿ ", "¿").strip(",，、 ")
            )
            return remaining if tokenize(remaining, code) else ""
    return None


@cache
def _patterns(code: str) -> tuple[re.Pattern[str], ...]:
    words = _BY_LANGUAGE[code]
    return whole_words(code, words.since, words.from_when, words.holds, words.rule)


#: Words for "in force" in all languages.
_IN_FORCE = re.compile(
    r"\b(?:since|valid|effective|in(?:to)? (?:force|effect)|appl(?:y|ies|ied)|took effect|takes effect|as of|seit"
    r"|gültig|gilt|gelten|in kraft|geldig|geldt|gelden|van kracht|sinds|depuis|vigueur|valables?|s['’]appliqu\w+"
    r"|applicables?|desde|vigor|vigente|rige|válid[oa]s?|dal|dall['’]|vigore|vale|valid[oa]|vigora|em vigor"
    r"|obowiązuj\w+|w życie|ważn\w+|itibaren|beri|geçerli\w*|yürürlü\w+)\b"
    r"|시행|부터|적용|유효|施行|から|以降|適用|有効|起|生效|实行|自|اعتبار|منذ|يسري|تسري|ساري|ابتداء",
    re.IGNORECASE,
)


def says_in_force(text: str) -> bool:
    return _IN_FORCE.search(text) is not None
