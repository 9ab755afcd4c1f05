"""Show the reader's language: sentences from gettext catalogues, error messages, formats.

The catalogues are `rag/locales/LANGUAGE/LC_MESSAGES/hr_assistant.po`, loaded when their language is first used. Several
people are served concurrently, so the language never belongs to the process: a request has it in its context, a page in
its session (see `rag.ui.language`). Commands and programs set no language, and get English.
"""

from __future__ import annotations

import gettext as standard
import io
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Babel is imported on use: a command in English without formatted numbers does not need it.
if TYPE_CHECKING:
    from babel import Locale

FOLDER = Path(__file__).resolve().parent / "locales"
DOMAIN = "hr_assistant"
ENGLISH = "en"
#: The interface languages, named in their language, because people look for these names.
LANGUAGES = {
    "en": "English",
    "de": "Deutsch",
    "es": "Español",
    "fr": "Français",
    "it": "Italiano",
    "nl": "Nederlands",
    "pl": "Polski",
    "pt": "Português",
    "tr": "Türkçe",
    "ar": "العربية",
    "ja": "日本語",
    "ko": "한국어",
    "zh": "中文",
}
RIGHT_TO_LEFT = frozenset({"ar"})
#: English dates start with the day, which nobody misreads.
LOCALES = {"en": "en_GB", "zh": "zh_Hans_CN"}
#: gettext's separator between a context and its word.
CONTEXT = "\x04"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
#: After a shortened list.
MORE = " and more"
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
#: Longest text to compare with a sentence containing placeholders.
LONGEST_SENTENCE = 2000
#: Fewest words needed to recognise a sentence, besides its placeholders.
FEWEST_WORDS = 3
#: Answers have several notices in a row, and documents several remarks.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
SENTENCE = re.compile(r"(?=.*[^\W\d_]{2}).*[.!?][”)]*|\(.*\)", re.DOTALL)
HEAD = re.compile(r"[^\s{]+ ?[^{]*(\{\w+\}[^{]*)?: \{\w+\}")
WORD, BLANK = re.compile(r"\S*"), re.compile(r"\s*")
#: Formats by placeholder.
VALUES = {"count": r"\d[\d,.]*", "page": r"\d+", "pages": rf"\d[\d–, ]*(?:{MORE})?"}

_chosen: ContextVar[str] = ContextVar("language", default="")
_finders: list[Callable[[], str]] = []
_reading = threading.Lock()


def current() -> str:
    """Return the current reader's language code (ISO 639-1)."""
    if chosen := _chosen.get():
        return chosen
    for find in _finders:
        if language := find():
            return language
    return ENGLISH


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Use this language inside the `with` block, and in functions called there."""
    token = _chosen.set(language if language in LANGUAGES else ENGLISH)
    try:
        yield
    finally:
        _chosen.reset(token)


def speak(language: str) -> None:
    """Use this language from now on in this context (a `contextvars` context)."""
    _chosen.set(language if language in LANGUAGES else ENGLISH)


def ask_also(find: Callable[[], str]) -> None:
    """Register a function which returns the language. It is called if the context has no language."""
    if find not in _finders:
        _finders.append(find)


def accepted(header: str) -> list[str]:
    """Return the languages in an Accept-Language header in two-letter codes, preferred first."""
    weighed: dict[str, float] = {}
    for part in header[:1000].split(","):
        tag, _, weight = part.partition(";")
        name = tag.strip().lower().partition("-")[0]
        try:
            value = float(weight.strip().removeprefix("q=") or 1) if weight else 1.0
        except ValueError:
            value = 0.0
        if name and value > 0:
            weighed.setdefault(name, value)
    return sorted(weighed, key=lambda name: -weighed[name])


def choose(*wishes: str | Iterable[str]) -> str:
    """Return the first of these languages which the interface supports, else English."""
    for wish in wishes:
        for name in [wish] if isinstance(wish, str) else wish:
            if name in LANGUAGES:
                return name
    return ENGLISH


def direction(language: str | None = None) -> str:
    """Return `rtl` for a right-to-left language, else `ltr`."""
    return "rtl" if (language or current()) in RIGHT_TO_LEFT else "ltr"


def is_right_to_left(text: str) -> bool:
    """Whether the first letter in a text belongs to a right-to-left script."""
    first = next((kind for c in text if (kind := unicodedata.bidirectional(c)) in ("L", "R", "AL")), "L")
    return first != "L"


# Sentences


def N_(message: str) -> str:
    """Mark a sentence for the catalogues, and return it unchanged. It is translated when it is shown."""
    return message


def NP_(context: str, message: str) -> str:
    """Mark an ambiguous word for the catalogues, with its meaning here (`context`). `_` translates the result."""
    return f"{context}{CONTEXT}{message}"


def _(message: str, /, **values: Any) -> str:
    """Translate a sentence into the reader's language, and fill in each `{name}` from `values`."""
    if not message:
        return ""  # For the empty text, gettext returns the catalogue's header.
    english = message.rpartition(CONTEXT)[2]
    text = _catalogue(current()).gettext(message)
    return _filled(english if text == message else text, english, values)


