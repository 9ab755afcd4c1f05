"""Load Markdown. Links, footnotes and HTML tables are converted to text.

Headings, lists, tables, emphasis and code stay unchanged. A footnote is moved into the sentence with the reference,
because `[^1]` alone is useless and would look like a citation.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rag.errors import FileEmpty
from rag.ingestion.chunking.markdown import FENCE, headings_of
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.decoding import decoded
from rag.ingestion.loaders.html import load_html
from rag.ingestion.loaders.page_text import STRUCK_TEXT, shortened
from rag.ingestion.loaders.raised import (
    FOREIGN,
    LONGEST_WITHIN,
    MOST_REPEATED,
    Notes,
    lowered_part,
    raised_part,
    small,
    with_small_parts,
)
from rag.ingestion.loaders.text import BLANK_LINES
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, ExtractedDocument, LoadOptions
from rag.types import Page, Section

#: Facts between lines of dashes before the first line in some Markdown files.
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<lines>.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(?P<title>[^\n\"']+)", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def load_markdown(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load Markdown in the form which readers see, with headings as sections.

    Comments, front matter and struck-through text are left out. A footnote is moved into the sentence with the
    reference.
    """
    source = decoded(content)
    text = source.text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = FRONT_MATTER.match(text)
    text, struck = written_marks(COMMENT.sub("", text[front.end() :] if front else text))
    text = _clean_lines(visible(text, _rows))
    headings = headings_of(text)
    warnings = (*source.warnings, *((STRUCK_TEXT.format(text=shortened(struck)),) if struck else ()))
    named = FRONT_TITLE.search(front["lines"]) if front else None
    title = named["title"].strip() if named else next((h.title for h in headings if h.level == 1), "")
    return ExtractedDocument(
        pages=(Page(number=1, text=text, method="text" if text.strip() else "none", warnings=warnings),),
        sections=tuple(Section(title=h.title, level=h.level, page=1, start=h.start) for h in headings),
        title=title,
    )


def _rows(table: str) -> str:
    try:
        return load_html(table.encode()).pages[0].text.strip()
    except FileEmpty:
        return ""


def _clean_lines(text: str) -> str:
    """Clean a text, but keep leading blanks, because Markdown uses them for lists and code."""
    lines = text.split("\n")
    cleaned = (line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4) + normalise_characters(line) for line in lines)
    return BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in cleaned)).strip("\n")


CODE = re.compile(
    r"(^[ \t]*(?P<fence>```+|~~~+).*?(?:^[ \t]*(?P=fence)[^\n]*$|\Z)|`[^`\n]+`)", re.DOTALL | re.MULTILINE
)
#: `{% alert %}`, `{{% notice %}}`, `{{< youtube >}}`, `{{ site.name }}`, `{: .class }`, `[[toc]]`.
TEMPLATE = re.compile(
    r"\{%.{0,400}?%\}|\{\{.{0,400}?\}\}|\{:[^}\n]{0,200}\}|^\[\[_?toc_?\]\]\s*$", re.DOTALL | re.I | re.M
)
PICTURE = re.compile(r"!\[(?P<words>[^\]\n]{0,300})\](?:\((?:[^()\n]|\([^()\n]{0,500}\)){0,2000}\)|\[[^\]\n]{0,200}\])")
#: The address may contain one level of brackets and may be followed by a title.
LINK = re.compile(
    r"\[(?P<words>(?:[^\[\]\n]|\[[^\[\]\n]{0,300}\]|\n(?!\s*\n)){1,500})\](?:\((?:[^()\n]|\([^()\n]{0,500}\)){0,2000}\)"
    r"|\[(?!\^)[^\]\n]{0,200}\])"
)
#: `[name]: https://…` at the end of a text, but no footnote, `[^1]: …`.
DEFINITION = re.compile(r"^[ ]{0,3}\[(?!\^)[^\]\n]{1,200}\]:[ \t]+\S+[^\n]*\n?", re.MULTILINE)
ADDRESS = re.compile(r"<(?P<address>(?:https?://|mailto:)[^<>\s]+|[^<>\s@]+@[^<>\s]+)>")
BREAK = re.compile(r"<br\s*/?>|</(?:p|div|li|tr|h[1-6])\s*>", re.IGNORECASE)
TAG = re.compile(r"</?[a-z][a-z0-9-]*(?:\s+[^<>]{0,2000})?/?>", re.IGNORECASE)


