"""Write the years and months named in a question in digits: "last year" becomes "2025", "十二月" becomes "12月".

Other words stay unchanged. `rag.retrieval.as_of` reads the result.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date
from functools import cache


@dataclass(frozen=True)
class _Words:
    last_year: str
    next_year: str
    last_month: str
    next_month: str


#: The patterns include the words before the phrase: "in the", "im", "de l'".
_BY_LANGUAGE = {
    "en": _Words(
        r"(?:(?:in|for|from|of|during) )?(?:the )?(?:last|past|previous) year(?:'s)?",
        r"(?:(?:in|for|from|of|during) )?(?:the )?(?:next|coming) year(?:'s)?",
        r"(?:(?:in|for|from|of|during) )?(?:the )?(?:last|past|previous) month(?:'s)?",
        r"(?:(?:in|for|from|of|during) )?(?:the )?(?:next|coming) month(?:'s)?",
    ),
    "de": _Words(
        r"(?:(?:ab|im|seit|in|des) )?(?:dem )?(?:letzte|vergangene|vorige)[nrms]? jahr(?:e?s)?|vorjahr(?:es)?",
        r"(?:(?:ab|im|in|des) )?(?:dem )?(?:nächste|kommende)[nrms]? jahr(?:e?s)?",
        r"(?:(?:ab|im|in|des) )?(?:dem )?(?:letzte|vergangene|vorige)[nrms]? monats?|vormonats?",
        r"(?:(?:ab|im|in|des) )?(?:dem )?(?:nächste|kommende)[nrms]? monats?",
    ),
    "nl": _Words(
        r"(?:(?:in|van|vanaf) )?(?:het )?(?:vorige?|afgelopen|verleden) jaar",
        r"(?:(?:in|van|vanaf) )?(?:het )?(?:volgende?|komende?|aankomende?) jaar",
        r"(?:(?:in|van|vanaf) )?(?:de )?(?:vorige|afgelopen|verleden) maand",
        r"(?:(?:in|van|vanaf) )?(?:de )?(?:volgende|komende|aankomende) maand",
    ),
    "fr": _Words(
        r"(?:(?:à partir )?de )?l['’]an(?:née)? (?:derni(?:er|ère)|passée?)",
        r"(?:(?:à partir )?de )?l['’]an(?:née)? prochaine?",
        r"(?:(?:à partir )?du |le )mois (?:dernier|passé)",
        r"(?:(?:à partir )?du |le )mois prochain",
    ),
    "es": _Words(
        r"(?:(?:a partir )?del? |en )?(?:el )?(?:año pasado|pasado año)",
        r"(?:(?:a partir )?del? |en )?(?:el )?(?:año (?:que viene|próximo|entrante)|próximo año)",
        r"(?:(?:a partir )?del? |en )?(?:el )?(?:mes pasado|pasado mes)",
        r"(?:(?:a partir )?del? |en )?(?:el )?(?:mes (?:que viene|próximo|entrante)|próximo mes)",
    ),
    "it": _Words(
        r"(?:d[ae]ll['’]|nell['’]|l['’]|(?:del|nel|il|dal|nello|lo|dello) )?(?:anno (?:scorso|passato)"
        r"|scorso anno)",
        r"(?:d[ae]ll['’]|nell['’]|l['’]|(?:del|nel|il|dal) )?(?:anno (?:prossimo|venturo)|prossimo anno)",
        r"(?:(?:del|nel|il|dal|nello|lo|dello) )?(?:mese (?:scorso|passato)|scorso mese)",
        r"(?:(?:del|nel|il|dal) )?(?:mese (?:prossimo|venturo)|prossimo mese)",
    ),
    "pt": _Words(
        r"(?:(?:a partir )?d?n?o )?(?:ano passado|último ano)",
        r"(?:(?:a partir )?d?n?o )?(?:ano que vem|próximo ano)",
        r"(?:(?:a partir )?d?n?o )?(?:mês passado|último mês)",
        r"(?:(?:a partir )?d?n?o )?(?:mês que vem|próximo mês)",
    ),
    "pl": _Words(
        r"(?:(?:w|od) )?(?:zeszł|ubiegł|minion)(?:ym|ego) roku",
        r"(?:(?:w|od) )?(?:przyszł|następn|nadchodząc)(?:ym|ego) roku",
        r"(?:(?:w|od) )?(?:zeszł|ubiegł|minion)(?:ym|ego) miesiąc[au]",
        r"(?:(?:w|od) )?(?:przyszł|następn|nadchodząc)(?:ym|ego) miesiąc[au]",
    ),
    "tr": _Words(
        r"(?:geçen|geçtiğimiz) (?:yıl|sene)(?:dan itibaren|ın)?",
        r"(?:gelecek|önümüzdeki) (?:yıl|sene)(?:dan itibaren|ın)?",
        r"(?:geçen|geçtiğimiz) ay(?:dan itibaren|ın)?",
        r"(?:gelecek|önümüzdeki) ay(?:dan itibaren|ın)?",
    ),
    "ko": _Words("(?<!재)작년|지난 ?해", "내년|다음 ?해", "지난 ?달", "다음 ?달|내달"),
    "ja": _Words("(?<!一)昨年度?|去年", "(?<!再)来年度?", "先月", "(?<!再)来月"),
    "zh": _Words("去年", "明年|来年|來年", "(?<!上)上(?:个|個)?月", "(?<!下)下(?:个|個)?月"),
    "ar": _Words(
        r"(?:(?:من|في) )?(?:العام|السنة) (?:الماضية?|المنصرمة?|الفائتة?)",
        r"(?:(?:من|في) )?(?:العام|السنة) (?:القادمة?|المقبلة?)",
        r"(?:(?:من|في) )?الشهر (?:الماضي|المنصرم|الفائت)",
        r"(?:(?:من|في) )?الشهر (?:القادم|المقبل)",
    ),
}  # fmt: skip
#: Languages with years like 2025年.
_EASTERN = {"ko": ("년", "월"), "ja": ("年", "月"), "zh": ("年", "月")}
_HAN = {numeral: value for value, numeral in enumerate("零一二三四五六七八九")} | {"〇": 0, "○": 0}
_HAN_YEAR = re.compile(r"(?:[一二][〇○零一二三四五六七八九]{3})(?=\s*年)")
_HAN_NUMBER = r"(?:[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])(?=\s*[月日号號])"
#: "十二月", "六月一日"; not "第三月" or a part of a longer number.
_HAN_PLACE = re.compile(rf"(?<![一二三四五六七八九十百千第年]){_HAN_NUMBER}|(?<=[年月])\s*{_HAN_NUMBER}")
#: Korean month names, from the Chinese numerals.
_KOREAN_MONTHS = ("일", "이", "삼", "사", "오", "유", "칠", "팔", "구", "시", "십일", "십이")
_KOREAN_MONTH = re.compile(
    rf"(?<![가-힣])({'|'.join(sorted(_KOREAN_MONTHS, key=len, reverse=True))})월(?=\s|부터|에|의|$)"
)


def in_digits(text: str) -> str:
    """Convert digits in other scripts, and Chinese and Korean numerals in dates ("二〇二五年六月"), to ASCII digits."""
    text = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
    text = _HAN_YEAR.sub(lambda match: "".join(str(_HAN[char]) for char in match.group()), text)
    text = _HAN_PLACE.sub(lambda match: str(_han_number(match.group().strip())), text)
    return _KOREAN_MONTH.sub(lambda match: f"{_KOREAN_MONTHS.index(match[1]) + 1}월", text)


def write_out_dates(text: str, language: str, today: date) -> str:
    """Return a question with relative years and months written in digits, for example "last year" and "next month"."""
    text = in_digits(text)
    for code in dict.fromkeys((language if language in _BY_LANGUAGE else "en", "en")):
        for pattern, months in zip(_patterns(code), (-12, 12, -1, 1), strict=True):
            if match := pattern.search(text):
                text = _replace_phrase(text, match, code, today, months)
    return text


def _replace_phrase(text: str, match: re.Match[str], code: str, today: date, months: int) -> str:
    """Replace a phrase like "last year" by a year or month.

    `months` is the distance from today in months: 12 or -12 for a year, 1 or -1 for a month.
    """
    count = today.year * 12 + today.month - 1 + months
    year, month = count // 12, count % 12 + 1
    before, after = text[: match.start()], text[match.end() :]
    if code in _EASTERN:
        of_year, of_month = _EASTERN[code]
        period = f"{year}{of_year}" if abs(months) == 12 else f"{year}{of_year} {month}{of_month}"
        # "去年的六月"
        return f"{before}{period}{re.sub(r'^[的の]?(?=[0-9]+ ?[月월])', '', after.lstrip())}"
    if abs(months) == 1:
        return f"{before}{year}-{month:02}{after}"
    if code == "tr" and (named := re.match(r"\s+(\w+)(?= ay)", after)):
        # Turkish names the year first.
        return f"{before}{named[1]} {year}{after[named.end() :]}"
    return f"{before}{year}{after}"


def _han_number(numeral: str) -> int:
    tens, ten, ones = numeral.rpartition("十")
    return (10 * _HAN.get(tens, 1) if ten else 0) + _HAN.get(ones, 0)


@cache
def _patterns(code: str) -> tuple[re.Pattern[str], ...]:
    words = _BY_LANGUAGE[code]
    return whole_words(code, words.last_year, words.next_year, words.last_month, words.next_month)


def whole_words(code: str, *patterns: str) -> tuple[re.Pattern[str], ...]:
    """Compile patterns which match whole words. In Korean, Japanese and Chinese, they also match parts of words."""
    before, after = ("", "") if code in _EASTERN else (r"(?<!\w)", r"(?!\w)")
    return tuple(re.compile(rf"{before}(?:{pattern}){after}", re.IGNORECASE) for pattern in patterns)
