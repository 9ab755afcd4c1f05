"""Detect the kind of fact a question asks for (an amount, a time, a contact), and find this kind in sentences.

A sentence without a day cannot answer "When is payday?", even when repeating the whole question. The rules cover the
product's thirteen languages. Questions in other words or languages get no kind, and any sentence may answer them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from rag.text import currencies
from rag.text.number_words import number_words

_MONTHS = (
    r"january|february|march|april|(?-i:May|MAY)|june|july|august|september|october|november|december"
    r"|januari|februari|maart|mei|juni|juli|augustus|oktober|januar|februar|märz|mai|dezember"
    r"|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    r"|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    r"|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
    r"|stycz\w+|lut\w+|mar(?:zec|ca)|kwie\w+|maj[a]?|czerw\w+|lip(?:iec|ca)|sierp\w+|wrze\w+|paźd\w+|listop\w+"
    r"|grud\w+"
    r"|ocak|şubat|mart|nisan|mayıs|haziran|temmuz|ağustos|eylül|ekim|kasım|aralık"
    r"|يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر"
)
_WEEKDAYS = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:maan|dins|woens|donder|vrij|zater|zon)dag|mittwoch|samstag"
    r"|(?:mon|diens|donners|frei|sonn)tags?|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes"
    r"|miércoles"
    r"|jueves|viernes|sábado|domingo|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|segunda|terça|quarta"
    r"|quinta|sexta|poniedział\w+|wtor\w+|środ\w+|czwart\w+|piąt\w+|sobot\w+|niedziel\w+|pazartesi|salı|çarşamba"
    r"|perşembe|cuma|cumartesi|pazar"
)
_NUMBER_WORDS = (
    r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|double|twice|twee|drie|vier|vijf|zes"
    r"|zeven|acht|negen|tien|elf|twaalf|halve|dubbele?|zwei|drei|fünf|sechs|sieben|neun|zehn|zwölf"
    r"|hälfte|doppelt\w*|deux|trois|quatre|cinq|huit|neuf|dix|moitié|double|tres|cuatro|cinco"
    r"|seis|siete|ocho|nueve|diez|mitad|tre|quattro|cinque|sette|otto|nove|dieci|metà|dois|duas|três|quatro"
    r"|oito|dez|metade|dw(?:a|ie)|trzy|cztery|pięć|sześć|siedem|osiem|dziewięć|dziesięć|połow\w+"
    r"|iki|üç|dört|beş|altı|yedi|sekiz|dokuz|yarım|yarısı"
)
#: Number words from thirteen up, as a word or as a compound's last part: "twenty", "fünfundzwanzig".
_LARGER_NUMBER_WORDS = "|".join(
    rf"\w*{word}" if word.endswith(("zig", "ßig", "tig", "hundert", "honderd")) else word
    for word, value in number_words("").items()
    if value >= 13
)
#: Number words which are also articles or mean something else in a different language: "on" (ten in Turkish) in "on
#: leave".
_ARTICLES_OR_NUMBERS = (
    r"one|een|één|ein(?:e[nmrs]?)?|une?|un[ao]?|dos|due|sei|sept|sete|set|uma?|jed(?:en|na|no)|bir|on"
)
_SO_OFTEN = (
    r"\b(?:annual(?:ly)?|yearly|monthly|weekly|daily|quarterly|biweekly|every|once|twice|(?:per|a|each) (?:year|month"
    r"|week|quarter|day)|times|jaarlijkse?|maandelijkse?|wekelijkse?|dagelijkse?|elke?|iedere?|per (?:jaar"
    r"|maand|week|dag)"
    r"|eenmaal|keer|jährlich\w*|monatlich\w*|wöchentlich\w*|täglich\w*|jede[nsmr]?|einmal|zweimal|mal"
    r"|pro (?:jahr|monat"
    r"|woche|tag)|chaque|par (?:an|mois|semaine|jour)|fois|annuel\w*|mensuel\w*|cada|al (?:año|mes|día)|veces"
    r"|anual\w*"
    r"|mensual\w*|ogni|all'anno|al mese|volte|annual\w*|mensil\w*|por (?:ano|mês|semana|dia)|vezes|co(?:rocznie)?|raz"
    r"|rocznie|miesięcznie|her (?:yıl|ay|hafta|gün)|yılda|ayda|kez)\b"
    r"|매년|매월|매주|매일|연 ?\d|월 ?\d|주 ?\d|마다|毎[年月週日]|ごと|年\d|每[年月周天日]|سنويا|شهريا|كل (?:سنة|شهر)"
)


#: A number in a date or a clock time, "the 25th" and "16:00", but not an amount, share, duration or row name: "£1,500",
#: "70 %", "6 weeks", "20 — Gift".
_OF_A_DATE = (
    rf"(?<![{currencies.SIGNS}\d.,])(?<![{currencies.SIGNS}]\s)\d+(?![\d.,]*\d)"
    rf"(?!\s—|\s?(?:{currencies.WORDS})|\s?(?:[%％{currencies.SIGNS}]|percent|prozent|procent|per ?cent|pour ?cent"
    r"|por ?ciento|per ?cento|por ?cento|weeks?|days?|months?|years?|hours?|minutes?|times"
    r"|weken|week|dagen|dag|maanden|maand|jaar|uren|minuten|wochen?|tagen?|monaten?|jahren?|stunden?"
    r"|semaines?|jours?|mois|ans?|années?|semanas?|días?|dias?|mes(?:es)?|años?|anos?|settiman[ae]"
    r"|giorn[oi]|mes[ei]|ann[oi]|tygodni\w*|dni|miesi\w*|lat|hafta|gün|ay|yıl)\b"
    rf"|\s?(?:[%％{currencies.SIGNS}]|만|주|개월|년간|시간|週間|か月|ヶ月|時間|周|个月|小时|يوم|شهر|سنة|أسبوع))"
)


#: Ordinal positions: "the sixth week of every quarter", "de laatste werkdag van de maand".
_IN_ORDER = (
    r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|next|eerste|tweede|derde"
    r"|vierde|vijfde"
    r"|zesde|laatste|volgende|erste[nrs]?|zweite[nrs]?|dritte[nrs]?|vierte[nrs]?|fünfte[nrs]?|sechste[nrs]?"
    r"|letzte[nrs]?"
    r"|nächste[nrs]?|premi(?:er|ère)|deuxième|troisième|dernière?|prochaine?|primera?|segund[oa]|tercera?"
    r"|últim[oa]|próxim[oa]"
    r"|prim[oa]|terz[oa]|ultim[oa]|prossim[oa]|primeir[oa]|terceir[oa]|pierwsz\w+|drugi\w*|trzeci\w*|ostatni\w*"
    r"|ilk|ikinci|üçüncü|son)"
    r" (?:of (?:the|each|every) )?(?:(?:full|working|business|calendar) )?"
    r"(?:days?|weeks?|months?|quarters?|years?|werkdag|dag|week|maand|kwartaal"
    r"|jaar|(?:werk|arbeits)?tag\w*|woche\w*|monat\w*|quartal\w*|jahr\w*|jours?|semaines?|mois|trimestre|an(?:née)?"
    r"|días?|semana|mes|año|giorno|settimana|mese|anno|dia|mês|ano|dzień|tydzień|miesiąc\w*|kwartał\w*|rok\w*"
    r"|gün\w*|hafta\w*|ay\w*|yıl\w*)\b|(?:첫|둘째|셋째|마지막) ?(?:주|날|달|평일)|第[一二三四五六\d]+[週周]"
    r"|最[終后後]"
)


UNITS = (
    r"(?:(?:full|working|business|calendar|hele|werk\w*|volle|ganze|jours?|días?|giorni|dias) )?"
    r"(?:minutes?|hours?|days?|weeks?|months?|years?|minuten|uu?r(?:en)?|dag(?:en)?|weken|week|maand(?:en)?"
    r"|jaar|jaren|stunden?"
    r"|(?:werk|arbeits)?tag(?:en?)?|wochen?|monat(?:en?)?|jahr(?:en?)?|heures?|jours?|semaines?|mois|horas?"
    r"|días?|semanas?|mes(?:es)?|or[ae]|giorn[oi]"
    r"|settiman[ae]|mesi|dias?|godzin\w*|dni|tygodni\w*|miesi\w*|saat|gün|hafta|ay)"
)
_DAYS = (
    r"(?:work|holi)?days?|weeks?|months?|(?!maan|dins|woens|donder|vrij(?!e)|zater|zon)\w*dag(?:en)?|weken"
    r"|maand(?:en)?"
    r"|(?!mon|diens|donners|frei|sams|sonn)\w*tage?n?|wochen?|monate?n?|jours?|semaines?|mois|días?|semanas?"
    r"|mes(?:es)?|giorn[oi]|settiman[ae]|mesi|dias?|dni|dzień|tygod\w+|miesi\w+|gün\w*"
    r"|hafta\w*|ay"
)
_HOURS = r"hours?|minut\w+|uur|uren|\w*stunden?|heures?|horas?|or[ae]|godzin\w*|saat|dakika"
#: "sechsmonatig", "zesmaands", "zweiwöchiger".
_COMPOUND_COUNT = (
    r"\b(?:ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zwanzig|dreißig"
    r"|mehr)(?:minütig|stündig|tägig|wöchig|wöchentlich|monatig|monatlich|jährig)\w*"
    r"|\b(?:twee|drie|vier|vijf|zes|zeven|acht|negen|tien|twaalf)(?:daags|weeks|maands|maandelijks|jarig|uurs)\w*"
)
_COUNT = rf"(?:\d[\d.,]*|{_NUMBER_WORDS}|{_ARTICLES_OR_NUMBERS})(?: \(\d+\))? {UNITS}"
_COUNTED = r"\d+ ?(?:영업일|일|주일?|개월|달|시간|분|営業日|日|週間|か月|ヶ月|時間|个?工作日|天|周|个月|小时)"
#: A time limit, "four weeks in advance", which is no length of leave.
_TIME_LIMIT = re.compile(
    rf"\b(?:within|at the latest|no later than|binnen|innerhalb von|innert|sous|dans (?:les|un délai de)|dentro de"
    rf"|entro|w ciągu) {_COUNT}\b"
    rf"|\b{_COUNT}\*{{0,2}} (?:before|ahead|in advance|prior|beforehand|earlier|van te ?voren|vooraf|tevoren"
    r"|vóór|voor het|eerder"
    r"|vorher|im voraus|vor|zuvor|avant|à l'avance|antes|de antelación|prima|di anticipo|de antecedência|przed"
    r"|wcześniej|önce)\b"
    rf"|{_COUNTED} ?(?:전|이내|안에|내에|前|以内|之?前|内)|(?:خلال|قبل) \S+ (?:أيام|يوم|أسابيع|أشهر)",
    re.IGNORECASE,
)
#: A notice period, "two weeks' notice" and "a notice of 30 days".
_NOTICE = re.compile(
    rf"\b{_COUNT}['’]? (?:(?:written|advance|prior) )?notice\b"
    rf"|\b(?:notice|termijn|frist|préavis|délai|antelación|plazo|preavviso|antecedência|prazo|wyprzedzeni\w+)"
    rf" (?:period )?(?:of|is|van|is|von|beträgt|bedraagt|de|est de|es de|di|è di|do|é de"
    rf"|wynosi)? ?(?:at least |ten minste |mindestens )?{_COUNT}\b"
    rf"|\b{_COUNT} (?:vorlauf\w*|de préavis|de antelación|di preavviso|de antecedência|wyprzedzeni\w+|önceden)\b",
    re.IGNORECASE,
)
#: Questions which ask for a time limit.
_ASKS_FOR_LIMIT = re.compile(
    r"\b(?:before|ahead|advance|notice|deadline|prior|late(?:st)?|early|soon|within|tevoren|vooraf|voor|binnen"
    r"|laat|vroeg|vorher"
    r"|voraus|vor|\w*frist|\w*termijn|spät\w*|früh\w*|innerhalb|avant|avance|préavis|délai|tard|tôt|antes"
    r"|antelación|plazo"
    r"|preaviso|prima|anticipo|preavviso|entro"
    r"|tardi|antecedência|aviso|prazo|przed|wcześniej|termin\w*|wypowiedzeni\w+|önce\w*|ihbar|kadar)\b"
    r"|전에|전까지|이내|안에|기한|前|以内|期限|之前|以内|多久|提前|قبل|خلال|مهلة",
    re.IGNORECASE,
)


#: The service required by a rule, not a leave's length: "must have worked here for at least 26 weeks".
_SERVICE = re.compile(
    rf"\b(?:worked|employed|been with us|been here)\b[^.;]{{0,40}}?{_COUNT}\b"
    rf"|\b{_COUNT}['’]? (?:of )?(?:(?:continuous|completed|unbroken) )?(?:service|employment"
    rf"|in dienst(?:verband)?|dienst(?:verband|zeit)"
    rf"|betriebszugehörigkeit|beschäftigung|im (?:betrieb|unternehmen)|beschäftigt"
    rf"|d'ancienneté|de (?:antigüedad|servicio|antiguidade|serviço)|di (?:anzianità|servizio)|stażu|kıdem\w*"
    rf"|çalış\w+)\b"
    rf"|{_COUNTED} ?(?:이상 )?(?:근속|근무|재직)|(?:근속|근무 ?기간|勤続|工龄|工作满"
    rf"|连续工作)[^.。]{{0,6}}?{_COUNTED}|{_COUNTED}(?:以上)?(?:勤務|勤続)"
    r"|خدمة \S{1,12} (?:أيام|أسابيع|أشهر|سنوات)",
    re.IGNORECASE,
)
#: Questions about service.
_ASKS_FOR_SERVICE = re.compile(
    r"\b(?:service|employed|worked|work(?:ing)? (?:here|for)|be (?:here|with)|been (?:here|with)|eligible"
    r"|dienst\w*|betriebszugehörigkeit"
    r"|beschäftig\w*|ancienneté|antigüedad|anzianità|antiguidade|staż\w*|kıdem\w*)\b|근속|근무|재직|勤続|勤務"
    r"|工龄|工作|خدمة",
    re.IGNORECASE,
)


#: Article, section and page numbers, which are neither amounts nor times.
_REFERENCE = re.compile(
    r"[제第]\s?\d+\s?[조항호장절편条项款章节節](?:의\s?\d+)?"
    r"|(?:§{1,2}|\b(?:sections?|articles?|chapters?|paragraphs?|clauses?|appendix|annex|pages?|steps?"
    r"|artikel(?:en|s)?|art\."
    r"|hoofdstuk|paragraaf|lid|bijlage|abschnitt\w*|absatz\w*|abs\.|satz|nr\.|nummer|kapitel\w*|ziffer|anlage"
    r"|seite|chapitre"
    r"|annexe|alinéa|sección|artículos?|capítulo|anexo|sezione|articol[oi]|capitolo|secção|seção|artigos?|rozdział\w*"
    r"|art\.|ust\.|bölüm\w*|madde\w*)|المادة)\s*\d+(?:[.:]\d+)*[a-z]?(?!\s?%)\b",
    re.IGNORECASE,
)


def _asks_for(units: str) -> str:
    return (
        rf"\b(?:how many|hoeveel|wie ?viele?|combien de?|cuánt[oa]s|quant[eio]s?|ile|kaç)['’ ](?:[\w-]+ ){{0,2}}?"
        rf"(?:{units})\b"
    )


def _count_of(units: str) -> str:
    number = (
        # The lookbehind and `*+` keep long rows of numbers linear.
        rf"(?:(?<![\d.,])\d[\d.,]*+(?:st|nd|rd|th|e|ème|[ºª])?|\b(?:{_NUMBER_WORDS}|{_LARGER_NUMBER_WORDS}"
        rf"|{_ARTICLES_OR_NUMBERS}))"
    )
    return (
        rf"{number}\W{{1,3}}(?:[^\W\d]+[ -]){{0,2}}?(?:{units})\b|\b(?:{units})[^\w.]{{1,4}}\d|{_COMPOUND_COUNT}"
        rf"|(?<![\d.,{currencies.SIGNS}])\d+(?:[.,]\d+)?\*{{0,2}}(?=[;:)|]|[.,]?$|\.\s)"
        rf"|{_COUNTED}|이틀|사흘|나흘|[하한두세네]\s?(?:시간|달|주)|يوم|أيام|أسبوع|أسابيع|شهر|أشهر|ساعة|ساعات"
    )


#: A list item's case, not an answer: "**For 2 days** – at least a week".
_CASE_LABEL = re.compile(
    r"\W{0,3}(?:for|from|between|up to|over|under|more than|less than|greater than|after|bei|ab|für|von|bis"
    r"|über|unter|voor|vanaf|van"
    r"|bij|tot|pour|de|à partir de|plus de|moins de|para|desde|entre|hasta|más de|per|da|fino a|oltre|até"
    r"|mais de|od|dla|powyżej)"
    r" [^–—:]{1,40}?\*{0,2} ?(?:[–—]|:\*{0,2}(?= ))",
    re.IGNORECASE,
)
#: Headings above a number: "Number of days".
_NUMBER_OF = (
    r"\b(?:number of|aantal|anzahl|nombre de|n[úu]mero (?:de|di)|liczba|sayısı)\b|일수|횟수|日数|回数|天数|次数|عدد"
)
#: Answers to questions for an amount without a number: "we don't offer a bank of sick days", "unlimited".
_NO_NUMBER = (
    r"\b(?:unlimited|(?:do|does|is|are) ?(?:not|n['’]t) (?:offer|have|give|provide|grant|limited|capped)"
    r"|no (?:limit|maximum|cap|minimum|(?:set|fixed)"
    r" (?:number|amount))|as (?:much|many|long) as (?:you|they|is) (?:need|want|like|wish|necessary)\w*"
    r"|onbeperkt\w*|geen (?:limiet|maximum|vast aantal)"
    r"|unbegrenzt\w*|unbeschränkt\w*|kein(?:e[nr]?)? (?:obergrenze|höchstgrenze|festen?)|illimitée?s?"
    r"|pas de (?:limite|maximum|nombre fixe)"
    r"|ilimitad[oa]s?|sin (?:límite|máximo)|illimitat[oaie]|senza limiti|nessun limite|sem limite"
    r"|nieograniczon\w+|bez limitu|sınırsız)\b"
    r"|무제한|제한(?:이|은)? 없|無制限|制限(?:は|が)?(?:ない|ありません)|无限|不限|没有(?:上限|限制)|غير محدود"
    r"|بلا حدود"
)
#: The names of types answered by a number.
AMOUNTS = ("days", "hours", "amount")


@dataclass(frozen=True)
class AnswerType:
    """A type of fact (amount, date, person), with patterns to find it in questions and in sentences."""

    name: str
    #: Patterns. Headings above answers may match too. Compiled with the first question, not at the start.
    question_pattern: str
    sentence_pattern: str
    heading_pattern: str = ""

    #: Likewise, for definite facts: a date, not only "annual".
    definite_pattern: str = ""

    @cached_property
    def question_regex(self) -> re.Pattern[str]:
        return re.compile(self.question_pattern, re.IGNORECASE)

    @cached_property
    def sentence_regex(self) -> re.Pattern[str]:
        return re.compile(self.sentence_pattern, re.IGNORECASE)

    @cached_property
    def definite_regex(self) -> re.Pattern[str] | None:
        return re.compile(self.definite_pattern, re.IGNORECASE) if self.definite_pattern else None

    @cached_property
    def heading_regex(self) -> re.Pattern[str] | None:
        return re.compile(self.heading_pattern, re.IGNORECASE) if self.heading_pattern else None

    def is_in(self, text: str, question: str) -> bool:
        """Whether a text contains this type of fact.

        Time limits and lengths of service are only counted as amounts if the question asks for them.
        """
        if self.name in (*AMOUNTS, "time"):
            text = _REFERENCE.sub(" ", text)
        if self.name in AMOUNTS and not _ASKS_FOR_LIMIT.search(question):
            text = _NOTICE.sub(" ", _TIME_LIMIT.sub(" ", _CASE_LABEL.sub("", text)))
        if self.name in AMOUNTS and not _ASKS_FOR_SERVICE.search(question):
            text = _SERVICE.sub(" ", text)
        return self.sentence_regex.search(text) is not None


#: A contact by role. "Employees" does not count, because the word means everybody.
_ROLES = (
    r"\b(?:supervisors?|(?:line )?managers?|(?:team )?leads?|leaders?|representatives?|officers?|department|hr"
    r"|human resources|people team|payroll|advis[eo]rs?|works council|council|committee|hotline|help ?desk"
    r"|service desk"
    r"|reception|doctor|police|union|employer|director|confidential line|first aider|customer service"
    r"|leidinggevende|werkgever|vertrouwenspersoon|afdeling|personeelszaken|bedrijfsarts|ondernemingsraad|directie"
    r"|vorgesetzte\w*|führungskraft|arbeitgeber\w*|betriebsrat\w*|personalabteilung|abteilung|betriebsarzt"
    r"|supérieur\w*|responsable|employeur|ressources humaines|médecin|syndicat|direction"
    r"|supervisor\w*|jefe|jefa|empleador|recursos humanos|médico|sindicato|comité"
    r"|superiore|datore di lavoro|risorse umane|medico|sindacato|gestor\w*|chefe|empregador|chefia"
    r"|przełożon\w*|pracodawc\w*|kierownik\w*|dział\w* kadr|lekarz\w*|yönetici\w*|amir\w*|işveren\w*"
    r"|insan kaynakları)\b"
    r"|팀장|부서장|상사|관리자|사용자에게|담당|인사팀|부서|위원회|대표|노동조합|상담|의사에게|콜센터|고객센터"
    r"|上司|担当|人事|総務|窓口|委員会|組合|産業医|主管|经理|上级|人事部|部门|工会|人力资源"
    r"|المدير|المشرف|الموارد البشرية|صاحب العمل|الطبيب|النقابة"
    r"|\S@\S|\d[\d -]{5,}\d|\bext(?:ension|\.)? ?\d|내선 ?\d|toestel \d"
)

#: A date, a weekday or a month.
_DATE = rf"{_OF_A_DATE}|{_IN_ORDER}|\b(?:{_MONTHS}|{_WEEKDAYS})\b"
#: A date, or a time limit in words.
_TIME = (
    rf"{_DATE}"
    r"|\b(?:same|following|previous|preceding|zelfde|volgende|vorige|selben|gleichen|folgenden|vorigen|même|suivante?"
    r"|précédente?|mism[oa]|siguiente|anterior|stess[oa]|successiv[oa]|seguente|mesm[oa]|seguinte|tym samym"
    r"|następn\w+"
    rf"|poprzedni\w+|aynı|ertesi) (?:{_DAYS}|quarter|year|jaar|jahr\w*|année|año|anno|ano|rok\w*)\b"
    r"|\b(?:before|after|until|within|during|once|as soon as|immediately|at once"
    r"|(?:beginning|end|start) of|annual(?:ly)?|monthly|weekly|every (?:year|month|week)|first day|voor|vóór|na|tot"
    r"|binnen|tijdens|zodra|onmiddellijk|direct na|vor|nach|bis|innerhalb|während|sobald|sofort|unverzüglich|ende"
    r"|beginn|avant|après|jusqu\w*|pendant|dès|antes|después|hasta|dentro|durante|cuando|prima|dopo|entro|fino"
    r"|appena|depois|até|logo|przed"
    r"|(?:po|do) (?:\d+|koń\w+|początk\w+|upływ\w+|zakończ\w+|ukończ\w+)|podczas|natychmiast"
    r"|önce|sonra|kadar|içinde|hemen)\b"
    r"|까지|이내|전에|후에|부터|지체 없이|즉시|매년|매월|まで|以内|前に|後に|から|直ちに"
    r"|之前|之后|以前|以后|立即|قبل|بعد|خلال|فور"
)

#: The order matters: "how often" must be tried before "how many", "how long before" before "how long".
TYPES = (
    AnswerType(
        "lead time",
        r"\b(?:how (?:far|long|much|many \w+|early|soon) (?:ahead|in advance|before(?:hand)?|prior|(?:\w+ )?notice)"
        r"|hoe (?:lang|ver|vroeg)(?: \w+){0,2} (?:van ?tevoren|vooraf|vóór)|hoeveel \w+ (?:van ?tevoren|vooraf)"
        r"|wie (?:lange|weit|früh|viele \w+)(?: \w+){0,2} (?:vorher|im voraus|zuvor)"
        r"|combien de (?:temps|jours|semaines|mois) (?:à l'avance|avant)"
        r"|(?:con )?cuánt\w+ (?:\w+ )?(?:de )?(?:antelación|antes)"
        r"|(?:con )?quant\w+ (?:\w+ )?(?:di )?(?:anticipo|prima)"
        r"|(?:com )?quant\w+ (?:\w+ )?(?:de )?(?:antecedência|antes)"
        r"|z jakim wyprzedzeniem|ile \w+ (?:wcześniej|przed)|ne kadar önce\w*|kaç \w+ önce\w*)(?!\w)"
        r"|(?:며칠|몇 ?\w+|얼마나?) ?(?:전|미리)|何[日週か月間ヶ]+前|どれくらい前|提前(?:多久|多少|几)"
        r"|قبل كم|كم \S+ قبل",
        rf"{_TIME_LIMIT.pattern}|{_NOTICE.pattern}|\ban? {UNITS} (?:before|ahead|in advance|prior|beforehand)\b",
    ),
    AnswerType(
        "person to tell",
        r"\bwhom? (?:do|should|must|shall|can) (?:i|we|you) (?:have to )?(?:tell|inform|notify|call|ring|phone"
        r"|contact|report|let know)\b"
        r"|\b(?:bij|aan) wie (?:moet|kan|mag|meld)\b.{0,30}\b(?:meld\w*|door ?geven|vertellen|laten weten)\b"
        r"|\bwie (?:moet|kan) ik"
        r" .{0,20}(?:bellen|informeren|inlichten|waarschuwen)\b"
        r"|\b(?:bei wem|wem|wen) (?:muss|soll|kann|melde|sage|informiere|rufe) .{0,30}?(?:\bich\b)"
        r"|\bqui (?:dois-je |faut-il |puis-je )?(?:prévenir|informer|avertir|appeler|contacter)\b"
        r"|\ba quién (?:debo |tengo que |hay que )?(?:avis\w+|inform\w+|notific\w+|comunic\w+|llam\w+)"
        r"|\b(?:chi|a chi) (?:devo |bisogna )?(?:avvis\w+|inform\w+|comunic\w+|chiam\w+)"
        r"|\b(?:a )?quem (?:devo |tenho de |preciso )?(?:avis\w+|inform\w+|comunic\w+|notific\w+|ligar)"
        r"|\b(?:kogo|komu|do kogo) (?:mam |muszę |powinienem )?(?:powiadomi\w+|poinformowa\w+|zgłosi\w+|zadzwoni\w+)"
        r"|\b(?:kime|kimi) (?:haber|bildir\w+|söyle\w+|ara\w+|bilgilendir\w+)"
        r"|누구(?:에게|한테) (?:알려|말해|말씀|연락|보고|신고)|誰に(?:連絡|報告|伝え|知らせ)|(?:通知|告诉|联系"
        r"|报告)谁|向谁(?:报告|请假)"
        r"|من (?:أبلغ|أخبر|أتصل)|(?:أبلغ|أخبر|أتصل ب)من",
        r"\b(?:let|tell|inform|notif|call|contact|report|phone|ring|email|e-mail|get in touch|speak|talk|meld"
        r"|bel|inform|inlicht|doorge"
        r"|bescheid|benachrichtig|mitteil|anruf|wend|kontaktier|préven|avert|appel|contact|avis|comunic"
        r"|notific|llam|chiam|ligar"
        r"|powiad|poinf|zgłos|zadzwoń|haber|bildir|ara|bilgilendir)\w*"
        rf"[^.;]{{0,80}}?(?:{_ROLES}|\b(?:your|the|our|je|het|ihr|dein|votre|su|il|o|a) (?:\w+ )?(?:team"
        rf"|équipe|equipo|squadra|equipa)\b)"
        rf"|(?:{_ROLES})[^.;]{{0,60}}?(?:know|informed|told|notified|weten|informeren|bellen|bescheid"
        rf"|informieren|benachrichtigen"
        r"|mitteilen|melden|anrufen|알[리려립린릴]|연락|보고|통보|신고|連絡|報告|知らせ|伝え|通知|报告|联系|告知)"
        r"|\S@\S|\d[\d -]{5,}\d|(?:أبلغ|إبلاغ|إخطار|اتصل|الاتصال)",
    ),
    AnswerType(
        "person",
        r"\bwhom\b|\bwho (?:do|can|should|must|may|shall|could) (?:i|we|you)\b|\bwho (?:helps?|approves?"
        r"|decides?|signs"
        r"|is responsible|is in charge)\b"
        r"|\b(?:bij|aan|met) wie\b|\bwie (?:helpt|beslist|keurt|regelt)\b"
        r"|\b(?:an|bei|mit) (?:wen|wem)\b|^wem\b|\bwer (?:hilft|entscheidet|genehmigt|ist zuständig)\b"
        r"|\b(?:à|avec) qui\b|\bqui (?:contacter|prévenir|décide|approuve)\b|\b(?:a|con) quién\b"
        r"|\bquién (?:aprueba|decide)\b"
        r"|\b(?:a|con) chi\b|\bchi (?:approva|decide)\b|\b(?:a|com) quem\b|\bquem (?:aprova|decide)\b"
        r"|\b(?:do kogo|komu|z kim)\b|\bkto (?:zatwierdza|decyduje)\b|\b(?:kime|kiminle)\b"
        r"|누구(?:에게|한테|와|랑)|누가 (?:승인|결정|도와)|誰に|どなたに|誰が(?:承認|決)|向谁|找谁|跟谁"
        r"|谁(?:批准|审批|负责)"
        r"|لمن |بمن |إلى من ",
        _ROLES,
    ),
    AnswerType(
        "frequency",
        r"\b(?:how (?:often|frequently|many times)|hoe vaak|wie (?:oft|häufig)|combien de fois|à quelle fréquence"
        r"|(?:con|cada) (?:qué frecuencia|cuánto)|cuántas veces|(?:con che|ogni) (?:frequenza|quanto)|quante volte"
        r"|com que frequência|quantas vezes|jak często|ile razy|ne sıklıkta|kaç kez)\b"
        r"|얼마나 자주|몇 ?번|何回|どのくらいの頻度|多久|几次|كم مرة",
        _SO_OFTEN,
    ),
    AnswerType(
        "contact",
        r"\b(?:(?:phone|telephone|mobile|hotline) ?numbers?|what number|which number|e-?mail address|extension number"
        r"|(?:telefoon|door)nummer|e-?mailadres|telefonnummer|durchwahl|numéro de téléphone|adresse e-?mail"
        r"|(?:número de )?teléfono|correo electrónico|numero di telefono|indirizzo e-?mail|número de telefone"
        r"|numer telefonu|telefon numaras\w*|e-?posta adresi)\b"
        r"|전화 ?번호|내선|이메일 주소|어디로 전화|電話番号|内線|メールアドレス|电话号码|分机|邮箱"
        r"|رقم (?:ال)?هاتف|البريد الإلكتروني",
        r"\d{3}|\S@\S|www\.",
    ),
    AnswerType(
        "share",
        r"\b(?:(?:what|which) (?:percentage|percent|per ?cent|share|portion|proportion)"
        r" (?:of|do|does|is|are|will|would)|what['’]s the percentage|how many percent"
        r"|(?:welk|wat is het) percentage|hoeveel procent|welk deel|wie ?viel prozent"
        r"|welche[nr]? (?:prozentsatz|anteil|teil)|quel pourcentage|quelle (?:part|proportion)"
        r"|combien de pour ?cents?"
        r"|qué (?:porcentaje|parte|proporción)|(?:che|quale) (?:percentuale|parte|quota)|quanti per ?cento"
        r"|(?:que|qual a) (?:percentagem|porcentagem|parte|parcela)|jaki (?:procent|odsetek)|jaka część|ile procent"
        r"|yüzde kaç\w*|ne kadarlık kısm\w*)\b"
        r"|몇 ?(?:퍼센트|프로|%)|何(?:パーセント|％|%|割)|百分之(?:多少|几)|多大比例|(?:几|多少)折|几成(?!本)"
        r"|ما (?:نسبة|النسبة)|كم (?:نسبة|بالمئة|في المئة)",
        r"\d\s?[%％]"
        r"|\b(?:percent|per ?cent|half|(?:one|two)[- ]thirds?|quarter|in full|procent|helft|derde|kwart|volledig"
        r"|prozent|hälfte|drittel|viertel|pour ?cent|moitié|tiers|intégral\w*|por ?ciento|mitad|tercio"
        r"|per ?cento|metà"
        r"|terzo|por ?cento|metade|terço|połow\w+|jedn\w+ trzeci\w+|yarısı|yüzde)\b"
        r"|퍼센트|프로|분의|절반|パーセント|割|分の|半分|百分之|分之|一半|[\d一二三四五六七八九][折成]"
        r"|بالمئة|في المئة|نصف|ثلث|ربع",
    ),
    AnswerType(
        "money",
        r"\bhow much (?:does|do|is|are|will|would|can|may|money|extra|pay)\b"
        r"|\bhow much (?:[\w-]+ ){1,3}?(?:pay|salary|bonus|allowance|compensation|benefit)\b"
        r"|\bwhat (?:does|do|is|are) .{0,60}\bcosts?\b"
        r"|\bwhat (?:do|will|must|would) (?:i|we|you|employees|people) (?:have to )?(?:pay|earn)\b(?! attention)"
        r"|\bwat (?:(?:betaal|verdien) (?:ik|je|u)|moet (?:ik|je|u) betalen|krijg (?:ik|je|u) (?:door)?betaald)\b"
        r"|\bwas (?:(?:zahle|bezahle|verdiene) ich|muss ich .{0,40}zahlen)\b"
        r"|\bque (?:dois-je|devons-nous) payer\b|\bqué (?:pago|pagamos|cobro)\b|\b(?:che )?cosa pago\b|\bo que pago\b"
        r"|\b(?:wat kost\w*|hoeveel (?:kost\w*|krijg\w*|betaal\w*|geld|vergoed\w*|euro)|was kostet"
        r"|wie ?viel (?:kostet|kosten|bekomm\w*|geld|zahl\w*|euro)|wie hoch (?:ist|sind)|combien (?:coûte\w*"
        r"|d'argent)"
        r"|cuánto (?:cuesta\w*|dinero|pagan?|cobr\w*)|quanto (?:costa\w*|guadagn\w*|custa\w*|dinheiro|pag\w*)"
        r"|ile (?:kosztuj\w*|pieniędzy|wynosi)|ne kadar (?:ücret|para|öd\w*|maaş)|kaç (?:lira|para|euro))\b"
        r"|얼마(?:를|인가|예요|이에요|입니까|까지|죠|야)|いくら|多少钱"
        r"|كم (?:يكلف|ثمن|المبلغ|تكلفة|سعر)",
        rf"[{currencies.SIGNS}]|\d\s?%|\d\s?(?:{currencies.WORDS})"
        r"|\b(?:eur|usd|gbp|krw|euros?|dollars?|pounds?|percent|prozent|procent|per ?cent|pour ?cent"
        r"|por ciento|per cento|por cento|procent|yüzde|lira|free of charge|for free|gratis|kosteloos|kostenlos"
        r"|gratuit\w*|bezpłatn\w*|ücretsiz|\d+ times|rate|tarief|salary|salaris|gehalt|loon|lohn"
        r"|(?:full|half|fully|statutory(?: \w+)?) (?:pay|paid)|unpaid|lohnfortzahlung|entgeltfortzahlung)\b"
        r"|\d ?(?:만|천|억)? ?원|분의|퍼센트|프로|무료|통상임금|평균임금|급여|전액|円|元|％|無料|免费"
        r"|ريال|دولار|يورو|مجان",
    ),
    AnswerType(
        "clock",
        r"\b(?:what time|hoe laat|um wie ?viel uhr|à quelle heure|a qué hora|a che ora|a que horas|o której"
        r"|saat kaçta)\b|몇 ?시(?!간)|何時(?!間)|几点|في أي ساعة",
        rf"{_OF_A_DATE}|\b\d{{1,2}} ?[.:h] ?\d{{2}}\b"
        r"|\b(?:noon|midday|midnight|mittags?|mitternacht|middag|middernacht|midi|minuit|mediodía|medianoche"
        r"|mezzogiorno|mezzanotte|meio-dia|meia-noite|południ\w+|północ\w*|öğle\w*|gece yarısı)\b|정오|자정|正午",
    ),
    # "How late" is answered by "16:00", and by "on Monday".
    AnswerType("moment", r"\b(?:how (?:late|early|soon)|hoe vroeg|wie (?:spät|früh))\b", rf"\d|{_TIME}"),
    AnswerType("days", _asks_for(_DAYS), f"{_count_of(_DAYS)}|{_NO_NUMBER}", _NUMBER_OF),
    AnswerType("hours", _asks_for(_HOURS), f"{_count_of(_HOURS)}|{_NO_NUMBER}", _NUMBER_OF),
    AnswerType(
        "amount",
        r"\b(?:how (?:much|many|long|far|old)|hoeveel|hoe (?:lang|ver|oud)|wie ?viele?|wie (?:lange|weit|hoch|alt)"
        r"|combien|cuánt[oa]s?|quant[oaie]s?|ile|jak (?:długo|daleko)|ne kadar"
        r"|kaç)\b|몇|얼마나|얼마|며칠|何(?:日|時間|人|年|月|週|歳)|どのくらい|どれくらい|多少|多长"
        r"|几[天个年月小]|كم ",
        rf"\d|\b(?:{_NUMBER_WORDS}|{_LARGER_NUMBER_WORDS})\b|\b(?:{_ARTICLES_OR_NUMBERS}) {UNITS}\b|{_COMPOUND_COUNT}"
        r"|[하한두세네]\s?(?:번|시간|달|주|명|배)|이틀|사흘|나흘|절반|두 배"
        r"|[一二三四五六七八九十百千半两]"
        r"|واحد|اثن|ثلاث|أربع|خمس|ست|سبع|ثمان|تسع|عشر|نصف|يوم(?:ين|ان)|شهر(?:ين|ان)|سنت(?:ين|ان)"
        rf"|{_NO_NUMBER}",
        _NUMBER_OF,
    ),
    AnswerType(
        "date",
        r"\bwhen(?:['’]s| is| are| will)\b.{0,20}\bnext\b|\bwanneer (?:is|zijn) .{0,15}\bvolgende\b"
        r"|\bwann (?:ist|sind) .{0,15}\bnächste\w*|\bquand .{0,25}\bprochaine?s?\b|\bcuándo .{0,25}\bpróxim\w+"
        r"|\bquando .{0,25}\b(?:prossim|próxim)\w+|\bkiedy .{0,25}\bnastępn\w+|다음.{0,15}언제|次の.{0,15}いつ"
        r"|下(?:一|次).{0,15}(?:什么时候|何时)|متى .{0,25}(?:القادم|المقبل)\w*",
        rf"\b(?:{_MONTHS}|{_WEEKDAYS})\b|\d{{4}}-\d\d|\d{{1,2}}[./]\d{{1,2}}[./]|\b\d{{1,2}}(?:st|nd|rd|th)\b"
        r"|\d ?[월月]",
    ),
    AnswerType(
        "time",
        # Some of these words are also conjunctions ("what happens when I am ill?") and then ask for no time.
        r"(?:^|[.,;:!?]\s+|\b(?:and|since|until|by|en|et|e|i)\s+)(?:when|wanneer|quand|quando|kiedy)\b"
        r"|\b(?:what date|which day|wann|à quelle date|cuándo|ne zaman)\b|언제|いつ|什么时候|何时|متى",
        _TIME,
        definite_pattern=rf"{_DATE}|{_TIME_LIMIT.pattern}",
    ),
)


_COUNT_IN_HEADING = re.compile(rf"\b{_COUNT}\b|{_COUNTED}", re.IGNORECASE)


def counts_in(heading: str, question: str) -> bool:
    """Whether a heading, like "Interview — 2 hours", contains an amount which is not in the question."""
    counts = {match[0].casefold() for match in _COUNT_IN_HEADING.finditer(heading)}
    return any(count not in question.casefold() for count in counts)


def requested_type(question: str) -> AnswerType | None:
    """Return the type of fact a question asks for, or `None` if any sentence may answer."""
    return next((kind for kind in TYPES if kind.question_regex.search(question)), None)
