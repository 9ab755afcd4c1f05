"""Split a passage into quotable units: sentences, list items, table rows and headings."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, zip_longest
from statistics import median
from typing import Literal

from rag.text.tables import row_in_words, tables_in

HEADING_CHARACTERS = 60
#: Rows from which lines without a full stop are read as a table with lost columns.
FEWEST_ROWS = 3
#: A line shorter than this share of the paragraph's longest line was broken on purpose. The second value is the same
#: for a line which still had room for the next word.
SHORT_LINE, FULL_LINE = 0.6, 0.8

ABBREVIATIONS = re.compile(
    r"(?:e\.g|i\.e|etc|vs|mrs?|ms|dr|prof|no|nr|art|inc|ltd|approx|incl|excl|max|min|sect|fig|par|tel|ext|st|resp|bijv|bv"
    r"|d\.w\.z|o\.a|m\.b\.t|z\.b|bzw|ca|usw|evtl|ggf|zzgl|inkl|exkl|mind|abs|lit|ziff|vgl|sog|bspw|std|d\.h|u\.a|i\.d\.r"
    r"|p\.a|p\.ej|pág|env|[^\W\d_²³¹⁰-₉])"
)
#: Months, which continue a date after the day's number: "the 31. Dezember", "1. april".
MONTH = re.compile(
    r"(?:jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[ck]t|nov|de[czs]|styc|lut|kwie|czerw|lip|sierp|wrze|paź|list|grud)",
    re.IGNORECASE,
)
#: Notes about amendments in a Korean statute; and the marks before its paragraphs except the first mark, which stands
#: after the article's name.
AMENDMENT = re.compile(r"\s*[<\[〈](?:전문|본조|제목)?(?:개정|신설|삭제|이동)[^<>\[\]〈〉]{0,300}[>\]〉]")
PARAGRAPH_MARK = re.compile(r"(?<=\S)\s+(?=[②-⑳])")
#: A document part's title: "제7장 기능 습득", "Chapter 3".
PART_HEAD = re.compile(
    r"(?:제\d+(?:장|절|편|관)(?:의\d+)?|chapter|part|hoofdstuk|kapitel|abschnitt|chapitre|titre|capítulo|capitolo|rozdział"
    r"|bölüm)(?:\s|$)",
    re.IGNORECASE,
)
#: A sentence ends within emphasis too: "up to **three days a week.** Trainees may …".
ENDING = re.compile(r"[.!?](?=[\"'”’)\]]*\s)|[.!](?=(?P<mark>\*{1,3}|_{1,3})\s)|[。！？]")
BULLET = re.compile(r"^\s*(?:(?:[-–—*•●▪■◦‣·○]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s+|[a-z][.)](?=[a-z]{2,}\s|\d))")
#: A step's number: "3. Press send."
STEP = re.compile(r"\s*\(?(\d{1,2})[.)]\s+\S")
#: A field of a form with its value: "Plan: Gold".
FIELD = re.compile(r"[^\W\d_][^:：.!?]{0,40}(?::\s|：\s?)\S.{0,80}")
#: Fewer consecutive fields are not a form.
FEWEST_FIELDS = 3
#: A section's number at the start of a heading: "7.2", "§ 3".
SECTION_NUMBER = re.compile(r"^(?:#{1,6}\s+)?(?:§\s*)?(?:\d{1,2}\.){0,3}\d{0,2}[.)]?\s*")
FOOTNOTE = re.compile(r"(?<!\s)\s*+\[\d{1,3}\]")

#: Sentence openings which refer to the previous sentence.
POINTS_BACK = re.compile(
    r"(?:these|those|this|they|it|deze|dit|die|dies|diese[rs]?|ces|cela|ceci|est[oa]s?|quest[oaei]|estes|isto|te|bunlar)\b"
    r"|이는|이들|그 ?중|これ|这些|وهي|هذه",
    re.IGNORECASE,
)

#: Sentence openings which limit the previous rule to a case.
IN_THIS_CASE = re.compile(
    r"(?:in (?:this|that|such a|these) cases?|in (?:dit|dat|deze) geval(?:len)?|in (?:diesem|solchen) f(?:all|ällen)"
    r"|dans ce(?:s)? cas|en (?:este|ese|estos) casos?|in (?:questo|tal) caso|n(?:este|esse) caso"
    r"|w (?:tym|takim) przypadku|bu durumda)\b|이 ?경우|이때|[そこ]の場合|在(?:这种|此)情况下|此时|في هذه الحالة",
    re.IGNORECASE,
)
#: References to a rule in a different paragraph: "the leave under paragraph 1", "제1항에 따른 휴가".
OF_ANOTHER_PARAGRAPH = re.compile(
    r"\b(?:under|pursuant to|referred to in|according to|mentioned in) (?:sub)?(?:paragraph|section)s? \(?\d"
    r"|\b(?:nach|gemäß|im sinne (?:von|des)) (?:absatz|abs\.) \d"
    r"|\b(?:bedoeld in|op grond van|overeenkomstig) (?:het (?:eerste|tweede|derde|vierde|vijfde) lid)"
    r"|\b(?:visée?s? (?:au|à l'|aux)|en application du|prévue?s? (?:au|à l')) ?(?:alinéa|paragraphe) \d"
    r"|\b(?:previst[oa]s? en el|conforme al) (?:apartado|párrafo) \d"
    r"|\b(?:di cui al|ai sensi del) (?:comma|paragrafo) \d"
    r"|\b(?:previst[oa]s? no|nos termos do) n\.º \d|\bo (?:którym|której|których) mowa w ust\. \d"
    r"|제\d+항(?:부터 제\d+항까지)?(?: 및 제\d+항)?(?:의 규정)?에 (?:따른|의한)"
    r"|第[一二三\d]+項(?:の規定)?(?:による|に基づく|の)"
    r"|(?:依照|根据)?前款(?:规定)?",
    re.IGNORECASE,
)
#: Wording which sends the reader elsewhere instead of stating the fact: "see section 4", "is described in the guide".
POINTER = re.compile(
    r"\b(?:see (?:also )?(?:section|chapter|page|appendix|annex|the)|refer to"
    r"|(?:is|are) (?:described|explained|set out|covered|found) in|in (?:its|their) own (?:guide|document|policy)"
    r"|for (?:more )?details,? (?:see|visit|ask|contact)"
    r"|for more information|zie (?:ook )?(?:artikel|hoofdstuk|paragraaf|bijlage|pagina|de|het)"
    r"|(?:is|staat|staan) beschreven in|meer informatie|siehe (?:auch )?(?:abschnitt|kapitel|seite|anlage|§)"
    r"|(?:ist|sind) (?:in|im) .{0,60}(?:beschrieben|geregelt)|weitere informationen|nähere informationen"
    r"|voir (?:aussi )?(?:la|le|les|section|chapitre|article|page)|pour plus d'informations"
    r"|véase|consulte|más información|si veda|vedi|maggiori informazioni|ver (?:a )?(?:secção|seção|capítulo|página)"
    r"|mais informações|zob\.|patrz|więcej informacji|bkz\.|bakınız|daha fazla bilgi)"
    r"|(?:을|를|은|는) ?(?:참고|참조)(?:하|해)|자세한 (?:내용|사항)"
    r"|を参照|詳しくは|请?(?:参见|参阅|参照)|详见|انظر|راجع"
    # The page's subject or origin: "This page outlines how to sign up."
    r"|\bthis (?:page|document|section|guide|chapter) (?:outlines|describes|explains|lists)\b"
    r"|\binformation (?:above|below) (?:was|is)\b"
    r"|\b(?:deze pagina|dit (?:document|hoofdstuk|deel)) (?:beschrijft|behandelt)"
    r"|\bdies(?:e seite|es (?:dokument|kapitel)|er (?:abschnitt|leitfaden)) (?:beschreibt|erklärt|behandelt)"
    r"|\b(?:cette page|ce (?:document|chapitre|guide)) (?:décrit|explique|présente)"
    r"|\b(?:esta página|este (?:documento|capítulo|apartado)) (?:describe|descreve|explica)"
    r"|\bquest(?:a pagina|o (?:documento|capitolo)) (?:descrive|spiega)"
    r"|\b(?:ta strona|ten (?:dokument|rozdział)) (?:opisuje|wyjaśnia)|\bbu (?:sayfa|belge|bölüm)\b.{0,60}açıkla"
    r"|이 (?:문서|페이지|안내서|장)[는은] .{0,80}(?:설명|안내)(?:합니다|한다)"
    r"|(?:この|本)(?:ページ|文書|章)(?:では|は).{0,80}説明"
    r"|本(?:页|文件|章).{0,60}(?:说明|介绍)|(?:توضح|تشرح) هذه الصفحة",
    re.IGNORECASE,
)
#: A line with only a link, perhaps after its name.
LINK_ALONE = re.compile(r"(?:[^:—|]{0,80}(?::|—|\|)\s*){0,2}(?:https?://|www\.)\S+")

_PART = (
    r"(?:section|chapter|article|appendix|annex|paragraph|clause|artikel|art\.|hoofdstuk|paragraaf|bijlage|abschnitt"
    r"|kapitel|ziffer|anlage|punkt|chapitre|annexe|paragraphe|sección|artículo|capítulo|anexo|sezione"
    r"|articolo|capitolo|allegato|secção|seção|artigo|capítulo|rozdział\w*|punkt\w*|bölüm\w*|madde|المادة|القسم|§)"
)
#: Targets in the same document: "section 5.2", "artikel 7", "제5조", "5.2절", "第5条".
REFERENCE = re.compile(
    rf"\b{_PART}\s*(?:no\.|nr\.)?\s*(?P<named>\d{{1,3}}(?:[.:]\d{{1,3}})*[a-z]?)\b|§\s*(?P<mark>\d{{1,3}}[a-z]?)\b"
    r"|[제第]\s?(?P<article>\d{1,3}(?:조의\d{1,2})?)\s?[조장절条章节節]|(?P<bare>\d{1,2}(?:\.\d{1,2}){1,3})\s?[절장항]",
    re.IGNORECASE,
)
#: Other wording than `POINTER` which points to a section.
LEADS = re.compile(
    r"\b(?:see|refer to|described|explained|set out|laid down|covered|found|governed|zie|beschreven|geregeld|siehe"
    r"|beschrieben|geregelt|voir|véase|ver|vedi|veda|patrz|zob|opisan\w*|bkz|bakınız)\b"
    r"|참[고조]|따[른릅]|정한다|参照|参[见阅]|見て|定める|规定|انظر|راجع",
    re.IGNORECASE,
)
#: The most words and characters beside a reference; a longer sentence or clause has content besides the reference.
LONGEST_POINTING = (12, 120)
LEAST_CLAUSE = 5


def section_pointed_to(text: str) -> str:
    """Return the section number, like "5.2", in a sentence which only refers the reader to this section.

    Returns "" for other sentences, even if they also refer to a section: "27 days, see section 5.2".
    """
    reference = REFERENCE.search(text)
    if reference is None or not LEADS.search(text):
        return ""
    rest = f"{text[: reference.start()]} {text[reference.end() :]}"
    before = text[: reference.start()]
    is_aside = before.count("(") > before.count(")")
    if is_aside or any(map(str.isdigit, rest)):
        return ""
    if len(rest.split()) > LONGEST_POINTING[0] or len(rest) > LONGEST_POINTING[1]:
        return ""
    # Keep the clauses with content: "Overtime needs the approval of your team lead; see section 4.3."
    clauses = [clause for clause in re.split(r"[;:—]\s|\.\s", text) if not REFERENCE.search(clause)]
    if any(len(clause.split()) >= LEAST_CLAUSE for clause in clauses):
        return ""
    return next(number for number in reference.groups() if number)


#: The continuation of a date: "2011. 5. 24."
DAY_OR_MONTH = re.compile(r"\d{1,2}\.")

#: An article's title alone: "제70조(야간근로와 휴일근로의 제한)".
ARTICLE_HEAD = re.compile(r"제\d+조(?:의\d+)?\([^()]{1,80}\)")

Kind = Literal["sentence", "item", "row", "column", "heading"]
#: Tables with at most this many rows are also quoted by column: "What do I get with Plus?"
LONGEST_COLUMN = 14


@dataclass(frozen=True)
class Unit:
    """A quotable part of a passage on a single line: a sentence, list item, table row or heading."""

    text: str
    kind: Kind
    #: A column's head, or a row's cells without the heads which all rows share.
    subject: str = ""
    #: The paragraph's number within the passage.
    block: int = 0
    #: The number in a list of steps, or 0.
    step: int = 0


def sentences(passage: str) -> list[str]:
    """Return a passage's sentences, list items and table rows in order, each on a single line."""
    return [unit.text for unit in units_of(passage)]