def visible(text: str, read_table: Callable[[str], str]) -> str:
    """Convert Markdown to the text which readers see. `read_table` returns the rows of HTML tables."""
    return "".join(part if is_code else _visible(part, read_table) for part, is_code in _by_code(text))


def _by_code(text: str) -> list[tuple[str, bool]]:
    parts, start = [], 0
    for match in CODE.finditer(text):
        parts += [(text[start : match.start()], False), (match[0], True)]
        start = match.end()
    return [*parts, (text[start:], False)]


def _visible(text: str, read_table: Callable[[str], str]) -> str:
    # Before the links, because templates occur in their addresses.
    text = TEMPLATE.sub("", text) if "{" in text or "[[" in text else text
    if "<" in text:
        text = _with_tables(text, read_table)
        text = ADDRESS.sub(lambda match: match["address"].removeprefix("mailto:"), text)
        text = TAG.sub("", BREAK.sub("\n", text))
    if "[" in text:
        text = PICTURE.sub(lambda match: match["words"], text)
        text = LINK.sub(_words, text)
        text = DEFINITION.sub("", text)
    return text


def _with_tables(text: str, read_table: Callable[[str], str]) -> str:
    """Replace HTML tables by rows of text.

    A regular expression would be slow, because the rest of the text is scanned again for each unclosed table.
    """
    folded, parts, at = text.lower(), list[str](), 0
    while (start := folded.find("<table", at)) >= 0 and (end := folded.find("</table", start)) >= 0:
        end = folded.find(">", end) + 1 or len(text)
        parts += [text[at:start], f"\n\n{read_table(text[start:end])}\n\n"]
        at = end
    return "".join([*parts, text[at:]])


def _words(match: re.Match[str]) -> str:
    return match["words"]


NOTE_DEFINITION = re.compile(r" {0,3}\[\^(?P<label>[^\]\s]{1,60})\]:[ \t]*(?P<text>.*)")
REFERENCE = re.compile(r"(?<!\\)\[\^(?P<label>[^\]\s]{1,60})\]|(?<![\\\w])?\^\[(?P<inline>[^\[\]\n]{1,300})\]")
STRUCK = re.compile(
    r"(?<![~\\])~~(?=[^\s~])(?P<text>[^~]{1,2000})(?<=\S)~~(?!~)|<(?P<tag>del|s|strike)\b[^<>]{0,200}>(?P<inner>[^<]{0,2000})"
    r"</(?P=tag)>",
    re.IGNORECASE,
)
SMALL = re.compile(
    r"<sup>(?P<raised>[^<>]{1,60})</sup>|<sub>(?P<lowered>[^<>]{1,60})</sub>"
    r"|(?<=[\w).])\^(?P<above>[^\s^\[\]]{1,12})\^|(?<=[^\W\d_])~(?P<below>\d{1,4})~(?!~)",
    re.IGNORECASE,
)
TICKS = re.compile(r"`+")
#: Starts a separate block: a heading, an item, a quote, a rule or a row.
BEGINNING = re.compile(r" {0,12}(?:#{1,6} |[-*+] |\d{1,9}[.)] |>|\||<|={3,}|-{3,})")
#: Characters quoted from struck text.
LONGEST_QUOTED = 200


@dataclass
class Marks:
    """A document's struck-through text, and its footnotes by label. Footnotes are numbered by their first reference."""

    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    referred: Counter[str] = field(default_factory=Counter)
    struck: list[str] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)

    def number(self, label: str) -> str:
        return small(str(self.numbers.setdefault(label, len(self.numbers) + 1)))

    def reference(self, match: re.Match[str]) -> str:
        """Return a placeholder for the footnote to which this match refers."""
        if match["inline"]:
            return self.notes.refer(self.number(f"{len(self.numbers)} inline"), match["inline"].strip())
        label = match["label"]
        self.referred[label] += 1
        text = self.texts.get(label, "") if self.referred[label] <= MOST_REPEATED else ""
        return self.notes.refer(self.number(label), text)

    def strike(self, match: re.Match[str]) -> str:
        """Record a struck-through text and return ""."""
        if sum(map(len, self.struck)) < LONGEST_QUOTED:
            self.struck.append(" ".join((match["text"] or match["inner"] or "").split()))
        return ""


