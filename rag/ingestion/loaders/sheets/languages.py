"""Define how languages write numbers, months and weekdays, and detect a workbook's language.

Excel stores a number with a format, and shows it by the computer's settings: "1.234,50 €" in Germany. The workbook's
names for worksheets and for the default style show in which language it was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from locale import windows_locale

ENGLISH_MONTHS = "January February March April May June July August September October November December"
ENGLISH_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """How a language writes numbers and dates. `day` is the usual date format in Excel's notation."""

    point: str = "."
    group: str = ","
    day: str = "yyyy-mm-dd"
    months: Sequence[str] = tuple(ENGLISH_MONTHS.split())
    short_months: Sequence[str] = tuple(name[:3] for name in ENGLISH_MONTHS.split())
    #: Monday first.
    days: Sequence[str] = tuple(ENGLISH_DAYS.split())
    short_days: Sequence[str] = tuple(name[:3] for name in ENGLISH_DAYS.split())
    noon: tuple[str, str] = ("AM", "PM")


def _language(point: str, group: str, day: str, months: str, short: str, days: str, short_days: str) -> Language:
    return Language(
        point=point,
        group=group,
        day=day,
        months=tuple(months.split()),
        short_months=tuple(short.split()),
        days=tuple(days.split()),
        short_days=tuple(short_days.split()),
    )


def _eastern(day: str, months: str, days: str, short_days: str, noon: tuple[str, str]) -> Language:
    names = tuple(f"{number}{months}" for number in range(1, 13))
    return Language(
        day=day, months=names, short_months=names, days=tuple(days.split()), short_days=tuple(short_days), noon=noon
    )


#: Without a language, dates are written in an unambiguous way.
UNKNOWN = Language()
LANGUAGES = {
    "de": _language(
        ",", ".", "dd.mm.yyyy", "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag", "Mo Di Mi Do Fr Sa So",
    ),
    "fr": _language(
        ",", " ", "dd/mm/yyyy", "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "janv févr mars avr mai juin juil août sept oct nov déc",
        "lundi mardi mercredi jeudi vendredi samedi dimanche", "lun mar mer jeu ven sam dim",
    ),
    "es": _language(
        ",", ".", "dd/mm/yyyy",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ene feb mar abr may jun jul ago sep oct nov dic",
        "lunes martes miércoles jueves viernes sábado domingo", "lun mar mié jue vie sáb dom",
    ),
    "it": _language(
        ",", ".", "dd/mm/yyyy",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "gen feb mar apr mag giu lug ago set ott nov dic",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica", "lun mar mer gio ven sab dom",
    ),
    "nl": _language(
        ",", ".", "d-m-yyyy",
        "januari februari maart april mei juni juli augustus september oktober november december",
        "jan feb mrt apr mei jun jul aug sep okt nov dec",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag", "ma di wo do vr za zo",
    ),
    "pt": _language(
        ",", ".", "dd/mm/yyyy",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "jan fev mar abr mai jun jul ago set out nov dez",
        "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo", "seg ter qua qui sex sáb dom",
    ),
    "pl": _language(
        ",", " ", "dd.mm.yyyy",
        "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
        "sty lut mar kwi maj cze lip sie wrz paź lis gru",
        "poniedziałek wtorek środa czwartek piątek sobota niedziela", "pon wt śr czw pt sob niedz",
    ),
    "tr": _language(
        ",", ".", "dd.mm.yyyy", "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
        "Oca Şub Mar Nis May Haz Tem Ağu Eyl Eki Kas Ara",
        "Pazartesi Salı Çarşamba Perşembe Cuma Cumartesi Pazar", "Pzt Sal Çar Per Cum Cmt Paz",
    ),
    "ja": _eastern("yyyy/m/d", "月", "月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日", "月火水木金土日",
                   ("午前", "午後")),
    "ko": _eastern("yyyy-mm-dd", "월", "월요일 화요일 수요일 목요일 금요일 토요일 일요일", "월화수목금토일",
                   ("오전", "오후")),
    "zh": _eastern("yyyy/m/d", "月", "星期一 星期二 星期三 星期四 星期五 星期六 星期日", "一二三四五六日",
                   ("上午", "下午")),
    "en": UNKNOWN,
}  # fmt: skip
#: The words for worksheets in tables of contents, then default styles other than "Normal".
LANGUAGE_WORDS = {
    "de": ("Arbeitsblätter", "Standard"), "fr": ("Feuilles de calcul",), "es": ("Hojas de cálculo",),
    "it": ("Fogli di lavoro", "Normale"), "nl": ("Werkbladen", "Standaard"),
    "pt": ("Planilhas", "Folhas de cálculo", "Folhas de Cálculo"), "pl": ("Arkusze", "Normalny"),
    "tr": ("Çalışma Sayfaları",), "ja": ("ワークシート", "標準"), "ko": ("워크시트", "표준"),
    "zh": ("工作表", "常规", "一般"),
}  # fmt: skip
LANGUAGE_BY_WORDS = {words: code for code, phrases in LANGUAGE_WORDS.items() for words in phrases}


def language_of_format(number: int) -> Language | None:
    """Return the language for the Windows language number in a format, or `None` if unknown."""
    name = windows_locale.get(number & 0xFFFF, "")
    return LANGUAGES.get(name[:2])


def language_called(code: str) -> Language | None:
    """Return the language for a code like "de-DE", or `None` if unknown."""
    return LANGUAGES.get(code[:2].lower())
