"""Build questions about a section from the heading: about an amount, a procedure, a deadline, a contact.

The rules in `question_templates.toml` are tried in order. The first rule which matches the whole heading builds the
question. A rule may require content in the section, for example an amount of money, to make sure the section answers
the question.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal, NamedTuple

from rag.text import currencies

#: Content a section must have for a question.
Need = Literal["", "days", "money", "cover", "date"]
NEEDS: dict[Need, re.Pattern[str]] = {
    "days": re.compile(
        r"\d[\d.,]{0,9}\s?(?:(?:working|calendar|paid|full|werk|arbeits)[ -]?)?"
        r"(?:days?|weeks?|months?|years?|hours?|dag(?:en)?|we?ken|week|maand(?:en)?|uur|tage?|wochen?|monate?|werktage?|jours?|semaines?|mois|días?|semanas?|mes(?:es)?"
        r"|giorn[oi]|settiman[ae]|mes[ei]|dias?|dni|dzień|tygodni\w*|miesi\w+|gün\w*|hafta\w*|ay\b|일|주|개월|년|시간"
        r"|日|週|か月|ヶ月|年|天|周|个月|يوم\w*|أيام|أسابيع|أسبوع|شهر\w*|أشهر)",
        re.IGNORECASE,
    ),
    "money": re.compile(
        rf"[{currencies.SIGNS}]\s?\d|\d[\d.,]{{0,12}}\s?(?:[%％{currencies.SIGNS}]|{currencies.WORDS})",
        re.IGNORECASE,
    ),
    "date": re.compile(r"\d{1,2}월|\d{1,2}\.\s?\d{1,2}\b|\d{1,2}日|\d{4}-\d\d"),
    "cover": re.compile(r"\b(?:plan|policy|insurance)\b.{0,200}\bcover|\bcovered\b", re.IGNORECASE | re.DOTALL),
}


class Template(NamedTuple):
    """A rule: a pattern for headings, the question to suggest, and the required content in the section."""

    heading: re.Pattern[str]
    question: str
    need: Need


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
#: Activities in headings, with the words people ask with.
GERUNDS: dict[str, str] = _TABLES["gerunds"]
#: Questions about kinds of things with a name, for example plans and programmes, by language.
DEFINITIONS: dict[str, str] = _TABLES["definitions"]
#: Headings which are questions without a question mark.
QUESTIONS = {language: re.compile(heading, re.IGNORECASE) for language, heading in _TABLES["questions"].items()}
#: Headings too vague without their parent heading; questions use both together.
NEEDS_PARENT = {language: re.compile(heading, re.IGNORECASE) for language, heading in _TABLES["needs_parent"].items()}
_GERUND = f"(?P<gerund>{'|'.join(GERUNDS)})"
TEMPLATES = {
    language: tuple(
        Template(
            re.compile(rule["heading"].replace("<gerund>", _GERUND), re.IGNORECASE),
            rule["question"],
            rule.get("needs", ""),
        )
        for rule in rules
    )
    for language, rules in _TABLES["templates"].items()
}

#: Headings nobody asks about.
EMPTY = re.compile(
    r"(table of )?contents|index|introduction|overview|summary|conclusion|appendix.*|annex.*|references|preface"
    r"|summary of .*|additional information.*|covered services|important .* information|important information"
    r"|(.* )?comparison.*|.* packages|at a glance|.*, at a glance"
    r"|(who|whom|what|how|when|why|where) .*|(voor )?wie .*|wat .*|hoe .*|適用範囲|적용 대상|이의 제기"
    r"|foreword|glossary|disclaimer|next steps|about .*|definitions?|general|other|miscellaneous|notes?|everyday"
    r"|chapter .*|article .*|section .*|part .*|hoofdstuk .*|artikel .*|afdeling .*|kapitel .*|abschnitt .*|titre .*"
    r"|inhoud(sopgave)?|inleiding|overzicht|samenvatting|bijlage.*|waarvoor dit .*|als er iets .*|over dit .*"
    r"|inhalt(sverzeichnis)?|einleitung|übersicht|anhang.*|eingangsformel|geltungsbereich|inkrafttreten"
    r"|übergangsvorschrift.*|.*-klausel|änderung und aufhebung .*|unabdingbarkeit|sommaire|introducción|índice"
    r"|목차|차례|개요|서론|머리말|부록.*|부칙|총칙|목적|정의|적용 ?범위|그 밖의.*|이 (안내서|문서|규정).*|문의처"
    r"|目次|目录|概要|はじめに|附則|附录|总则|総則|目的|用語.*|定義|その他.*|お?問い?合わせ先?|連絡先|まとめ|おわりに|参考.*"
    r"|定义|联系方式|其他|前言|引言|适用范围|참고"
    r"|purpose|scope|contacts?|doel|definities|begrippen|contact(?:gegevens)?|overig(?:e|en)?|toepassingsgebied"
    r"|zweck|begriffsbestimmungen|definitionen|ansprechpartner|kontakt|sonstiges|schlussbestimmungen"
    r"|introduction|objet|définitions|champ d.application|conclusion|annexes?|divers|coordonnées"
    r"|objeto|definiciones|ámbito(?: de aplicación)?|contacto|conclusión|anexos?|generalidades"
    r"|introduzione|indice|scopo|oggetto|definizioni|ambito(?: di applicazione)?|contatti|conclusioni?|allegat[oi]"
    r"|introdução|índice|sumário|objetivo|objeto|definições|âmbito|contac?tos?|conclusão"
    r"|wstęp|wprowadzenie|spis treści|cel|zakres|definicje|postanowienia (?:ogólne|końcowe)|załącznik.*"
    r"|giriş|önsöz|içindekiler|amaç(?: ve kapsam)?|kapsam|tanımlar|genel (?:hükümler|bilgiler)|yürürlük|iletişim|sonuç"
    r"|ek(?:ler)?(?: \d+)?|diğer"
    r"|مقدمة|المقدمة|الفهرس|المحتويات|الهدف|الغرض|النطاق|نطاق التطبيق|التعريفات|تعريفات|الاتصال|للتواصل"
    r"|أحكام عامة|خاتمة",
    re.IGNORECASE,
)
#: Names for numbered parts of documents, with the number.
LABEL = (
    r"(?:policy|rule|regulation|procedure|directive|guideline|form|clause|section|article|chapter|annex"
    r"|appendix|schedule|table|figure|part|item|point|step|exhibit|attachment|beleid|regel|regeling|bijlage|artikel"
    r"|hoofdstuk|tabel|figuur|formulier|stap|richtlinie|regelung|vorschrift|anlage|anhang|abschnitt|kapitel|tabelle"
    r"|abbildung|formular|schritt|punkt|politique|règle|règlement|procédure|annexe|chapitre|tableau|formulaire|étape"
    r"|política|norma|regla|procedimiento|anexo|artículo|capítulo|sección|tabla|figura|formulario|paso|punto|regola"
    r"|procedura|allegato|articolo|capitolo|sezione|tabella|modulo|passo|regra|procedimento|artigo|secção|seção|tabela"
    r"|formulário|ponto|polityka|zasada|regulamin|załącznik|artykuł|rozdział|rysunek|formularz|krok|politika|kural"
    r"|yönetmelik|prosedür|ek|madde|bölüm|tablo|şekil|adım|(?:ال)?(?:سياسة|قاعدة|مادة|فصل|ملحق|جدول|نموذج|بند)"
    r"|정책|규정|규칙|지침|조항|별표|별지|서식|단계|항목|規程|規則|方針|ポリシー|別表|様式|ステップ|政策|规定|制度|附表|附件|步骤)"
    r"\s*(?:no\.?|nr\.?|n[°º]\.?|№|#|number|nummer|numéro|número|numero|numer|numara|رقم|제|第)?\s*"
)
#: The same before the subject: "Policy 29: Travel expenses".
LABELLED = re.compile(rf"^{LABEL}\d+[a-z]?(?:[.-]\d+)*\s*[:.–—-]\s+(?=\S)", re.IGNORECASE)
#: A company's words for itself, in languages with and without spaces.
SELF_PRAISE = (
    r"(?:our (?:mission|vision|purpose|story|history|(?:core |company )?values)|(?:mission|vision) statement"
    r"|company(?:['’]s)? (?:mission|vision|values)|(?:message|letter|welcome) from (?:the |our )?.{2,40}"
    r"|onze (?:missie|visie|(?:kern)?waarden)|unsere? (?:mission|vision|werte|leitbild)|unternehmensleitbild"
    r"|notre (?:mission|vision)|nos valeurs|nuestra (?:misión|visión)|nuestros valores"
    r"|(?:la )?nostra (?:missione|mission|visione|vision)|(?:i )?nostri valori|(?:a )?nossa (?:missão|visão)"
    r"|(?:os )?nossos valores|nasz[ae] (?:misja|wizja|wartości)|misyonumuz|vizyonumuz|değerlerimiz)(?!\w)"
    r"|رسالتنا|رؤيتنا|قيمنا|(?:우리의 )?(?:미션|비전|핵심 ?가치|경영 ?이념|인사말)"
    r"|企業理念|経営理念|ミッション|ビジョン|行動指針|(?:我们的)?(?:使命|愿景|价值观)|企业文化"
)
#: A company's leaders: the organisation chart shows their duties, and nobody asks an assistant about them.
LEADERS = (
    r"chief (?:\w+ ){1,3}officer(?: \(\w+\))?|c[efiot]o|(?:executive |senior )?vice president(?: of .+)?"
    r"|managing director|president|board of directors"
)
#: Clauses, which name no subject to ask about: "Before you leave".
CLAUSES = r"(?:because|before|after|while|until|unless|once|since|whether|although) .+"
#: Headings no employee asks about.
NO_QUESTION = re.compile(
    rf"(?:the )?(?:{LABEL}(?:\d+[a-z]?(?:[.-]\d+)*|[ivxlc]+)|{SELF_PRAISE}|mission|values|core values|{LEADERS})"
    rf"|{CLAUSES}",
    re.IGNORECASE,
)
#: Questions no employee asks, whoever wrote them: about a number instead of a subject, about a company's description
#: of itself, or about the duties of its leaders.
NOBODY_ASKS = re.compile(
    rf"(?<!\w)(?:{LABEL}\d{{1,2}}(?![A-Za-z\d:.,%-]|\s*[%€$])|{SELF_PRAISE})"
    rf"|^what (?:does|do|is the role of) (?:an? |the )?(?:{LEADERS})(?: do)?\?",
    re.IGNORECASE,
)


def nobody_asks(question: str) -> bool:
    """Whether no employee would ask this question, even if documents answer it."""
    return NOBODY_ASKS.search(question) is not None


#: Text around the subject in the titles of posts: "[긴급] …", "… 안내 : 공지사항".
AROUND_TITLE = re.compile(
    r"^(?:\[[^\]]*\]|【[^】]*】)\s*|\s*:\s*공지사항$|\s*(?:안내|공지|공고|알림|개정)$|(?:のお知らせ|について|のご案内)$|(?:的)?通知$"
)
#: Singular words which need an article in a question.
WITH_ARTICLE = re.compile(
    r"(?:.* )?(?:period|day|week|procedure|office|fund|contract|structure|card|plan|scheme|standstill|dress code"
    r"|loan|car|bonus|allowance|budget|grant|discount|premium|limit|fee|deductible|pension"
    r"|vehicle|phone|laptop|computer|badge|uniform|council|committee|canteen|workplace)"
)