def pgettext(context: str, message: str, /, **values: Any) -> str:
    """Return an ambiguous word in the reader's language; `context` gives the word's meaning here."""
    return _(NP_(context, message), **values)


def ngettext(one: str, many: str, count: int, /, **values: Any) -> str:
    """Return the singular or plural sentence; `{count}` is the number in the reader's format."""
    language = current()
    values = {"count": number(count), **values}
    return _filled(_catalogue(language).ngettext(one, many, count), one if count == 1 else many, values)


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun in English, for the command line.

    `many` is the plural, by default `one` with an s.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def translated(sentence: str) -> str:
    """Return an English sentence created earlier, for example a stored error, in the reader's language.

    A sentence with filled-in values is matched with the catalogue, and its translation is filled with the same values.
    Several consecutive sentences, for example an answer's notices, are translated separately. A sentence without a
    translation stays unchanged.
    """
    language = current()
    if language == ENGLISH or not sentence.strip():
        return sentence
    catalogue = _catalogue(language)
    translation = catalogue.gettext(sentence)
    return translation if translation != sentence else _refilled(sentence, language)


def meant_by(text: str, messages: Iterable[str]) -> str:
    """Return the English message whose translation in any interface language is `text`, or ""."""
    originals = list(messages)
    for language in LANGUAGES:
        for message in originals:
            with speaking(language):
                if text == _(message):
                    return message
    return ""


@lru_cache(maxsize=4096)
def _refilled(sentence: str, language: str) -> str:
    row, is_complete = _translate_sentences(sentence, language)
    if is_complete:
        return row
    swallowing = ""
    for original in _beginnings(language).filled if len(sentence) <= LONGEST_SENTENCE else ():
        if match := original.pattern.fullmatch(sentence):
            values = match.groupdict()
            translation = _filled_again(original.message, sentence, values, language)
            if not any(SENTENCE_END.search(value) for value in values.values()):
                return translation
            swallowing = swallowing or translation
    return row if row != sentence else swallowing or sentence


def _filled_again(
    message: str,
    sentence: str,
    values: dict[str, str],
    language: str,
    translated_values: Mapping[str, str] | None = None,
) -> str:
    """Translate a sentence, and fill the translation with the values from the sentence.

    Values are translated too, except quotations and names.
    """
    with speaking(language):
        # Quotations and names are not translated.
        filled = {n: v if n == "names" or f"“{{{n}}}”" in message else _value(v) for n, v in values.items()}
    return _filled(_catalogue(language).gettext(message), sentence, {**filled, **(translated_values or {})})


def _value(value: str) -> str:
    if THOUSANDS.fullmatch(value):
        return number(int(value.replace(",", "")))
    if value.endswith(MORE):
        return _("{items} and more", items=value.removesuffix(MORE))
    words, catalogue = value.split(", "), getattr(_catalogue(current()), "_catalog", {})
    return ", ".join(map(_, words)) if all(word in catalogue for word in words) else translated(value)


def _translate_sentences(text: str, language: str) -> tuple[str, bool]:
    translations, place, is_complete = list[str](), 0, True
    while place < len(text):
        translation = _sentence_at(text, place, language)
        if translation is None:
            is_complete = False
            translation = _named_sentence_at(text, place, language) or (text[place : (end := _end(text, place))], end)
        translations.append(translation[0])
        place = translation[1]
        if blank := BLANK.match(text, place):
            translations.append(blank[0])
            place = blank.end()
    return "".join(translations), is_complete


def _end(text: str, place: int) -> int:
    end = SENTENCE_END.search(text, place)
    return end.start() if end else len(text)


def _named_sentence_at(text: str, place: int, language: str) -> tuple[str, int] | None:
    """Translate the sentence after a name and a colon: "Leave guide: This page is blank."

    Returns the translation, and the position where the sentence ends.
    """
    for colon in re.finditer(": ", text[place : _end(text, place)]):
        if translation := _sentence_at(text, place + colon.end(), language):
            return text[place : place + colon.end()] + translation[0], translation[1]
    return None


