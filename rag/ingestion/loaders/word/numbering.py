"""Write the numbers and bullets in front of paragraphs, which Word adds and does not store in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from rag.ingestion.loaders.word.package import child, is_on, name_of, number, value
from rag.ingestion.loaders.word.styles import Styles, run_properties
from rag.ingestion.loaders.word.symbols import with_symbols

BULLET = "-"
#: Bullets with a meaning.
TICKS = frozenset("☐☑☒✓✔✗✘□")
#: Word has nine levels, and no label this long.
LEVELS, LONGEST_LABEL = 9, 100
PLACE = re.compile(r"%([1-9])")


@dataclass
class Level:
    """A list level. The number restarts after each paragraph on the level `restart`, counted from 1; 0 means never."""

    start: int = 1
    form: str = "decimal"
    text: str = ""
    restart: int | None = None
    is_legal: bool = False
    suffix: str = "tab"
    is_hidden: bool = False
    style: str = ""
    font: str = ""


@dataclass
class ListForm:
    """A list definition: the levels, and each level's current number."""

    levels: dict[int, Level] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)


@dataclass
class ListUse:
    """A list in the document: the definition, changed levels, and start numbers not yet used."""

    form: ListForm
    levels: dict[int, Level] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)

    def level(self, place: int) -> Level | None:
        return self.levels.get(place) or self.form.levels.get(place)


class Numbering:
    """A document's lists. Call `label` for the paragraphs in order."""

    def __init__(self, root: Any, styles: Styles) -> None:
        self._styles = styles
        self._uses: dict[str, ListUse] = {}
        elements = [] if root is None else list(root)
        forms = {
            value(element, "abstractNumId") or "": element
            for element in elements
            if name_of(element.tag) == "w:abstractNum"
        }
        uses = {value(element, "numId") or "": element for element in elements if name_of(element.tag) == "w:num"}
        read: dict[str, ListForm] = {}
        for number_id, use in uses.items():
            form_id = self._form_of(use, forms, uses)
            if form_id not in read:
                read[form_id] = ListForm({
                    place: level for place, level in map(_level, _levels_in(forms.get(form_id))) if level is not None
                })  # fmt: skip
            self._uses[number_id] = _use(use, read[form_id])

    def _form_of(self, use: Any, forms: dict[str, Any], uses: dict[str, Any]) -> str:
        """Return the id of a list's definition.

        The id is stored with the list. If the definition names a list style, the style's definition is used instead.
        """
        form_id = value(child(use, "w:abstractNumId")) or ""
        for _ in range(LEVELS):
            link = value(child(forms.get(form_id), "w:numStyleLink"))
            named = uses.get(self._styles.style(link).number_id or "") if link else None
            if named is None:
                break
            form_id = value(child(named, "w:abstractNumId")) or ""
        return form_id

    def label(self, properties: Any, style_id: str, language: str = "") -> str:
        """Count a paragraph, and return its number or bullet with a space; "" for a paragraph outside lists."""
        style = self._styles.style(style_id)
        list_properties = child(properties, "w:numPr")
        number_id = value(child(list_properties, "w:numId")) or style.number_id
        use = self._uses.get(number_id or "")
        if use is None:
            return ""
        place = number(child(list_properties, "w:ilvl"))
        if place is None:
            place = self._level_of_style(use, style.chain) if style.number_id else style.number_level
        place = min(max(place or 0, 0), LEVELS - 1)
        level = use.level(place)
        if level is None:
            return ""
        self._count(use, place, level)
        return _label(use, place, level, language)

    def _level_of_style(self, use: ListUse, chain: tuple[str, ...]) -> int | None:
        for style_id in chain:
            for place in range(LEVELS):
                level = use.level(place)
                if level is not None and level.style == style_id:
                    return place
        return self._styles.style(chain[0]).number_level if chain else None

    def _count(self, use: ListUse, place: int, level: Level) -> None:
        counts = use.form.counts
        # Skipped levels above count as started, like in Word and LibreOffice.
        for above in range(place):
            if above not in counts and (skipped := use.level(above)) is not None:
                counts[above] = use.starts.pop(above, skipped.start)
        if place in use.starts:
            counts[place] = use.starts.pop(place)
        else:
            counts[place] = counts[place] + 1 if place in counts else level.start
        for deeper in range(place + 1, LEVELS):
            below = use.level(deeper)
            if below is not None and place < (deeper if below.restart is None else below.restart):
                counts.pop(deeper, None)


