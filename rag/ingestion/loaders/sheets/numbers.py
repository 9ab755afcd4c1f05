"""Write a stored number in the cell's number format: 0.25 becomes "25%", 46011 becomes "20.12.2025".

Formats follow ECMA-376 (18.8.31), for .xlsx and .xls. If a format cannot show a value, the format `General` is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

from rag.ingestion.loaders.sheets.languages import UNKNOWN, Language, language_of_format

#: Formats named only by number in files. A date (14) is written in the language's way.
BUILT_IN = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: '"$"#,##0_);("$"#,##0)', 6: '"$"#,##0_);("$"#,##0)',
    7: '"$"#,##0.00_);("$"#,##0.00)', 8: '"$"#,##0.00_);("$"#,##0.00)', 9: "0%", 10: "0.00%", 11: "0.00E+00",
    12: "# ?/?", 13: "# ??/??", 14: "[$-F800]", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "[$-F800] h:mm", 37: "#,##0_);(#,##0)", 38: "#,##0_);(#,##0)",
    39: "#,##0.00_);(#,##0.00)", 40: "#,##0.00_);(#,##0.00)", 41: '_(* #,##0_);_(* (#,##0);_(* "-"_);_(@_)',
    42: '_("$"* #,##0_);_("$"* (#,##0);_("$"* "-"_);_(@_)', 43: '_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)',
    44: '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
    48: "##0.0E+0", 49: "@",
    **dict.fromkeys((*range(27, 32), *range(34, 37), *range(50, 59)), "[$-F800]"), 32: "h:mm", 33: "h:mm:ss",
}  # fmt: skip
GENERAL = re.compile(r"(?:\[[^\]]*\])*general", re.IGNORECASE)
#: The most significant figures of a number in General, and the most characters.
GENERAL_FIGURES = 10
PARTS = re.compile(
    r"""
    "(?P<quoted>[^"]*)"? | \\(?P<escaped>.) | _(?P<space>.) | \*(?P<fill>.) | \[(?P<bracket>[^\]]*)\]
    | (?P<noon>am/pm|a/p|上午/下午|午前/午後|오전/오후) | (?P<general>general) | (?P<era>g+(?=g*e))
    | (?P<exponent>e[+-]) | (?P<date>y+|m+|d+|h+|s+|a{3,4}|e+|b{2,4}) | (?P<digit>[0\#?]) | (?P<other>.)
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
SIGNS = {".": "point", ",": "group", "%": "percent", "/": "slash", "@": "text"}
CURRENCY = re.compile(r"\$(?P<sign>[^-]*)(?:-(?P<language>[0-9A-Fa-f]+))?")
CONDITION = re.compile(r"(?P<sign><=|>=|<>|<|>|=)\s*(?P<number>-?[\d.]+)")
ELAPSED = re.compile(r"h+|m+|s+", re.IGNORECASE)
#: Numbers for the computer's language in a format, for dates and for times.
SYSTEM_DATE, SYSTEM_TIME = 0xF800, 0xF400
COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b,
}  # fmt: skip
#: Excel's last day, 31 December 9999.
LAST_DAY = 2_958_465
SECONDS = 86_400


@dataclass(frozen=True)
class Token:
    """A part of a number format.

    `kind` is "literal", "digit", "point", "group", "percent", "slash", "exponent", "text", "date", "elapsed", "noon" or
    "general".
    """

    kind: str
    text: str


@dataclass(frozen=True)
class FormatSection:
    """A section in a format; semicolons separate the sections."""

    tokens: tuple[Token, ...] = ()
    condition: tuple[str, float] | None = None
    language: Language | None = None
    is_date: bool = False
    source: str = field(default="", compare=False)

    def has(self, kind: str) -> bool:
        return any(token.kind == kind for token in self.tokens)


@lru_cache(maxsize=8192)
def format_number(value: float, code: str, language: Language | None = None, *, is_1904: bool = False) -> str:
    """Write a number in an Excel number format; "" if the format hides the number.

    `language` is the workbook's language. The language in the format is used for dates, and if `language` is `None`.
    """
    if GENERAL.fullmatch(code.strip()) or not code.strip():
        return general(value, language or UNKNOWN)
    sections = sections_of(code)
    section, is_negative_part = _choose_section(sections, value)
    # A date uses its format's language, a number the program's language.
    format_language = (section.language or language) if section.is_date else (language or section.language)
    used_language = format_language or UNKNOWN
    if section.is_date:
        return _date(value, section, used_language, is_1904=is_1904)
    figures = _number(abs(value), section, used_language)
    if value < 0 and not is_negative_part and any(map(str.isdigit, figures)) and set(figures) & set("123456789"):
        figures = f"-{figures}"
    return " ".join(figures.split())


def format_text(text: str, code: str) -> str:
    """Apply a cell's format to a text. The format may hide the text or add words."""
    if code in ("General", "@"):
        return text
    sections = sections_of(code) if "@" in code or code.count(";") >= 3 else ()
    last = sections[-1] if len(sections) == 4 or (sections and sections[-1].has("text")) else None
    if last is None:
        return text
    return "".join(text if token.kind == "text" else token.text for token in last.tokens).strip()


def is_date_format(code: str) -> bool:
    """Whether a format shows dates or times."""
    return sections_of(code)[0].is_date


def general(value: float, language: Language = UNKNOWN) -> str:
    """Write a number in the format General: whole numbers in full, other numbers with the digits a cell shows."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    size = abs(value)
    if size >= 1e11 or size < 1e-9:
        text = f"{value:.5E}"
        mantissa, _, exponent = text.partition("E")
        text = f"{mantissa.rstrip('0').rstrip('.')}E{exponent}"
    elif size < 1:
        text = f"{value:.9f}".rstrip("0").rstrip(".")
    else:
        text = f"{value:.{GENERAL_FIGURES}g}"
    return text.replace(".", language.point)


@lru_cache(maxsize=2048)
def sections_of(code: str) -> tuple[FormatSection, ...]:
    """Parse a number format into sections."""
    return tuple(map(_section, _split(code)))


def _split(code: str) -> list[str]:
    parts, start, place = [], 0, 0
    while place < len(code):
        sign = code[place]
        if sign == '"':
            end = code.find('"', place + 1)
            place = len(code) if end < 0 else end
        elif sign in "\\_*":
            place += 1
        elif sign == "[":
            end = code.find("]", place)
            place = place if end < 0 else end
        elif sign == ";":
            parts.append(code[start:place])
            start = place + 1
        place += 1
    return [*parts, code[start:]][:4]


def _section(source: str) -> FormatSection:
    tokens: list[Token] = []
    condition: tuple[str, float] | None = None
    language: Language | None = None
    has_system_date = False
    for part in PARTS.finditer(source):
        kind = part.lastgroup or "other"
        text = part[kind]
        if kind in ("quoted", "escaped"):
            tokens.append(Token("literal", text))
        elif kind == "space":
            tokens.append(Token("literal", " "))
        elif kind == "fill":
            # It moves a sign or a currency to the left edge of the cell: "-      5.00".
            is_after_word = bool(tokens) and tokens[-1].kind == "literal" and tokens[-1].text[-1:].isalnum()
            tokens.append(Token("literal", " " if is_after_word else ""))
        elif kind == "bracket":
            if match := CURRENCY.fullmatch(text):
                number = int(match["language"] or "0", 16)
                has_system_date = has_system_date or number == SYSTEM_DATE
                language = language or language_of_format(number)
                tokens.append(Token("literal", match["sign"]))
            elif match := CONDITION.fullmatch(text):
                condition = match["sign"], float(match["number"].rstrip(".") or 0)
            elif ELAPSED.fullmatch(text):
                tokens.append(Token("elapsed", text.lower()))
        elif kind == "noon":
            tokens.append(Token("noon", text))
        elif kind == "era":
            continue
        elif kind == "date":
            tokens.append(Token("date", text.lower()))
        elif kind == "exponent":
            tokens.append(Token("exponent", text))
        elif kind == "other":
            tokens.append(
                Token(
                    {".": "point", ",": "group", "%": "percent", "/": "slash", "@": "text"}.get(text, "literal"), text
                )
            )
        else:
            tokens.append(Token(kind, text))
    is_date = has_system_date or any(token.kind in ("date", "elapsed", "noon") for token in tokens)
    if has_system_date:
        # The computer's setting replaces the format's date; the time is kept.
        hours = next((place for place, token in enumerate(tokens) if token.text[:1] == "h"), len(tokens))
        tokens = [Token("date", "system"), *([Token("literal", " ")] if hours < len(tokens) else []), *tokens[hours:]]
    return FormatSection(tuple(tokens), condition, language, is_date, source)


def _choose_section(sections: Sequence[FormatSection], value: float) -> tuple[FormatSection, bool]:
    """Choose the format's section for a value. Also returns whether a negative number is shown without a sign."""
    numeric = [section for section in sections if not section.has("text")] if len(sections) > 1 else list(sections)
    if not numeric:
        return sections[0], False
    if any(section.condition for section in numeric):
        for section in numeric:
            if section.condition is None or COMPARED[section.condition[0]](value, section.condition[1]):
                sign, bound = section.condition or ("", 0.0)
                # The last section is for the rest: only below zero, if the first section takes the rest.
                is_rest = section.condition is None and section is not numeric[0] and _takes_positive(numeric[0])
                return section, (sign in ("<", "<=") and bound <= 0) or is_rest
        return numeric[-1], False
    if value < 0 and len(numeric) > 1:
        return numeric[1], True
    if value == 0 and len(numeric) > 2:
        return numeric[2], False
    return numeric[0], False


def _takes_positive(section: FormatSection) -> bool:
    return section.condition is not None and section.condition[0] in (">", ">=") and section.condition[1] <= 0


# Numbers


def _number(value: float, section: FormatSection, language: Language) -> str:
    tokens = list(section.tokens)
    if section.has("general"):
        return "".join(general(value, language) if t.kind == "general" else t.text for t in tokens)
    if not section.has("digit"):
        return "".join(general(value, language) if t.kind == "text" else t.text for t in tokens)
    slash = next((place for place, token in enumerate(tokens) if token.kind == "slash"), None)
    if slash is not None and _is_fraction(tokens, slash):
        return _fraction(value, tokens, slash)
    if section.has("exponent"):
        return _scientific(value, tokens, language)
    amount = _excel_precision(value) * Decimal(100) ** sum(token.kind == "percent" for token in tokens)
    digits = [place for place, token in enumerate(tokens) if token.kind == "digit"]
    point = next((place for place, token in enumerate(tokens) if token.kind == "point"), len(tokens))
    integer_places = [place for place in digits if place < point]
    decimals = [place for place in digits if place > point]
    is_grouped = False
    for place, token in enumerate(tokens):
        if token.kind != "group":
            continue
        tokens[place] = Token("literal", "")
        if integer_places and integer_places[0] < place < integer_places[-1]:
            is_grouped = True
        elif digits and place > digits[0] and not any(t.text for t in tokens[_last_before(digits, place) + 1 : place]):
            # Right after the figures, each comma divides the number by a thousand.
            amount /= 1000
        else:
            tokens[place] = Token("literal", ",")
    rounded = _round(amount, len(decimals))
    before, _, after = f"{rounded:f}".partition(".")
    filled = _fill_integer(
        before.lstrip("0"), [tokens[place].text for place in integer_places], language if is_grouped else None
    )
    for place, text in zip(integer_places, filled, strict=True):
        tokens[place] = Token("literal", text)
    if point < len(tokens):
        decimal_figures = _fill_decimals(after, [tokens[place].text for place in decimals])
        for place, text in zip(decimals, decimal_figures, strict=True):
            tokens[place] = Token("literal", text)
        # "25." becomes "25"; "25.-" stays.
        tokens[point] = Token("literal", language.point if any(decimal_figures) or not decimals else "")
        if not integer_places:
            tokens[point] = Token("literal", f"{before.lstrip('0')}{tokens[point].text}")
    return "".join(token.text for token in tokens)


def _last_before(places: Sequence[int], place: int) -> int:
    return max(earlier for earlier in places if earlier < place)


def _excel_precision(value: float) -> Decimal:
    """Round to the 15 significant digits which Excel keeps."""
    return Decimal(f"{value:.15g}")


def _round(amount: Decimal, places: int) -> Decimal:
    try:
        return amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    except InvalidOperation:  # longer than the context's precision
        return amount


def _fill_integer(figures: str, places: Sequence[str], language: Language | None) -> list[str]:
    """Distribute a whole number's digits over a format's digit placeholders, from the right.

    The first placeholder takes all digits which remain.
    """
    filled = [""] * len(places)
    remaining = figures
    count = 0
    for index in range(len(places) - 1, -1, -1):
        place_figures = (remaining if index == 0 else remaining[-1:]) or ("0" if places[index] == "0" else "")
        remaining = "" if index == 0 else remaining[:-1]
        text = ""
        for figure in reversed(place_figures):
            if language is not None and count and count % 3 == 0:
                text = language.group + text
            text = figure + text
            count += 1
        filled[index] = text
    return filled


def _fill_decimals(figures: str, places: Sequence[str]) -> list[str]:
    figures = figures.ljust(len(places), "0")[: len(places)]
    least = max((index + 1 for index, place in enumerate(places) if place == "0"), default=0)
    needed = max(least, len(figures.rstrip("0")))
    return [figure if index < needed else "" for index, figure in enumerate(figures)]


def _is_fraction(tokens: Sequence[Token], slash: int) -> bool:
    before = next((token for token in reversed(tokens[:slash]) if token.kind != "literal"), None)
    after = next((token for token in tokens[slash + 1 :] if token.text.strip()), None)
    return (
        before is not None
        and before.kind == "digit"
        and after is not None
        and (after.kind == "digit" or after.text.isdigit())
    )


def _fraction(value: float, tokens: Sequence[Token], slash: int) -> str:
    start = slash
    while start and tokens[start - 1].kind == "digit":
        start -= 1
    after = "".join(token.text for token in tokens[slash + 1 :])
    below = (re.match(r"[\d#?]+", after) or [""])[0]
    has_integer = any(token.kind == "digit" for token in tokens[:start])
    exact = Fraction(_excel_precision(value))
    integer = int(exact) if has_integer else 0
    rest = exact - integer
    if below.isdigit() and int(below):
        over, under = round(rest * int(below)), int(below)
    else:
        near = rest.limit_denominator(10 ** min(len(below), 4) - 1 or 9)
        over, under = near.numerator, near.denominator
    if over == under and has_integer:
        integer, over = integer + 1, 0
    parts = [str(integer)] if has_integer and (integer or not over) else []
    return " ".join([*parts, *([f"{over}/{under}"] if over or not has_integer else [])])


def _scientific(value: float, tokens: Sequence[Token], language: Language) -> str:
    place = next(place for place, token in enumerate(tokens) if token.kind == "exponent")
    point = next((p for p, token in enumerate(tokens[:place]) if token.kind == "point"), place)
    width = max(sum(token.kind == "digit" for token in tokens[:point]), 1)
    decimals = sum(token.kind == "digit" for token in tokens[point:place])
    figures = max(sum(token.kind == "digit" for token in tokens[place:]), 1)
    amount = _excel_precision(value)
    exponent = amount.adjusted() if amount else 0
    exponent = exponent // width * width if width > 1 else exponent
    mantissa = _round(amount.scaleb(-exponent), decimals)
    if mantissa >= Decimal(10) ** width:
        exponent += width
        mantissa = _round(amount.scaleb(-exponent), decimals)
    sign = "-" if exponent < 0 else "+" if "+" in tokens[place].text else ""
    return f"{mantissa:f}".replace(".", language.point) + f"E{sign}{abs(exponent):0{figures}d}"


# Dates


@dataclass(frozen=True)
class Moment:
    """A date and time. `day` is `None` for 29 February 1900, a day which only exists in Excel."""

    day: date | None
    seconds: int
    thousandths: int
    serial: float

    @property
    def year(self) -> int:
        return 1900 if self.day is None else self.day.year

    @property
    def month(self) -> int:
        return 2 if self.day is None else self.day.month

    @property
    def day_of_month(self) -> int:
        return 29 if self.day is None else self.day.day


def moment_of(value: float, *, is_1904: bool = False, keeps_fractions: bool = False) -> Moment | None:
    """Convert a stored number to a day and time, or `None` for years which Excel does not know."""
    if not 0 <= value < LAST_DAY + 1:
        return None
    thousandths = round(value * SECONDS * 1000)
    if not keeps_fractions:
        thousandths = (thousandths + 500) // 1000 * 1000
    number, rest = divmod(thousandths, SECONDS * 1000)
    day: date | None
    try:
        if is_1904:
            day = date(1904, 1, 1) + timedelta(days=number)
        elif number == 60:
            day = None
        else:
            day = date(1899, 12, 31 if number < 60 else 30) + timedelta(days=number)
    except OverflowError:
        return None
    return Moment(day, rest // 1000, rest % 1000, value)


def _date(value: float, section: FormatSection, language: Language, *, is_1904: bool) -> str:
    tokens = list(section.tokens)
    has_fractions = any(
        token.kind == "point" and place + 1 < len(tokens) and tokens[place + 1].kind == "digit"
        for place, token in enumerate(tokens)
    )
    elapsed = section.has("elapsed")
    moment = moment_of(abs(value) if elapsed else value, is_1904=is_1904, keeps_fractions=has_fractions)
    if moment is None:
        return general(value, language)
    has_noon = section.has("noon")
    parts = []
    for place, token in enumerate(tokens):
        if token.kind == "date":
            parts.append(_date_part(token.text, moment, tokens, place, language, has_noon=has_noon))
        elif token.kind == "elapsed":
            total = round(moment.serial * SECONDS)
            unit = {"h": 3600, "m": 60, "s": 1}[token.text[0]]
            parts.append(f"{total // unit:0{len(token.text)}d}")
        elif token.kind == "noon":
            names = ("A", "P") if token.text.lower() == "a/p" else language.noon
            parts.append(names[moment.seconds >= SECONDS // 2])
        elif token.kind == "digit":
            count = sum(t.kind == "digit" for t in tokens[:place])
            parts.append(f"{moment.thousandths:03d}"[count : count + 1] or "0")
        else:
            parts.append("" if token.kind == "text" else token.text)
    date = " ".join("".join(parts).split())
    return f"-{date}" if value < 0 and elapsed else date


def _date_part(
    part: str, moment: Moment, tokens: Sequence[Token], place: int, language: Language, *, has_noon: bool
) -> str:
    unit, width = part[0], len(part)
    if part == "system":
        section = replace(sections_of(language.day)[0], language=language)
        return "".join(
            _date_part(t.text, moment, section.tokens, p, language, has_noon=False) if t.kind == "date" else t.text
            for p, t in enumerate(section.tokens)
        )
    if unit == "m" and _is_minute(tokens, place):
        return f"{moment.seconds // 60 % 60:0{min(width, 2)}d}"
    if unit in "hs":
        hour = moment.seconds // 3600
        number = (hour % 12 or 12 if has_noon else hour) if unit == "h" else moment.seconds % 60
        return f"{number:0{min(width, 2)}d}"
    if unit in "ye":
        return f"{moment.year % 100:02d}" if unit == "y" and width <= 2 else str(moment.year)
    if unit == "b":
        return str(moment.year + 543)[-2 if width <= 2 else 0 :]
    if unit == "m":
        if width <= 2:
            return f"{moment.month:0{width}d}"
        name = (language.short_months if width == 3 else language.months)[moment.month - 1]
        return name[:1] if width == 5 else name
    if unit == "d" and width <= 2:
        return f"{moment.day_of_month:0{width}d}"
    weekday = 2 if moment.day is None else moment.day.weekday()
    return (language.short_days if width == 3 else language.days)[weekday]


def _is_minute(tokens: Sequence[Token], place: int) -> bool:
    """Whether "m" in a format means minutes, not months. This is so after hours and before seconds."""
    if len(tokens[place].text) > 2:
        return False
    before = next((t for t in reversed(tokens[:place]) if t.kind in ("date", "elapsed")), None)
    after = next((t for t in tokens[place + 1 :] if t.kind in ("date", "elapsed")), None)
    return (before is not None and before.text[0] == "h") or (after is not None and after.text[0] == "s")
