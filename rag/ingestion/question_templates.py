"""Write questions about a section from its heading: an amount, a procedure, a time limit, a contact.

Rules are tried in order on the whole heading, written like inside a sentence; the first match makes the question. `{0}`
is the heading, `{rest}` a named part. A rule may require content in the section, such as an amount of money, so that
it does not ask about missing content.
"""

from __future__ import annotations

import re
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
    """A question for headings with a common form."""

    heading: re.Pattern[str]
    question: str
    need: Need


def _rules(*rules: tuple[str, str] | tuple[str, str, Need]) -> tuple[Template, ...]:
    return tuple(
        Template(re.compile(rule[0], re.IGNORECASE), rule[1], rule[2] if len(rule) > 2 else "") for rule in rules
    )


#: Activities in headings, with the words people ask with.
GERUNDS = {
    "applying": "apply", "arranging": "arrange", "asking": "ask", "booking": "book", "calling": "call",
    "cancelling": "cancel", "canceling": "cancel", "changing": "change", "claiming": "claim", "choosing": "choose",
    "declaring": "declare", "enrolling": "enrol", "filing": "file", "giving": "give",
    "joining": "join", "making": "make", "notifying": "notify", "ordering": "order", "paying": "pay",
    "raising": "raise", "recording": "record", "registering": "register", "reporting": "report",
    "requesting": "request", "reserving": "reserve", "speaking": "speak", "submitting": "submit", "taking": "take",
    "updating": "update", "using": "use",
}  # fmt: skip