def units_of(passage: str, titles: frozenset[str] = frozenset()) -> list[Unit]:
    """Split a passage into sentences, list items, rows and headings, in order.

    Numbers in brackets are removed, because they would look like citations. `titles` are the titles of the document and
    the section: a line which repeats a title is always a heading.
    """
    text = PARAGRAPH_MARK.sub("\n\n", AMENDMENT.sub("\n\n", FOOTNOTE.sub("", passage)))
    units: list[Unit] = []
    begin = 0
    for table in tables_in(text):
        units.extend(_units_of_prose(text[begin : table.start], len(units)))
        heads = table.heads.cells if table.heads else None
        units.extend(
            Unit(" ".join(row_in_words(heads, row.cells).split()), "row", " ".join(row.cells)) for row in table.rows
        )
        if heads and 2 <= len(table.rows) <= LONGEST_COLUMN:
            units.extend(_columns(heads, [row.cells for row in table.rows]))
        begin = table.end
    units.extend(_units_of_prose(text[begin:], len(units)))
    names = {folded(title) for title in titles} - {""}
    return [
        replace(unit, kind="heading")
        if unit.kind not in ("row", "column") and _is_heading(units, index, names)
        else unit
        for index, unit in enumerate(units)
        if len(unit.text) > 1
    ]