def _sentence_at(text: str, place: int, language: str) -> tuple[str, int] | None:
    """Translate the sentence which starts at this position. Return the translation, and where the sentence ends."""
    first = WORD.match(text, place)
    word, beginnings = first[0] if first else "", _beginnings(language)
    for original in beginnings.by_word.get(word, ()):
        if translation := original.translate_at(text, place, language):
            return translation
    for head in beginnings.heads.get(word, ()):
        if values := head.values(text, place):
            start = place + len(values.pop(""))
            behind, end = _sentence_at(text, start, language) or _rest(text, start, language)
            last_value = {PLACEHOLDER.findall(head.message)[-1]: behind}
            return _filled_again(head.message, text[place:end], values, language, last_value), end
    piece = text[place : _end(text, place)]
    for original in beginnings.open:
        if (original.second in piece or original.is_quoted) and (
            translation := original.translate_at(text, place, language)
        ):
            return translation
    return None


def _rest(text: str, place: int, language: str) -> tuple[str, int]:
    end = _end(text, place)
    with speaking(language):
        return _value(text[place:end]), end


@dataclass(frozen=True)
class _Original:
    message: str
    is_head: bool = False

    def values(self, text: str, place: int) -> dict[str, str]:
        """Match a text with the sentence at this position, and return the values of the placeholders.

        The entry "" has the matched text. Without a match, the result is {}.
        """
        match = self.pattern.match(text, place, place + LONGEST_SENTENCE)
        values = match.groupdict() if match else {}
        # Only quotations may contain several sentences.
        if any(SENTENCE_END.search(v) and f"“{{{name}}}”" not in self.message for name, v in values.items()):
            return {}
        return {**values, "": match[0]} if match else {}

    def translate_at(self, text: str, place: int, language: str) -> tuple[str, int] | None:
        """Translate the text at this position. Return the translation, and where the text ends."""
        values = self.values(text, place)
        full_sentence = values.pop("", "")
        return (
            (_filled_again(self.message, full_sentence, values, language), place + len(full_sentence))
            if full_sentence
            else None
        )

    @property
    def is_quoted(self) -> bool:
        return self.message.startswith("“")

    @cached_property
    def second(self) -> str:
        """The sentence's first literal text after a placeholder at the beginning."""
        return SENTENCE_END.split(PLACEHOLDER.split(self.message)[2])[0]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        shape = self.message[: self.message.rindex("{")] if self.is_head else self.message
        pieces, seen = [], set[str]()
        for place, piece in enumerate(PLACEHOLDER.split(shape)):
            if place % 2 == 0:
                pieces.append(re.escape(piece))
            elif piece in seen:
                pieces.append(f"(?P={piece})")
            else:
                seen.add(piece)
                pieces.append(f"(?P<{piece}>{VALUES.get(piece, '.+?')})")
        return re.compile("".join(pieces) + ("" if self.is_head else r"(?=\s|$)"), re.DOTALL)


@dataclass(frozen=True)
class _Beginnings:
    by_word: dict[str, list[_Original]] = field(default_factory=dict)
    #: Beginnings before a sentence, like the page in "Page 4: This page is blank.".
    heads: dict[str, list[_Original]] = field(default_factory=dict)
    open: list[_Original] = field(default_factory=list)
    filled: list[_Original] = field(default_factory=list)


@cache
def _beginnings(language: str) -> _Beginnings:
    beginnings = _Beginnings()
    messages = [m for m in getattr(_catalogue(language), "_catalog", {}) if isinstance(m, str) and CONTEXT not in m]
    without_values = {message: PLACEHOLDER.sub("", message) for message in messages}
    for message in sorted(messages, key=lambda message: -len(without_values[message])):  # the most telling first
        word = message.partition(" ")[0]
        if HEAD.fullmatch(message):
            beginnings.heads.setdefault(word, []).append(_Original(message, is_head=True))
        original = _Original(message)
        if "{" in message:
            if len(without_values[message].split()) < FEWEST_WORDS and VALUES.keys().isdisjoint(
                PLACEHOLDER.findall(message)
            ):
                continue  # "{a} · {b}" fits anything
            beginnings.filled.append(original)
        if SENTENCE.fullmatch(message):
            (beginnings.open if "{" in word else beginnings.by_word.setdefault(word, [])).append(original)
    return beginnings


def _filled(text: str, english: str, values: dict[str, Any]) -> str:
    if not values:
        return text
    try:
        return text.format(**values)
    except (KeyError, IndexError, ValueError):  # A translator's error must not break the page.
        return english.format(**values)