TEMPLATES: dict[str, tuple[Template, ...]] = {
    "en": _rules(
        (r"how to (?P<rest>.+)", "How do I {rest}?"),
        (rf"(?P<gerund>{'|'.join(GERUNDS)}) (?P<rest>(?!.*ing\b).+)", "How do I {base} {rest}?"),
        (r"(?:eligibility|entitlement|qualifying) (?:for|to) (?P<rest>.+)", "Who is entitled to {rest}?"),
        (r"(?:notice|notice periods?)", "How much notice do I have to give?", "days"),
        (r"probation", "How long does probation last?", "days"),
        (r"(?:.* )?(?:period|waiting time)", "How long is the {0}?", "days"),
        (r"(?:.*\b)?sick(?:ness)? (?:leave|pay|days)", "What happens when I am sick?"),
        (r".*\b(?:leave|vacation|time off|pto|annual holiday)", "How much {0} do I get?", "days"),
        (r".*\b(?:holidays|vacation days|days off)", "How many {0} do I get?", "days"),
        (r"pay ?day", "When is payday?"),
        (r".*\b(?:allowance|bonus|budget|deductible|premium|contribution|grant|loan|stipend|subsidy|discount|maximum"
         r"|limit|fee)", "How much is the {0}?", "money"),
        (r".*\b(?:allowances|bonuses|deductibles|premiums|contributions|copayments|copays|fees|rates|costs)(?: \(.*)?",
         "How much are the {0}?", "money"),
        (r"(?:illness|accidents?|fire|harassment|bullying|theft|bereavement|discrimination|emergenc(?:y|ies)|injur\w+"
         r"|workplace violence)(?: .*)?", "What should I do in case of {0}?"),
        (r"(?:(?:director|(?:senior )?manager|head) of .+|(?:\S+ ){1,3}(?:manager"
         r"|engineer|analyst|representative|specialist|coordinator|designer|developer|technician))",
         "What does {a} {0} do?"),
        (r"(?:acupuncture|chemotherapy|dialysis|ambulance|hospital|.*\b(?:care|therapy|testing|treatment|surgery"
         r"|equipment|drugs|supplies|reconstruction|imaging|immuni[sz]ations?|transplants?|rehabilitation|foods|trials"
         r"|transportation))(?: and .*)?", "Does the plan cover {0}?", "cover"),
        (r".* (?:policy|code|charter|agreement)", "What does the {0} say?"),
        (r"(?:\S+ ){0,4}(?:plan|scheme|programme|program|account|review|system|process)", "How does the {0} work?"),
        (r"(?:(?!\S*ing\b)\S+ ){0,3}(?:reviews|schemes|plans|accounts|permits)", "How do {0} work?"),
        (r"(?:\S+ ){0,3}(?:insurance|cover|coverage|protection)", "How does {0} work?"),
        (r"(?:.* )?overtime", "How is {0} paid?"),
        (r"(?P<rest>if .+)", "What happens {rest}?"),
        (r".*", "What are the rules on {0}?"),
    ),
    "nl": _rules(
        (r"ziek ?melden", "Hoe meld ik me ziek?"),
        (r"(?:.+ )?(?:aanvragen|melden|opnemen|indienen|declareren|ruilen|kopen|verkopen|meenemen|wijzigen|opzeggen"
         r"|doorgeven|registreren|bestellen|boeken)", "Hoe kan ik {0}?"),
        (r"aantal (?P<rest>.+)", "Hoeveel {rest} krijg ik?"),
        (r"loon bij (?P<rest>.+)", "Hoeveel loon krijg ik bij {rest}?"),
        (r"ziek tijdens (?P<rest>.+)", "Wat gebeurt er als ik ziek word tijdens {rest}?"),
        (r"(?:.* )?\S*(?:verlof|vakantie)", "Hoeveel {0} krijg ik?", "days"),
        (r"(?:.* )?\S*(?:termijn|periode|proeftijd)", "Hoe lang is de {0}?", "days"),
        (r"(?:.* )?\S*(?:vergoeding|toeslag|bonus|premie|bijdrage|korting|uitkering)", "Hoe hoog is de {0}?", "money"),
        (r"\S*ongeval", "Wat moet ik doen bij een {0}?"),
        (r"(?:ziekte|\S*ongeval\w*|brand|pesten|\S*intimidatie|diefstal|verlies)(?: .*)?", "Wat moet ik doen bij {0}?"),
        # The heading stands apart where it would need an article: "voor de opzegtermijn".
        (r".*", "{Cap}: wat zijn de regels?"),
    ),
    "de": _rules(
        (r".+ (?:beantragen|melden|einreichen|nehmen|übertragen|ändern|abrechnen|kündigen|buchen)",
         "Wie kann ich {0}?"),
        (r"(?:Dauer|Höhe|Berechnung) .+", "Wie ist die {0} geregelt?"),
        (r"(?:Zeitpunkt|Beginn|Umfang) .+", "Wie ist der {0} geregelt?"),
        (r"\S*anspruch", "Wie hoch ist der {0}?"),
        (r"(?!Teilzeit|Gleitzeit)\S*(?:frist|zeit|periode)", "Wie lang ist die {0}?", "days"),
        (r"\S*urlaub", "Wie viel {0} bekomme ich?", "days"),
        (r"\S*(?:zulage|prämie|vergütung|pauschale|erstattung|beihilfe|entschädigung)",
         "Wie hoch ist die {0}?", "money"),
        (r"\S*(?:zuschuss|bonus|beitrag|rabatt|zuschlag)", "Wie hoch ist der {0}?", "money"),
        (r"\S*(?:gehalt|entgelt)", "Wie hoch ist das {0}?"),
        (r"(?:\S*unfall|Brand)(?: .*)?", "Was gilt bei einem {0}?"),
        (r"(?:Erkrankung|Krankheit|Feuer|Mobbing|Diebstahl)(?: .*)?", "Was gilt bei {0}?"),
        (r".*", "{Cap}: Welche Regeln gelten?"),
    ),
    "fr": _rules(
        (r"(?:demander|poser|déclarer|signaler|obtenir|modifier|annuler|réserver|prévenir) .+", "Comment {0} ?"),
        (r"demandes? (?P<rest>(?:de |d'|d’|du |des ).+)", "Comment faire une demande {rest} ?"),
        (r"jours (?P<rest>.+)", "À combien de jours {rest} ai-je droit ?", "days"),
        (r"congés?\b.*", "À combien de jours de {0} ai-je droit ?", "days"),
        (r"(?:délai|préavis)\b.*", "Quel est le {0} ?", "days"),
        (r"(?:durée|période)\b.*", "Quelle est la {0} ?", "days"),
        (r"(?:montant|remboursement|budget|taux|salaire|bonus)\b.*", "Quel est le {0} ?", "money"),
        (r"(?:maladie|accidents?|incendie|harcèlement|vol|urgences?)\b.*", "Que faire en cas {de}{0} ?"),
        (r"(?:les?|la|une?|des|nos|vos) .+|l['’].+", "{Cap} : quelles sont les règles ?"),
        (r".*", "Quelles sont les règles en matière {de}{0} ?"),
    ),
    "es": _rules(
        (r"(?:solicitar|pedir|comunicar|notificar|cambiar|reservar|declarar) .+", "¿Cómo puedo {0}?"),
        (r"solicitud(?:es)? de (?P<rest>.+)", "¿Cómo solicito {rest}?"),
        (r"días (?P<rest>.+)", "¿Cuántos días {rest} me corresponden?", "days"),
        (r"(?:vacaciones|permisos?|licencias?)\b.*", "¿Cuántos días de {0} me corresponden?", "days"),
        (r"(?:plazo|periodo|período|preaviso)\b.*", "¿Cuál es el {0}?", "days"),
        (r"(?:importe|salario|sueldo|bono|plus|complemento|reembolso|descuento|subsidio)\b.*", "¿De cuánto es el {0}?",
         "money"),
        (r"(?:ayuda|prima|bonificación|compensación|indemnización)\b.*", "¿De cuánto es la {0}?", "money"),
        (r"(?:enfermedad|accidentes?|incendio|acoso|robo|emergencias?)\b.*", "¿Qué hago en caso de {0}?"),
        (r".*", "{Cap}: ¿qué normas hay?"),
    ),
    "it": _rules(
        (r"(?:richiedere|chiedere|comunicare|segnalare|prenotare|modificare) .+", "Come posso {0}?"),
        (r"richiest[ae] di (?P<rest>.+)", "Come faccio a richiedere {rest}?"),
        (r"giorni (?P<rest>.+)", "Quanti giorni {rest} mi spettano?", "days"),
        (r"(?:ferie|permess[io]|congedo)\b.*", "Quanti giorni di {0} mi spettano?", "days"),
        (r"(?:termine|periodo|preavviso)\b.*", "Qual è il {0}?", "days"),
        (r"(?:bonus|premio|rimborso|contributo)\b.*", "A quanto ammonta il {0}?", "money"),
        (r"(?:malattia|infortun[io]|incendio|molestie|furto|emergenza)\b.*", "Cosa devo fare in caso di {0}?"),
        # "Sull’orario", "sulla mensa": the preposition would join the article.
        (r".*", "{Cap}: quali regole valgono?"),
    ),
    "pt": _rules(
        (r"(?:solicitar|pedir|comunicar|marcar|alterar|declarar) .+", "Como posso {0}?"),
        (r"(?:pedidos?|solicitaç(?:ão|ões)) de (?P<rest>.+)", "Como posso pedir {rest}?"),
        (r"dias (?P<rest>.+)", "A quantos dias {rest} tenho direito?", "days"),
        (r"(?:férias|licenças?|folgas?)\b.*", "A quantos dias de {0} tenho direito?", "days"),
        (r"(?:prazo|período|aviso prévio)\b.*", "Qual é o {0}?", "days"),
        (r"(?:subsídio|auxílio|b[ôó]nus|salário|reembolso|desconto)\b.*", "De quanto é o {0}?", "money"),
        (r"(?:doença|acidentes?|incêndio|assédio|roubo|emergências?)\b.*", "O que faço em caso de {0}?"),
        (r".*", "{Cap}: quais são as regras?"),
    ),
    "pl": _rules(
        (r"(?:wniosek|wnioski|wnioskowanie) o (?P<rest>.+)", "Jak złożyć wniosek o {rest}?"),
        (r"urlop\b.*", "Ile dni trwa {0}?", "days"),
        (r"okres .+", "Ile trwa {0}?", "days"),
        (r"(?:dodatek|zasiłek|zwrot|limit|bonus|ryczałt|premia|odprawa|dieta|stawka|składka|nagroda)\b.*",
         "Ile wynosi {0}?", "money"),
        (r"(?:choroba|wypadek|pożar|mobbing|kradzież)\b.*", "{Cap} – co mam zrobić?"),
        (r".*", "{Cap} – jakie obowiązują zasady?"),
    ),
    "tr": _rules(
        (r"(?P<rest>.+ durumunda) (?:yapılacaklar|yapılması gerekenler)", "{Rest} ne yapmalıyım?"),
        (r".* (?:başvurusu|talebi|bildirimi|kaydı)", "{Cap} nasıl yapılır?"),
        (r".*(?:izni|izin|tatili?)", "{Cap} kaç gün?", "days"),
        (r".*(?:süresi|dönemi)", "{Cap} ne kadar?", "days"),
        (r".*(?:ücreti|ödeneği|primi|yardımı|tazminatı|indirimi|maaşı|desteği)", "{Cap} ne kadar?", "money"),
        (r"(?:.* )?(?:hastalık|kazası?|yangın|taciz|hırsızlık)", "{Cap} durumunda ne yapmalıyım?"),
        (r".* (?:kuralları|koşulları|şartları|hakları|saatleri|esasları|ilkeleri)", "{Cap} neler?"),
        # The heading stands apart: a following word would have to agree with its ending.
        (r".*", "{Cap}: kurallar neler?"),
    ),
    "ar": _rules(
        (r"(?:طلب|تقديم|التقديم|تسجيل|الإبلاغ) .+", "كيف يتم {0}؟"),
        (r"(?:ال)?إجازة.*", "كم مدة {0}؟", "days"),
        (r"(?:مدة|فترة|مهلة) .+", "ما هي {0}؟", "days"),
        (r"(?:بدل|راتب|تعويض|خصم) .+", "كم يبلغ {0}؟", "money"),
        (r"(?:قواعد|شروط|أحكام) .+", "ما هي {0}؟"),
        (r"(?:ال)?(?:مرض|حادث|حوادث|حريق|تحرش|إصابة).*", "ماذا أفعل في حالة {0}؟"),
        (r".*", "ما هي قواعد {0}؟"),
    ),
    "zh": _rules(
        (r"(?:如何|怎样|怎么).+", "{0}？"),
        (r"(?P<rest>.+?)(?:的?(?:流程|方法|程序|手续))", "{rest}怎么办理？"),
        (r".+(?:申请|报销|登记|办理)", "{0}怎么办理？"),
        (r".*(?:假|假期)", "{0}有几天？", "days"),
        (r".*(?:期限|试用期|通知期|时限)", "{0}是多久？", "days"),
        (r".*(?:补贴|津贴|奖金|补助|费用|加班费)", "{0}是多少？", "money"),
        (r".*(?:工伤|事故|火灾|骚扰|欺凌)", "遇到{0}怎么办？"),
        (r"(?P<rest>.{2,}?)(?:管理)?(?:制度|规定|政策|办法)", "{rest}有哪些规定？"),
        (r".*", "{0}有哪些规定？"),
    ),
    "ko": _rules(
        (r"(?P<rest>.*신청)(?: ?(?:방법|절차))?", "{rest}은/는 어떻게 하나요?"),
        (r"(?P<rest>.+?) ?(?:방법|절차)", "{rest}은/는 어떻게 하나요?"),
        (r".*(?:휴가|연차)", "{0}은/는 며칠인가요?", "days"),
        (r".*휴직", "{0} 기간은 얼마나 되나요?", "days"),
        (r".*(?:기간|기한)", "{0}은/는 얼마나 되나요?", "days"),
        (r".*(?:수당|급여|지원금|경조금|학자금|보상금|상여금|퇴직금)", "{0}은/는 얼마인가요?", "money"),
        (r".*(?:괴롭힘|사고|화재|성희롱|재해)", "{0} 발생 시 어떻게 해야 하나요?"),
        (r".*(?:점검|교육|검진|행사|간담회|설명회)", "{0}은/는 언제 하나요?", "date"),
        (r".*(?:사항|대상|대상자|요건|조건|기준)", "{0}은/는 무엇인가요?"),
        (r"(?P<rest>.+?)의 금지", "{rest}은/는 금지되나요?"),
        (r".*", "{0}은/는 어떻게 되나요?"),
    ),
    "ja": _rules(
        (r".+(?:には|ときは|場合は)", "{0}どうすればいいですか？"),
        (r"(?P<rest>.+?)(?:(?:とき|場合)(?:の対応|の手続き?)?)", "{rest}ときはどうすればいいですか？"),
        (r"(?P<rest>.+?)の?(?:方法|手続き?|手順)", "{rest}はどうすればいいですか？"),
        (r".+(?:申請|届出|請求|報告|精算)", "{0}はどうすればいいですか？"),
        (r".*日数", "{0}は何日ですか？", "days"),
        (r".*対象者", "{0}は誰ですか？"),
        (r".*(?:休暇|年休|有給)", "{0}は何日ですか？", "days"),
        (r".*(?:休業|休職)", "{0}の期間はどのくらいですか？", "days"),
        (r".*期限", "{0}はいつですか？"),
        (r".*期間", "{0}はどのくらいですか？", "days"),
        (r".*(?:手当|補助|費用|賞与|退職金)", "{0}はいくらですか？", "money"),
        (r".*(?:事故|災害|火災|地震|労災)", "{0}が起きたときはどうすればいいですか？"),
        (r".*(?:ハラスメント|いじめ|嫌がらせ)", "{0}を受けたときはどうすればいいですか？"),
        (r".*", "{0}はどうなっていますか？"),
    ),
}  # fmt: skip