def folded(heading: str) -> str:
    """Return a heading in lower case without section number, for comparison."""
    return " ".join(SECTION_NUMBER.sub("", heading.strip()).casefold().split())


def ends(text: str) -> bool:
    """Whether a text ends with a full stop, question mark, exclamation mark or colon."""
    return bool(re.search(r"[.!?:。！？][\"'”’)\]*]*$", text))


def _is_heading(units: list[Unit], index: int, names: set[str]) -> bool:
    text = units[index].text
    # A line with several bars: links or page data.
    if folded(text) in names or text.startswith("#") or text.count(" | ") > 1:
        return True
    if ends(text) or units[index].kind == "item":
        return False
    # "Hotline: 7700" and "Reception, extension 12" have content; "Your costs: Copayments" only names the section twice.
    bare = SECTION_NUMBER.sub("", text)
    if folded(bare.rpartition(":")[2]) in names:
        return True
    if len(text) >= HEADING_CHARACTERS:
        return False
    if PART_HEAD.match(text) or ARTICLE_HEAD.fullmatch(text):
        return True
    if ":" in bare or any(map(str.isdigit, bare)):
        return False
    # Several consecutive short lines are a list without bullets, for example the lines after "as follows:".
    first = index
    while first > 0 and units[first - 1].kind == "sentence" and not ends(units[first - 1].text):
        first -= 1
    return not (first > 0 and units[first - 1].text.endswith(":"))