def _levels_in(form: Any) -> list[Any]:
    return [] if form is None else [element for element in form if name_of(element.tag) == "w:lvl"]


def _level(element: Any) -> tuple[int, Level | None]:
    place = number(element, "ilvl")
    if place is None:
        return 0, None
    start = number(child(element, "w:start"))
    return place, Level(
        start=1 if start is None else start,
        form=value(child(element, "w:numFmt")) or "decimal",
        text=value(child(element, "w:lvlText")) or "",
        restart=number(child(element, "w:lvlRestart")),
        is_legal=is_on(child(element, "w:isLgl")),
        suffix=value(child(element, "w:suff")) or "tab",
        is_hidden=is_on(child(child(element, "w:rPr"), "w:vanish")),
        style=value(child(element, "w:pStyle")) or "",
        font=run_properties(child(element, "w:rPr")).get("font", ""),
    )


def _use(element: Any, form: ListForm) -> ListUse:
    use = ListUse(form)
    for override in element:
        place = number(override, "ilvl")
        if name_of(override.tag) != "w:lvlOverride" or place is None:
            continue
        for _, level in map(_level, _levels_in(override)):
            if level is not None:
                use.levels[place] = level
        start = number(child(override, "w:startOverride"))
        if start is not None:
            use.starts[place] = start
    return use


def _label(use: ListUse, place: int, level: Level, language: str) -> str:
    if level.is_hidden:
        return ""
    if level.form == "bullet":
        sign = with_symbols(level.text, level.font)
        return f"{sign if sign in TICKS else BULLET} "

    def numbered(match: re.Match[str]) -> str:
        at = int(match[1]) - 1
        other = use.level(at)
        count = use.form.counts.get(at, other.start if other else 1)
        return formatted(count, "decimal" if level.is_legal or other is None else other.form, language)

    label = PLACE.sub(numbered, level.text).strip()[:LONGEST_LABEL]
    return f"{label}{'' if level.suffix == 'nothing' else ' '}" if label else ""