#: Kinds of things with a name, for example plans and programmes.
DEFINITIONS = {
    "en": "What is {0}?", "nl": "Wat is {0}?", "de": "Was ist {0}?", "fr": "Qu’est-ce que {0} ?", "es": "¿Qué es {0}?",
    "it": "Che cos’è {0}?", "pt": "O que é {0}?", "pl": "Co to jest {0}?", "tr": "{0} nedir?", "ar": "ما هو {0}؟",
    "zh": "什么是{0}？", "ko": "{0}란 무엇인가요?", "ja": "{0}とは何ですか？",
}  # fmt: skip

#: Headings which are questions without a question mark: "What happens if I fall ill", "Wie betaalt mijn opleiding".
QUESTIONS = {
    "en": re.compile(
        r"(?:what|who|when|where|how|which|why) (?:is|are|do|does|can|may|must|should|happens|counts|will) .+"
        r"|(?:can|may|do|must|am) i .+", re.IGNORECASE),
    "nl": re.compile(r"(?:hoe|wat|wie|waar|wanneer|welke?|hoeveel|mag|kan|moet) .*\b(?:ik|je|u|er)\b.*", re.IGNORECASE),
    "de": re.compile(r"(?:wie|was|wer|wo|wann|welche[rs]?|darf|kann|muss) .*\b(?:ich|man|sie|wir)\b.*", re.IGNORECASE),
    "tr": re.compile(r"(?:.* )?(?:nasıl|kimler?|nerede|ne zaman|hangi|kaç|neden|mı|mi|mu|mü)\b.*", re.IGNORECASE),
    "ja": re.compile(r".*(?:ます|です|ません|でしょう)か"),
    "fr": re.compile(r"(?:comment|quand|qui|que|quels?|quelles?|puis-je|dois-je) .+", re.IGNORECASE),
}  # fmt: skip
#: Headings too vague without their parent heading; questions use both together.
NEEDS_PARENT = {
    "nl": re.compile(r"(?:aanvragen|opnemen|kopen en verkopen|meenemen|declareren|wijzigen)", re.IGNORECASE),
    "ko": re.compile(r"(?:신청(?: ?(?:방법|절차|기간))?|신청과 승인|대상(?:과 일수)?|일수|기간|절차|방법|기준)"),
    "ja": re.compile(r"(?:申請(?:方法|手続き?|期限)?|対象者?|日数|期間|期限|手続き?)"),
    "zh": re.compile(r"(?:申请(?:流程|方法)?|适用对象|天数|期限|流程)"),
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
NOT_ASKED_ABOUT = re.compile(
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
    """Whether no employee would ask this question, even if a document answers it."""
    return NOBODY_ASKS.search(question) is not None


#: Text around the subject in the titles of posts: "[긴급] …", "… 안내 : 공지사항".
AROUND_TITLE = re.compile(
    r"^(?:\[[^\]]*\]|【[^】]*】)\s*|\s*:\s*공지사항$|\s*(?:안내|공지|공고|알림|개정)$|(?:のお知らせ|について|のご案内)$|(?:的)?通知$"
)
#: Singular words which need an article in a question.
WITH_ARTICLE = re.compile(
    r"(?:.* )?(?:period|day|week|procedure|office|fund|contract|structure|card|plan|scheme|standstill|dress code"
    r"|loan|car|bonus|allowance|budget|grant|discount|premium|limit|fee|deductible|pension)"
)