def _columns(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[Unit]:
    names = tuple(row[0] for row in rows)
    if len(heads) < 3 or len(set(names)) < len(names):
        return []
    columns = ((head, [row[place] for row in rows]) for place, head in enumerate(heads) if place)
    return [Unit(row_in_words(("", *names), (head, *values)), "column", head) for head, values in columns if head]


def _units_of_prose(text: str, first_block: int) -> list[Unit]:
    """Join each paragraph's lines, and split the result into units. An intended line break ends a unit.

    `first_block` is the first paragraph's number.
    """
    units: list[Unit] = []
    for number, block in enumerate(_paragraphs(text), first_block):
        begin = len(units)
        text_lines = [line for line in block.splitlines() if line.strip()]
        lines = [" ".join(line.split()) for line in text_lines]
        if rows := _lost_table(lines):
            units.extend(rows)
            continue
        width = _width(lines)
        steps = _steps(lines)
        fields = _fields(lines)
        # Indented lines continue the list item above.
        hanging = [line[0].isspace() and not BULLET.match(line) and BULLET.match(lines[0]) for line in text_lines]
        last_step = max((place for place, line in enumerate(lines) if line in steps), default=0)
        unit = ""
        step = 0
        for place, (line, following, hangs, is_followed) in enumerate(
            zip_longest(lines, lines[1:], hanging, hanging[1:], fillvalue="")
        ):
            if line in fields:
                units.extend([*(_split(unit, step) if unit else ()), Unit(line, "row")])
                unit, step = "", 0
                continue
            if unit and (BULLET.match(line) or ends(unit)):
                units.extend(_split(unit, step))
                # Choices within a step belong to the step.
                unit, step = "", step if hangs or place < last_step else 0
            unit = f"{unit} {line}" if unit else line
            step = steps.get(line, step)
            is_listed = bool(units) and units[-1].text.endswith(":")
            if not is_followed and _is_broken(line, following, unit, width, is_listed=is_listed):
                units.extend(_split(unit, step))
                unit, step = "", step if place < last_step else 0
        if unit:
            units.extend(_split(unit, step))
        units[begin:] = [replace(unit, block=number) for unit in units[begin:]]
    return [unit for unit in units if len(unit.text) > 1]


def _paragraphs(text: str) -> list[str]:
    """Split a text at blank lines, but not between the steps of a numbered list: "1. Log in.", "2. Press send."."""
    paragraphs: list[str] = []
    number = 0
    for paragraph in re.split(r"\n\s*\n(?=[^\S\n]*\S)", text):
        item = STEP.match(paragraph)
        if number and ((item and int(item[1]) == number + 1) or paragraph[0].isspace()):
            paragraphs[-1] += f"\n{paragraph}"
        else:
            paragraphs.append(paragraph)
            number = 0
        number = max((int(step[1]) for line in paragraph.splitlines() if (step := STEP.match(line))), default=number)
    return paragraphs


def _steps(lines: list[str]) -> dict[str, int]:
    """Return the steps in a numbered procedure, with their numbers.

    Only runs which begin at 1 are steps. If all lines are numbered 1, which Markdown allows, the lines are counted.
    """
    counted = [(int(match[1]), line) for line in lines if (match := STEP.match(line))]
    if {number for number, _ in counted} == {1}:
        counted = [(place, line) for place, (_, line) in enumerate(counted, 1)]
    runs: list[list[tuple[int, str]]] = []
    for number, line in counted:
        if not runs or number != runs[-1][-1][0] + 1:
            runs.append([])
        runs[-1].append((number, line))
    if len(runs) > 1:
        runs = [_without_heading(run) for run in runs if run[0][0] == 1]
    return {line: number for run in runs if len(run) >= FEWEST_ROWS for number, line in run}


def _without_heading(run: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Drop the last numbered line if this line is the next section's heading, for example "5. Contacts"."""
    is_heading = not ends(run[-1][1]) and all(ends(line) for _, line in run[:-1])
    return run[:-1] if is_heading else run


def _width(lines: list[str]) -> int:
    full = [len(line) for line, following in pairwise(lines) if following[:1].islower() and not ends(line)]
    longest = max(map(len, lines), default=0)
    return min(longest, round(median(full))) if len(full) > 1 else longest


def _is_broken(line: str, following: str, unit: str, width: int, *, is_listed: bool) -> bool:
    """Whether the break after a line is intended, not caused by the paragraph's width.

    `unit` is the text up to and including this line; `width` is in characters.
    """
    if line.endswith(","):
        return False
    if following[:1].islower() and not (is_listed and unit[:1].islower()):
        return False
    if len(line) < SHORT_LINE * width:
        return True
    word = following.partition(" ")[0]
    limit = FULL_LINE * width if not BULLET.match(unit) else width
    return following[:1].isupper() and not ends(line) and len(line) + 1 + len(word) < limit


def _lost_table(lines: list[str]) -> list[Unit]:
    """Return the rows in a table with lost column separators, or [] for other lines.

    The first line must have the headings, and every other line must have a number.
    """
    rows = lines[1:]
    if len(lines) < FEWEST_ROWS or any(map(str.isdigit, lines[0])) or len(lines[0].split()) < 2:
        return []
    if any(ends(line) or BULLET.match(line) or not any(map(str.isdigit, line)) for line in rows) or ends(lines[0]):
        return []
    if max(map(len, lines)) > 2 * HEADING_CHARACTERS or any(row[0].islower() for row in rows):
        return []
    return [Unit(f"{row} ({lines[0]})", "row", row) for row in rows]


def _fields(lines: list[str]) -> frozenset[str]:
    runs = (list(run) for is_field, run in groupby(lines, lambda line: bool(FIELD.fullmatch(line))) if is_field)
    return frozenset(line for run in runs if len(run) >= FEWEST_FIELDS for line in run)


def _split(text: str, step: int = 0) -> list[Unit]:
    kind: Kind = "item" if step or (BULLET.match(text) and not SECTION_HEAD.match(text)) else "sentence"
    parts = []
    start = 0
    for match in ENDING.finditer(text):
        end = match.end()
        if match["mark"]:
            end += len(match["mark"])
            if text[start:end].strip().startswith(match["mark"]):
                continue  # a heading before its sentence: "**Boots.** Replaced once a year."
        while end < len(text) and text[end] in "\"'”’)]":
            end += 1
        rest = text[end:].lstrip()
        word = text[start : match.start()].rsplit(" ", 1)[-1].lower().strip("(*_")
        if match[0] == "." and (ABBREVIATIONS.fullmatch(word) or rest[:1].islower()):
            continue
        if word.isdigit() and len(word) <= 2 and (DAY_OR_MONTH.match(rest) or MONTH.match(rest)):
            continue
        parts.append(text[start:end].strip())
        start = end
    texts = [part for part in [*parts, text[start:].strip()] if part]
    return [Unit(BULLET.sub("", part).strip(), kind, step=step) for part in texts]


#: A number and a few words are a heading, "2. Vacation"; the number alone does not make a list item.
SECTION_HEAD = re.compile(r"^\d{1,2}\.\s+\S{2,}(?:\s+\S+){0,5}$")