def written_marks(text: str) -> tuple[str, str]:
    """Convert footnotes, superscripts and subscripts to plain text ("m^2^" → "m²").

    Also returns the text which is struck through.
    """
    if not any(mark in text for mark in ("[^", "^[", "~", "^", "<")):
        return text, ""
    marks = Marks()
    blocks = list(_blocks(FOREIGN.sub("", text).split("\n")))
    remaining = list(_without_definitions(blocks, marks))
    rewritten = [
        block if is_code else _write_marks("\n".join(block), marks).split("\n") for block, is_code in remaining
    ]
    lines: list[str] = []
    for block, (_, is_code) in zip(rewritten, remaining, strict=True):
        if is_code or not any(block):
            lines += block
            continue
        placed, below = marks.notes.placed("\n".join(block), is_wrapped=True)
        lines += [placed, *below]
    return "\n".join(lines), " ".join(marks.struck)


Block = tuple[list[str], bool]


def _blocks(lines: list[str]) -> Iterator[Block]:
    block: list[str] = []
    fence = ""
    for line in lines:
        mark = FENCE.match(line)
        if fence:
            block.append(line)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                yield block, True
                block, fence = [], ""
        elif mark:
            if block:
                yield block, False
            block, fence = [line], mark[1]
        else:
            if block and (
                not line.strip() or not block[-1].strip() or BEGINNING.match(line) or NOTE_DEFINITION.match(line)
            ):
                yield block, False
                block = []
            block.append(line)
    if block:
        yield block, bool(fence)


def _without_definitions(blocks: list[Block], marks: Marks) -> Iterator[Block]:
    """Store short footnotes in `marks`, and yield the remaining blocks. Long footnotes stay in the text, after their
    number.
    """
    used = {
        match["label"] for block, is_code in blocks if not is_code for match in REFERENCE.finditer("\n".join(block))
        if match["label"] and not NOTE_DEFINITION.match(block[0])
    }  # fmt: skip
    place = 0
    definitions: list[tuple[int, int, str]] = []
    while place < len(blocks):
        block, is_code = blocks[place]
        match = None if is_code else NOTE_DEFINITION.match(block[0])
        end = place + 1
        if match is not None:
            # A note continues in indented blocks, even after blank lines.
            ahead = end
            while ahead < len(blocks) and not blocks[ahead][1]:
                first = blocks[ahead][0][0]
                if first.strip() and not first.startswith(("    ", "\t")):
                    break
                ahead += 1
                end = ahead if first.strip() else end
            definitions.append((place, end, match["label"]))
            parts = [match["text"], *block[1:], *(line for more, _ in blocks[place + 1 : end] for line in more)]
            text = " ".join(" ".join(parts).split())
            if match["label"] in used and 0 < len(text) <= LONGEST_WITHIN:
                marks.texts.setdefault(match["label"], text)
        place = end
    left_out = {place for begin, end, label in definitions if label in marks.texts for place in range(begin, end)}
    begins = {begin: label for begin, _, label in definitions}
    for place, (block, is_code) in enumerate(blocks):
        if place in left_out:
            continue
        if place in begins:
            definition = NOTE_DEFINITION.match(block[0])
            first = f"{marks.number(begins[place])} {definition['text'] if definition else ''}"
            yield [first, *block[1:]], is_code
        else:
            yield block, is_code


def _write_marks(text: str, marks: Marks) -> str:
    """Convert a block's footnotes, superscripts and subscripts to plain text, and drop struck-through text. Inline code
    stays unchanged.
    """
    parts = list(_split_code(text))
    rewritten = "".join(part if is_code else _replace_marks(part, marks) for part, is_code in parts)
    if len(parts) > 1 or rewritten != text:
        lines = [with_small_parts(line, marks.notes, has_stars=False) for line in rewritten.split("\n")]
        rewritten = "\n".join(lines)
    if rewritten != text and "|" in text and "\n" not in text:
        return marks.notes.in_place(rewritten)
    return rewritten


def _replace_marks(text: str, marks: Marks) -> str:
    text = REFERENCE.sub(marks.reference, STRUCK.sub(marks.strike, text))

    def put(match: re.Match[str]) -> str:
        above = match["raised"] or match["above"]
        return raised_part(above) if above else lowered_part(match["lowered"] or match["below"])

    return SMALL.sub(put, text)


def _split_code(text: str) -> Iterator[tuple[str, bool]]:
    runs = list(TICKS.finditer(text))
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        places[len(run[0])].append(place)
    last = place = 0
    while place < len(runs):
        alike = places[len(runs[place][0])]
        at = bisect_right(alike, place)
        if at == len(alike):
            place += 1
            continue
        closing = alike[at]
        yield text[last : runs[place].start()], False
        yield text[runs[place].start() : runs[closing].end()], True
        last, place = runs[closing].end(), closing + 1
    yield text[last:], False
