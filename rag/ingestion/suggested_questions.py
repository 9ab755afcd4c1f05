"""Make questions from a document's headings, which are shown where no model writes any."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rag.types import Section

#: Natural questions about a section of a document. The marks around titles are each language's own.
QUESTIONS = {
    "en": "What does {title} say about {section}?",
    "ko": "‘{title}’에서는 ‘{section}’에 대해 어떻게 정하고 있나요?",
    "nl": "Wat staat er in {title} over {section}?",
    "de": "Was steht in „{title}“ zum Thema „{section}“?",
    "fr": "Que dit « {title} » à propos de « {section} » ?",
    "es": "¿Qué dice «{title}» sobre «{section}»?",
    "it": "Che cosa dice «{title}» su «{section}»?",
    "pt": "O que diz “{title}” sobre “{section}”?",
    "ja": "「{title}」では「{section}」についてどのように定めていますか。",
    "zh": "《{title}》对“{section}”有什么规定？",
    "tr": "“{title}” belgesinde “{section}” hakkında ne yazıyor?",
    "ar": "ماذا يقول «{title}» عن «{section}»؟",
}
#: What documents are called, with the article it takes: "the leave policy", "het verlofbeleid".
KINDS = {
    "en": {
        "the": r"handbook|policy|guide|manual|plan|library|code of conduct|rules|procedure|guidelines|agreement|charter"
    },
    "nl": {
        "het": r"\w*(?:beleid|handboek|reglement|plan|protocol)",
        "de": r"\w*(?:gids|regeling|handleiding|richtlijn|gedragscode|cao|wijzer)",
    },
}
#: Headings that nobody asks about.
EMPTY_HEADING = re.compile(
    r"(table of )?contents|index|introduction|overview|summary|conclusion|appendix.*|annex.*|references|preface"
    r"|(who|whom|what|how|when|why|where) .*|(voor )?wie .*|wat .*|hoe .*|適用範囲|적용 대상|이의 제기"
    r"|foreword|glossary|disclaimer|next steps|about .*|definitions?|general|other|miscellaneous|notes?|everyday"
    r"|inhoud(sopgave)?|inleiding|overzicht|samenvatting|bijlage.*|waarvoor dit .*|als er iets .*|over dit .*"
    r"|inhalt(sverzeichnis)?|einleitung|übersicht|anhang.*|sommaire|introducción|índice"
    r"|목차|차례|개요|서론|머리말|부록.*|부칙|총칙|목적|그 밖의.*|이 (안내서|문서|규정).*|문의처"
    r"|目次|目录|概要|はじめに|附則|附录",
    re.IGNORECASE,
)
#: An amount, a share, a time, a count of something; not the number of a paragraph or a year alone.
FIGURE = re.compile(
    r"[$€£₩¥]\s?\d|\d[\d.,]{0,30}\s?(?:%|％|€|EUR|USD|원|만|円|元|일|시간|개월|주|년|회|日|時間|か月|週|年|天|小时|[^\W\d_]{3,})"
)
NUMBERING = re.compile(
    r"^(\d+([.)]\d*)*\.?|[IVXivx]+\.|[A-Za-z]\)|제\s?\d+\s?[조장절관편]|第[\d一二三四五六七八九十百]+[条章节節]|§\s?\d+)\s*"
)


def questions_from_sections(
    title: str, sections: Sequence[Section], text: str, language: str, *, limit: int = 6
) -> list[str]:
    """Ask about a document's sections in its language, taken evenly from its beginning to its end.

    Sections with numbers come before those without: people ask about days, amounts and limits.
    """
    template = QUESTIONS.get(language)
    if template is None:
        return []
    own = title.casefold()
    headings: dict[str, str] = {}
    with_figures = set()
    ordered = sorted(sections, key=lambda section: section.start)
    for place, section in enumerate(ordered):
        end = ordered[place + 1].start if place + 1 < len(ordered) else len(text)
        heading = _bare(section.title)
        folded = heading.casefold()
        if 3 <= len(heading) <= 60 and not EMPTY_HEADING.fullmatch(heading) and folded not in own and own not in folded:
            headings.setdefault(folded, heading)
            if FIGURE.search(text[section.start : end].replace(section.title, "", 1)):
                with_figures.add(folded)
    # Single words make vague questions; where there is a choice they stay out, and so do sections without a figure.
    is_dense = language in ("ko", "ja", "zh")
    ranks = [(folded not in with_figures, not is_dense and " " not in headings[folded]) for folded in headings]
    chosen = _evenly([*headings.values()], ranks, limit)
    if language in KINDS:
        names = _names_in(text)
        title = _title_in_sentence(title, language, names)
        chosen = [_lowered(heading, names) for heading in chosen]
    return [template.format(title=title, section=heading) for heading in chosen]


def _evenly(items: Sequence[str], ranks: Sequence[tuple[bool, bool]], limit: int) -> list[str]:
    """Choose at most `limit` items of the lowest ranks, spread evenly over a rank that does not fit."""
    chosen: set[int] = set()
    for rank in sorted(set(ranks)):
        places = [place for place, found in enumerate(ranks) if found == rank]
        wanted = min(limit - len(chosen), len(places))
        chosen |= {places[index * len(places) // wanted] for index in range(wanted)}
    return [items[place] for place in sorted(chosen)]


def _bare(heading: str) -> str:
    """Return a heading without its number; of 제3조(육아휴직), the title in the brackets."""
    bare = NUMBERING.sub("", " ".join(heading.split())).strip(" .:–—-")
    match = re.fullmatch(r"[(（](.+)[)）]", bare)
    return match[1] if match else bare


def _names_in(text: str) -> frozenset[str]:
    """Find names: words written with a capital inside sentences more often than without."""
    shown = text[:200_000]
    capitals = Counter(re.findall(r"(?<=[a-zà-ÿ,] )[A-ZÀ-Þ][^\W\d_]+", shown))
    small = Counter(re.findall(r"\b[a-zà-ÿ][^\W\d_]+", shown))
    return frozenset(word.casefold() for word, count in capitals.items() if count > small[word.casefold()])


def _lowered(heading: str, names: frozenset[str]) -> str:
    """Write a heading as inside a sentence: in lower case, unless it holds a name."""
    words = re.findall(r"[^\W\d_]+", heading)
    if heading.isupper() and len(words) > 1:
        return heading.lower()
    if any(word.casefold() in names or not (word.istitle() or word.islower()) for word in words):
        return heading
    return heading.lower()


def _title_in_sentence(title: str, language: str, names: frozenset[str]) -> str:
    """Write the title as “the leave policy” where it is such a word, else in quotation marks."""
    for article, kinds in KINDS[language].items():
        if re.fullmatch(rf"(?:[^\W\d_]+ ){{0,4}}(?:{kinds})", title, re.IGNORECASE):
            small = _lowered(title, names - {word.casefold() for word in title.split()[-1:]})
            return f"{article} {small}"
    return f"“{title}”" if language == "en" else f"‘{title}’"