@cache
def _read(language: str) -> standard.NullTranslations:
    path = FOLDER / language / "LC_MESSAGES" / f"{DOMAIN}.po"
    if language == ENGLISH or not path.exists():
        return standard.NullTranslations()

    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with path.open("rb") as file:
        catalogue = read_po(file, locale=language)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return standard.GNUTranslations(compiled)


def _catalogue(language: str) -> standard.NullTranslations:
    with _reading:
        return _read(language)


# Formats


@cache
def _locale(language: str) -> Locale:
    from babel import Locale

    return Locale.parse(LOCALES.get(language, language))


def locale() -> Locale:
    """Return the reader's locale, for Babel."""
    return _locale(current())


def number(value: float | Decimal, decimals: int | None = None) -> str:
    """Format `1,200` or `3.2` for the reader."""
    from babel import numbers

    if decimals is None:
        return str(numbers.format_decimal(value, locale=locale()))
    pattern = "#,##0" + ("." + "0" * decimals if decimals else "")
    return str(numbers.format_decimal(value, format=pattern, locale=locale()))


def percentage(share: float, decimals: int = 1) -> str:
    """Format a fraction, 0 to 1, like `77.2%`, in the reader's language."""
    from babel import numbers

    language = current()
    pattern = numbers_pattern(_locale(language))
    digits = "0" + ("." + "0" * decimals if decimals else "")
    return str(numbers.format_percent(share, format=re.sub(r"#,##0", f"#,##{digits}", pattern), locale=locale()))


def numbers_pattern(where: Locale) -> str:
    """Return the language's pattern for percentages, which shows the position of the percent sign."""
    return str(where.percent_formats[None].pattern)


def dollars(amount: Decimal, decimals: int) -> str:
    """Format an amount in US dollars for the reader."""
    from babel import numbers

    where = locale()
    pattern = str(where.currency_formats["standard"].pattern).partition(";")[0]
    pattern = re.sub(r"#,##0\.00", "#,##0." + "0" * decimals, pattern)
    symbol = "$" if current() != "zh" else "US$"
    # English speakers in all countries read dollars as “$”.
    amount_text = numbers.format_decimal(abs(amount), format=pattern.replace("¤", "\ue000"), locale=where)
    return ("-" if amount < 0 else "") + str(amount_text).replace("\ue000", symbol)


def duration(milliseconds: float | None, *, is_about: bool = False) -> str:
    """Format a duration like `340 ms`, `3.2 s`, `2 min 5 s`, `1 h 4 min`, `about 3.2 s`; a dash if it is unknown."""
    if milliseconds is None:
        return "–"
    if is_about:
        return _("about {time}", time=duration(milliseconds))
    if round(milliseconds) < 1000:
        return _("{number} ms", number=f"{milliseconds:.0f}")
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return _("{number} s", number=number(Decimal(f"{seconds:.1f}"), 1))
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return (
            _("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
            if rest
            else _("{minutes} min", minutes=minutes)
        )
    hours, minutes = divmod(minutes, 60)
    return _("{hours} h {minutes} min", hours=hours, minutes=minutes) if minutes else _("{hours} h", hours=hours)


def day(moment: date | datetime) -> str:
    """Format a day like `21 Nov 2026`, in the reader's language."""
    from babel import dates

    return str(dates.format_date(moment, "medium", locale=locale()))


def short_day(moment: date) -> str:
    """Format a day like `21 Nov`, where the year is known."""
    from babel import dates

    return str(dates.format_skeleton("MMMd", moment, locale=locale()))


def table_date(*, with_year: bool = True, with_time: bool = False) -> str:
    """Return the date format for tables in the reader's language, in Moment.js letters."""
    if current() == ENGLISH:
        written = "D MMM YYYY" if with_year else "D MMM"
    else:
        pattern = _locale(current()).datetime_skeletons["yMd" if with_year else "Md"].pattern
        written = pattern.replace("d", "D").replace("y", "YYYY")
    if with_time:
        written += ", HH:mm"
    # A table draws from the left: without an isolate, the marks in a right-to-left pattern mix up its numbers.
    return f"\u2067{written}\u2069" if "\u200f" in written else written


def clock(moment: datetime) -> str:
    """Format a time like `14:05`, in the reader's language."""
    if current() == ENGLISH:
        return f"{moment:%H:%M}"

    from babel import dates

    return str(dates.format_time(moment, "short", locale=locale()))


def listed(items: Iterable[str], *, style: str = "standard") -> str:
    """Join several items, in the reader's language: `a, b and c`."""
    from babel.lists import format_list

    return format_list(list(items), style=style, locale=locale())  # type: ignore[arg-type]