# Forms of numbers

ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
#: Letters used as numbers, doubled after the last letter: "z" is followed by "aa".
ALPHABETS = {
    "lowerLetter": "abcdefghijklmnopqrstuvwxyz",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщэюя",
    "ganada": "가나다라마바사아자차카타파하",
    "chosung": "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "aiueo": "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
    "iroha": "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセスン",
    "arabicAlpha": "أبتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "arabicAbjad": "أبجدهوزحطيكلمنسعفصقرشتثخذضظغ",
    "hebrew1": "אבגדהוזחטיכלמנסעפצקרשת",
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
}
#: Forms which differ only in width or case.
SAME = {"aiueoFullWidth": "aiueo", "irohaFullWidth": "iroha", "hebrew2": "hebrew1", "decimalHalfWidth": "decimal"}
#: Signs for numbers, up to the last sign.
SIGNS = {
    "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "decimalEnclosedCircleChinese": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "decimalEnclosedParen": "⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽⑾⑿⒀⒁⒂⒃⒄⒅⒆⒇",
    "decimalEnclosedFullstop": "⒈⒉⒊⒋⒌⒍⒎⒏⒐⒑⒒⒓⒔⒕⒖⒗⒘⒙⒚⒛",
    "ideographEnclosedCircle": "㊀㊁㊂㊃㊄㊅㊆㊇㊈㊉",
    "chicago": "*†‡§",
}
#: Digits, and signs for ten, hundred and thousand, for numbers in words.
COUNTED = {
    "koreanCounting": ("영일이삼사오육칠팔구", "십백천"),
    "koreanLegal": ("영일이삼사오육칠팔구", "십백천"),
    **dict.fromkeys(
        ("japaneseCounting", "chineseCounting", "chineseCountingThousand", "taiwaneseCounting",
         "taiwaneseCountingThousand"),
        ("〇一二三四五六七八九", "十百千"),
    ),
    "japaneseLegal": ("〇壱弐参四伍六七八九", "拾百阡"),
    "chineseLegalSimplified": ("零壹贰叁肆伍陆柒捌玖", "拾佰仟"),
}  # fmt: skip
DIGITS = {
    "koreanDigital": "영일이삼사오육칠팔구",
    "koreanDigital2": "零一二三四五六七八九",
    "ideographDigital": "〇一二三四五六七八九",
    "japaneseDigitalTenThousand": "〇一二三四五六七八九",
    "taiwaneseDigital": "○一二三四五六七八九",
    "decimalFullWidth": "０１２３４５６７８９",
    "hindiNumbers": "०१२३४५६७८९",
    "thaiNumbers": "๐๑๒๓๔๕๖๗๘๙",
}
WORDS = (
    ("One", "First"), ("Two", "Second"), ("Three", "Third"), ("Four", "Fourth"), ("Five", "Fifth"), ("Six", "Sixth"),
    ("Seven", "Seventh"), ("Eight", "Eighth"), ("Nine", "Ninth"), ("Ten", "Tenth"), ("Eleven", "Eleventh"),
    ("Twelve", "Twelfth"), ("Thirteen", "Thirteenth"), ("Fourteen", "Fourteenth"), ("Fifteen", "Fifteenth"),
    ("Sixteen", "Sixteenth"), ("Seventeen", "Seventeenth"), ("Eighteen", "Eighteenth"), ("Nineteen", "Nineteenth"),
    ("Twenty", "Twentieth"),
)  # fmt: skip


def formatted(count: int, form: str, language: str = "") -> str:
    """Write a number in a Word number format. If the format is unknown or does not fit the number, digits are used."""
    form = SAME.get(form, form)
    if form == "none" or not 0 <= count < 1_000_000:
        return "" if form == "none" else str(count)
    if form == "decimalZero":
        return f"{count:02}"
    if form in ("upperRoman", "upperLetter", "russianUpper"):
        return formatted(count, f"lower{form[5:]}" if form[0] == "u" else "russianLower").upper()
    if form == "lowerRoman" and 0 < count < 4000:
        return roman(count)
    if (alphabet := ALPHABETS.get(form)) and count:
        return alphabet[(count - 1) % len(alphabet)] * min((count - 1) // len(alphabet) + 1, 9)
    if (signs := SIGNS.get(form)) and 0 < count <= len(signs):
        return signs[count - 1]
    if form in COUNTED and 0 < count < 10_000:
        return _spell_number(count, *COUNTED[form])
    if (digits := DIGITS.get(form)) is not None:
        return "".join(digits[int(figure)] for figure in str(count))
    if form in ("cardinalText", "ordinalText") and 0 < count <= len(WORDS) and language in ("", "en"):
        return WORDS[count - 1][form == "ordinalText"]
    if form == "ordinal":
        return _ordinal(count, language)
    return str(count)


def roman(count: int) -> str:
    """Write a number from 1 to 3,999 in lower-case Roman figures."""
    numeral = ""
    for size, figure in ROMAN:
        times, count = divmod(count, size)
        numeral += figure * times
    return numeral


def _spell_number(count: int, digits: str, tens: str) -> str:
    numeral = ""
    for power in range(3, -1, -1):
        figure = count // 10**power % 10
        if figure:
            # Ten is written without its digit one.
            numeral += ("" if power and figure == 1 else digits[figure]) + (tens[power - 1] if power else "")
    return numeral


def _ordinal(count: int, language: str) -> str:
    if language in ("", "en"):
        ending = "th" if 10 < count % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
        return f"{count}{ending}"
    if language == "fr":
        return f"{count}{'er' if count == 1 else 'e'}"
    return f"{count}º" if language in ("es", "it", "pt") else f"{count}."
