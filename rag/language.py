"""Speak the language of the person who is served: sentences from gettext catalogues, sentences of errors, formats.

The catalogues are `rag/locales/LANGUAGE/LC_MESSAGES/hr_assistant.po`, read when their language is first asked for. Two
people are served at once, so the language is never one of the process: a request carries it in its context, a page in
its session (see `rag.ui.language`). What asks for no language, such as a command or a program, is answered in English.
"""

from __future__ import annotations

import gettext as standard
import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Babel is imported where it is used: a command that speaks English and writes no number does without it.
if TYPE_CHECKING:
    from babel import Locale

FOLDER = Path(__file__).resolve().parent / "locales"
DOMAIN = "hr_assistant"
ENGLISH = "en"
#: The languages of the interface by their own names, as people look for them.
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
#: English dates have the day first, which nobody reads as another day.
LOCALES = {"en": "en_GB", "zh": "zh_Hans_CN"}
#: Between a context and its word, as gettext keeps them.
CONTEXT = "\x04"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
#: Longer texts are no sentence of ours with something filled in.
LONGEST_SENTENCE = 2000
#: The notices of an answer are stored in a row; a row of more sentences is looked at up to here.
MOST_SENTENCES = 12
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

_chosen: ContextVar[str] = ContextVar("language", default="")
_finders: list[Callable[[], str]] = []
_reading = threading.Lock()


def current() -> str:
    """Return the language of the person who is served here and now."""
    if chosen := _chosen.get():
        return chosen
    for find in _finders:
        if found := find():
            return found
    return ENGLISH


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Speak this language within the block, and in what the block calls."""
    token = _chosen.set(language if language in LANGUAGES else ENGLISH)
    try:
        yield
    finally:
        _chosen.reset(token)


def speak(language: str) -> None:
    """Speak this language in the rest of this context."""
    _chosen.set(language if language in LANGUAGES else ENGLISH)


def ask_also(find: Callable[[], str]) -> None:
    """Ask `find` for the language where no context carries one."""
    if find not in _finders:
        _finders.append(find)


def accepted(header: str) -> list[str]:
    """Return the languages of a header Accept-Language as two letters each, the preferred first."""
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
    """Return the first language wished for that the interface speaks, else English."""
    for wish in wishes:
        for name in [wish] if isinstance(wish, str) else wish:
            if name in LANGUAGES:
                return name
    return ENGLISH


def direction(language: str | None = None) -> str:
    """Return `rtl` for a language that is written from the right, else `ltr`."""
    return "rtl" if (language or current()) in RIGHT_TO_LEFT else "ltr"


# Sentences


def N_(message: str) -> str:
    """Mark a sentence for the catalogues that is translated where it is used."""
    return message


def NP_(context: str, message: str) -> str:
    """Mark a word that means several things for the catalogues, with what it means here; `_` translates it."""
    return f"{context}{CONTEXT}{message}"


def _(message: str, /, **values: Any) -> str:
    """Return a sentence in the reader's language, with `{name}` filled in from `values`."""
    if not message:
        return ""  # gettext answers the empty text with the head of the catalogue
    english = message.rpartition(CONTEXT)[2]
    text = _catalogue(current()).gettext(message)
    return _filled(english if text == message else text, english, values)


def pgettext(context: str, message: str, /, **values: Any) -> str:
    """Return a word that means several things, in the reader's language; `context` says what it means here."""
    return _(NP_(context, message), **values)


def ngettext(one: str, many: str, count: int, /, **values: Any) -> str:
    """Return the sentence for a number of things; `{count}` in it is the number as the reader writes it."""
    language = current()
    values = {"count": number(count), **values}
    return _filled(_catalogue(language).ngettext(one, many, count), one if count == 1 else many, values)


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun in English, for the command line; `many` is `one` with an s when not given."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def translated(sentence: str) -> str:
    """Return a sentence that was made in English, such as an error that was stored, in the reader's language.

    Where something was filled in, the sentence of the catalogue that fits is filled in again. Several in a row, such as
    the notices of an answer, are translated one by one. One that no catalogue has stays as it is.
    """
    language = current()
    if language == ENGLISH or not sentence.strip():
        return sentence
    catalogue = _catalogue(language)
    found = catalogue.gettext(sentence)
    return found if found != sentence else _refilled(sentence, language)


def meant_by(text: str, messages: Iterable[str]) -> str:
    """Return the one of these English messages that `text` is in any language of the interface; "" for none."""
    known = list(messages)
    for language in LANGUAGES:
        for message in known:
            with speaking(language):
                if text == _(message):
                    return message
    return ""


@lru_cache(maxsize=4096)
def _refilled(sentence: str, language: str) -> str:
    if len(sentence) > LONGEST_SENTENCE:
        return sentence
    swallowing: tuple[str, dict[str, str]] | None = None
    for message, values in _fitting(sentence, language):
        if not any(SENTENCE_END.search(value) for value in values.values()):
            return _filled_again(message, sentence, values, language)
        swallowing = swallowing or (message, values)
    if (row := _row(sentence, language)) != sentence or swallowing is None:
        return row
    return _filled_again(swallowing[0], sentence, swallowing[1], language)


def _fitting(sentence: str, language: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Find the sentences of the catalogue that this one may be, with what was filled in."""
    for pattern, message in _patterns(language):
        if match := pattern.fullmatch(sentence):
            yield message, match.groupdict()


def _filled_again(message: str, sentence: str, values: dict[str, str], language: str) -> str:
    with speaking(language):
        values = {
            # Errors are English when they are raised, their numbers too.
            name: number(int(value.replace(",", ""))) if THOUSANDS.fullmatch(value) else translated(value)
            for name, value in values.items()
        }
    return _filled(_catalogue(language).gettext(message), sentence, values)


def _row(text: str, language: str) -> str:
    """Return several sentences in a row, each that the catalogue has in its language: the longest known text first."""
    pieces = SENTENCE_END.split(text)
    if not 1 < len(pieces) <= MOST_SENTENCES:
        return text
    found, place = list[str](), 0
    while place < len(pieces):
        lengths = range(1, len(pieces) - place + (place > 0))
        parts = {length: " ".join(pieces[place : place + length]) for length in lengths}
        length, said = 1, pieces[place]
        for exact in reversed(lengths):
            if (known := _catalogue(language).gettext(parts[exact])) != parts[exact]:
                length, said = exact, known
                break
        else:
            for filled in lengths:
                part = parts[filled]
                known = next((_filled_again(fits, part, own, language) for fits, own in _fitting(part, language)), part)
                if known != part:
                    length, said = filled, known
                    break
        found.append(said)
        place += length
    return " ".join(found)


@cache
def _patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Sentences with places to fill in, the most telling first: most letters of their own."""
    messages = [m for m in getattr(_catalogue(language), "_catalog", {}) if isinstance(m, str) and "{" in m]
    patterns = []
    for message in sorted(messages, key=lambda m: -len(PLACEHOLDER.sub("", m))):
        if len(PLACEHOLDER.sub("", message).split()) < 3:
            continue  # "{a} · {b}" fits anything
        pieces, seen = [], set()
        for place, piece in enumerate(PLACEHOLDER.split(message)):
            if place % 2 == 0:
                pieces.append(re.escape(piece))
            elif piece in seen:
                pieces.append(f"(?P={piece})")
            else:
                seen.add(piece)
                pieces.append(f"(?P<{piece}>.+?)")
        patterns.append((re.compile("".join(pieces), re.DOTALL), message))
    return patterns


def _filled(text: str, english: str, values: dict[str, Any]) -> str:
    if not values:
        return text
    try:
        return text.format(**values)
    except (KeyError, IndexError, ValueError):  # a slip of a translator's must not cost the page
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
    """Write `1,200` or `3.2` as the reader does."""
    from babel import numbers

    if decimals is None:
        return str(numbers.format_decimal(value, locale=locale()))
    pattern = "#,##0" + ("." + "0" * decimals if decimals else "")
    return str(numbers.format_decimal(value, format=pattern, locale=locale()))


def percentage(share: float, decimals: int = 1) -> str:
    """Write a share of 0 … 1 as `77.2%`."""
    from babel import numbers

    language = current()
    pattern = numbers_pattern(_locale(language))
    digits = "0" + ("." + "0" * decimals if decimals else "")
    return str(numbers.format_percent(share, format=re.sub(r"#,##0", f"#,##{digits}", pattern), locale=locale()))


def numbers_pattern(where: Locale) -> str:
    """Return the pattern of shares, which says where the sign is put."""
    return str(where.percent_formats[None].pattern)


def dollars(amount: Decimal, decimals: int) -> str:
    """Write an amount in US dollars."""
    from babel import numbers

    where = locale()
    pattern = str(where.currency_formats["standard"].pattern).partition(";")[0]
    pattern = re.sub(r"#,##0\.00", "#,##0." + "0" * decimals, pattern)
    symbol = "$" if current() != "zh" else "US$"
    # English speakers of all countries read dollars as “$”.
    written = numbers.format_decimal(abs(amount), format=pattern.replace("¤", "\ue000"), locale=where)
    return ("-" if amount < 0 else "") + str(written).replace("\ue000", symbol)


def duration(milliseconds: float | None, *, is_about: bool = False) -> str:
    """Write `340 ms`, `3.2 s`, `2 min 5 s`, `1 h 4 min`, `about 3.2 s`; a dash when unknown."""
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
    """Write `21 Nov 2026`."""
    from babel import dates

    return str(dates.format_date(moment, "medium", locale=locale()))


def short_day(moment: date) -> str:
    """Write `21 Nov`, where the year is known."""
    from babel import dates

    return str(dates.format_skeleton("MMMd", moment, locale=locale()))


def table_date(*, with_year: bool = True, with_time: bool = False) -> str:
    """Return how a table writes a date in the reader's language, by the letters of Moment.js, which draws it."""
    if current() == ENGLISH:
        written = "D MMM YYYY" if with_year else "D MMM"
    else:
        pattern = _locale(current()).datetime_skeletons["yMd" if with_year else "Md"].pattern
        written = pattern.replace("d", "D").replace("y", "YYYY")
    return f"{written}, HH:mm" if with_time else written


def clock(moment: datetime) -> str:
    """Write `14:05`."""
    if current() == ENGLISH:
        return f"{moment:%H:%M}"

    from babel import dates

    return str(dates.format_time(moment, "short", locale=locale()))


def listed(items: Iterable[str], *, style: str = "standard") -> str:
    """Write several things in a row: `a, b and c`."""
    from babel.lists import format_list

    return format_list(list(items), style=style, locale=locale())  # type: ignore[arg-type]
