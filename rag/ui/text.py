"""Escape text from models, documents and people: Markdown inside has no effect.

Streamlit's Markdown turns addresses into links, `$…$` into formulas, `:material/…:` into icons, fenced code into
diagrams and `![…](…)` into requests to other sites. Foreign text passes through `plain`, `marked` or `answer_markdown`
before it is drawn, and only verified citations are links. `tests/ui/test_every_text.py` finds drawing calls without
these functions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

#: Characters with a meaning in Markdown or in Streamlit's extensions.
SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&@/])")
#: Streamlit makes links and icons from these after resolving escapes, but not in code. Brackets, bars and backticks are
#: excluded, because they would end a badge, a table cell, or the code.
ACTING = re.compile(
    r"(?:https?://|www\.)(?:[^\s`|\[\]\\<>]*[^\s`|\[\]\\<>.,;:!?'\"()*_~])?"
    r"|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|:material_\w+:|:streamlit:",
    re.IGNORECASE,
)
#: Characters with a meaning within a line. An underscore within a word has none.
WITHIN_A_LINE = re.compile(
    r"[\\`*\[\]<$~|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=[A-Za-z:-]|[\w+-]+:)|(?<=:material)/|&(?=#?\w{1,40};)|!$"
)
#: Beginnings which would turn a line into a heading, a quote or a list.
LINE_START = re.compile(r"^ *(?:(?=[#>=+-])|(\d{1,9})(?=[.)]))", re.MULTILINE)
INDENT = re.compile(r"^ +", re.MULTILINE)
NUMBERS = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")
BACKTICKS = re.compile(r"`+")
LINE_BREAKS = re.compile(r"[\t\n\r]+")
_ENDS = r"(?:p|li|ul|ol|h5|h6|blockquote)>\n?"
#: Text without a meaning for Markdown within a line, including passage numbers; and a line whose continuation is always
#: words in its block.
WORDS = re.compile(r"(?:[^\W_]|[ ,.?()%€$£'’–:/、。，？-]|\[\d{1,3}(?:, ?\d{1,3}){0,20}\])+")
LINE_OF_WORDS = re.compile(r" {0,3}(?:(?:[-*+>]|\d{1,9}[.)]|#{1,6}) )?[^\W\d_]{2,}[ ,].*(?<=[^\W_]|[ ,.\]])")
BLOCK_END = re.compile(rf"</(?<!\n</){_ENDS}(?:</{_ENDS})*\Z")
#: The largest heading an answer may have.
LARGEST_HEADING = 5

# Without rules for links, pictures, HTML, rules and underlined headings, these stay text as they were written.
PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable("table")
PARSER.disable(["link", "image", "autolink", "html_inline", "html_block", "reference", "lheading", "hr"])

#: The elements of a growing answer.
# fmt: off
ANSWER_TAGS = frozenset({
    "p", "strong", "em", "code", "pre", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td",
    "h5", "h6", "br", "sup",
})
# fmt: on

HEADING_MARK = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)
#: Emphasis and code around words, and the line below a table's heads.
EMPHASIS = re.compile(r"(?<![\w*`])(\*{1,3}|`)(?=\S)([^*`\n]+?)(?<=\S)\1(?![\w*`])")
TABLE_RULE = re.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")
CELL_BREAK = " | "
#: Length of a passage on a card in characters, about five lines: the answer above stays in sight.
EXCERPT_CHARACTERS = 160
CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0e7f]")


def plain(text: str) -> str:
    """Return text escaped for Markdown, on a single line. Addresses become code, not links."""
    return _escape_text(" ".join(text.split()))


def in_chart(text: str) -> str:
    """Return text escaped for a Plotly figure, which interprets some HTML, including links."""
    return escape(" ".join(text.split()), quote=False)


def lines(text: str) -> str:
    """Return several lines, escaped for Markdown."""
    return "  \n".join(plain(line) for line in text.strip().splitlines())


def _escape_text(text: str) -> str:
    return _join_pieces(_around_addresses(text, lambda part: SPECIAL.sub(r"\\\1", part)))


def _around_addresses(text: str, write: Callable[[str], str]) -> list[str]:
    pieces = []
    position = 0
    for match in ACTING.finditer(text):
        pieces += [write(text[position : match.start()]), f"`{match.group()}`"]
        position = match.end()
    return [*pieces, write(text[position:])]


def _join_pieces(pieces: Iterable[str]) -> str:
    """Join Markdown texts.

    Backticks which would become adjacent are separated by a space, because they would form a longer code fence.
    """
    joined: list[str] = []
    for piece in filter(None, pieces):
        if joined and joined[-1].endswith("`") and piece.startswith("`"):
            joined.append(" ")
        joined.append(piece)
    return "".join(joined)


def answer_markdown(text: str, numbers: Iterable[int] = (), anchor: str = "") -> str:
    """Convert an answer to safe Markdown. `[n]` links to `#{anchor}-n` for the given numbers, and is plain text for
    others.

    The answer is parsed and rebuilt with only its bold, lists, tables, quotes, headings and code. Everything else
    becomes text, even if a different parser would find markup in it. The second `[n]` with the same number links to
    `#{anchor}-n-2`, and so on.
    """
    return _Answer(set(numbers), anchor).blocks(SyntaxTreeNode(PARSER.parse(text)))


def place_of_number(anchor: str, number: int, place: int) -> str:
    """Return the link target for an answer's citation number. `place` counts the number's occurrences, from 1."""
    return f"{anchor}-{number}" if place == 1 else f"{anchor}-{number}-{place}"


class GrowingAnswer:
    """Converts a growing answer to HTML.

    A block is final when a later block follows, and final blocks are not converted again. The HTML has only the tags in
    `ANSWER_TAGS` and no attributes except a list's first number. Text from models and documents cannot add HTML.
    """

    def __init__(self) -> None:
        #: The finished blocks, and the last block.
        self.finished: list[str] = []
        self.growing = ""
        self._text = ""
        self._finished_to = 0

    def grow(self, text: str) -> None:
        """Update the HTML to the answer's current text, which must begin with the text from the previous call."""
        before, self._text = self._text, text
        line = before[before.rfind("\n") + 1 :]
        # Most pieces are words on the same line, and passage numbers. Parsing the whole block for each piece would take
        # a tenth of a process's time with a hundred readers.
        if (
            WORDS.fullmatch(text, len(before))
            and (end := BLOCK_END.search(self.growing))
            and LINE_OF_WORDS.fullmatch(line)
        ):
            added = NUMBERS.sub(_chips, escape(text[len(before.rstrip()) :].rstrip(), quote=False))
            self.growing = self.growing[: end.start()] + added + end[0]
            return
        rest = text.replace("\r\n", "\n").replace("\r", "\n")[self._finished_to :]
        blocks = _top_blocks(PARSER.parse(rest))
        begins = blocks[-1][0].map if len(blocks) > 1 else None
        # An incomplete line may still become a different element: "1" a list.
        if begins and len(parts := rest.split("\n", begins[0] + 1)) > begins[0] + 1:
            self._finished_to += sum(len(line) + 1 for line in parts[: begins[0]])
            self.finished += map(_html, blocks[:-1])
            blocks = blocks[-1:]
        self.growing = "".join(map(_html, blocks))


def _top_blocks(tokens: Sequence[Token]) -> list[list[Token]]:
    blocks: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            blocks.append([])
        blocks[-1].append(token)
        depth += token.nesting
    return blocks


def _html(tokens: list[Token]) -> str:
    for token in tokens:
        token.children = token.children and [part for child in token.children for part in _with_chips(child)]
        token.attrs = {name: value for name, value in token.attrs.items() if name == "start"}
        token.info = ""  # the language of code
        if token.tag in ("h1", "h2", "h3", "h4"):
            token.tag = f"h{LARGEST_HEADING}"
    rendered: str = PARSER.renderer.render(tokens, PARSER.options, {})
    return rendered


def _with_chips(token: Token) -> Iterator[Token]:
    if token.type != "text" or "[" not in token.content:
        yield token
        return
    position = 0
    for match in NUMBERS.finditer(token.content):
        yield Token("text", "", 0, content=token.content[position : match.start()])
        yield Token("html_inline", "", 0, content=_chips(match))
        position = match.end()
    yield Token("text", "", 0, content=token.content[position:])


def _chips(numbers: re.Match[str]) -> str:
    return "".join(f"<sup>{int(number)}</sup>" for number in numbers.group(1).split(","))


class _Answer:
    def __init__(self, numbers: set[int], anchor: str) -> None:
        self._numbers = numbers
        self._anchor = anchor
        self._is_in_table = False
        self._places: Counter[int] = Counter()

    def blocks(self, node: SyntaxTreeNode, gap: str = "\n\n") -> str:
        return gap.join(filter(None, map(self.block, node.children)))

    def _target(self, number: int) -> str:
        self._places[number] += 1
        return place_of_number(self._anchor, number, self._places[number])

    def block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "fence" | "code_block":
                # Drop the language: Streamlit draws mermaid as a diagram, with links.
                body = node.content.removesuffix("\n")
                fence = "`" * max(3, *(len(run) + 1 for run in BACKTICKS.findall(body)), 0)
                return f"{fence}\n{body}\n{fence}"
            case "heading":
                return f"{'#' * max(LARGEST_HEADING, int(node.tag[1:]))} {self.blocks(node)}"
            case "blockquote":
                return _prefix_lines(self.blocks(node), "> ", "> ")
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "table":
                return self._table(node)
            case "inline":
                return LINE_START.sub(r"\1\\", INDENT.sub("", self._inline(node)))
            case _:
                return self.blocks(node)

    def _list(self, node: SyntaxTreeNode) -> str:
        is_tight = all(child.hidden for item in node.children for child in item.children if child.type == "paragraph")
        gap = "\n" if is_tight else "\n\n"
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
        items = []
        for place, item in enumerate(node.children):
            mark = f"{first + place}. " if node.type == "ordered_list" else "- "
            items.append(_prefix_lines(self.blocks(item, gap), mark, " " * len(mark)))
        return gap.join(items)

    def _table(self, node: SyntaxTreeNode) -> str:
        rows = [row.children for part in node.children for row in part.children]
        self._is_in_table = True
        rendered = [f"| {' | '.join(map(self.blocks, row))} |" for row in rows]
        self._is_in_table = False
        return "\n".join([rendered[0], "|" + "---|" * len(rows[0]), *rendered[1:]])

    def _inline(self, node: SyntaxTreeNode) -> str:
        return _join_pieces(piece for child in node.children for piece in self._pieces(child))

    def _pieces(self, node: SyntaxTreeNode) -> list[str]:
        match node.type:
            case "code_inline" if self._is_in_table and "\\" in node.content:
                # In a table cell, a backslash in code may let the following bar end the cell, and thereby the code.
                return self._text(node.content)
            case "code_inline":
                escaped = code(node.content)
                return [escaped.replace("|", r"\|") if self._is_in_table else escaped]
            case "softbreak":
                return ["\n"]
            case "hardbreak":
                return ["  \n"]
            case "strong" | "em":
                return [node.markup + self._inline(node) + node.markup]
            case _:
                return self._text(LINE_BREAKS.sub(" ", node.content))

    def _text(self, text: str) -> list[str]:
        pieces = []
        position = 0
        for match in NUMBERS.finditer(text):
            pieces += _around_addresses(text[position : match.start()], _escaped)
            for number in (int(n) for n in match.group(1).split(",")):
                is_linked = self._anchor and number in self._numbers
                pieces.append(f"[{number}](#{self._target(number)})" if is_linked else f"\\[{number}\\]")
            position = match.end()
        return [*pieces, *_around_addresses(text[position:], _escaped)]


def _escaped(text: str) -> str:
    return WITHIN_A_LINE.sub(r"\\\g<0>", text)


def code(content: str) -> str:
    """Return text as inline code, between enough backticks. Not for use after the characters "[" and "|"."""
    content = " ".join(content.split()) or " "
    runs = {len(run) for run in BACKTICKS.findall(content)}
    ticks = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    pad = " " if content.startswith("`") or content.endswith("`") or (content[:1] == content[-1:] == " ") else ""
    return f"{ticks}{pad}{content}{pad}{ticks}"


def _prefix_lines(block: str, first: str, rest: str) -> str:
    return first + block.replace("\n", f"\n{rest}")


def _densest_window(hits: Sequence[tuple[int, str]], width: int) -> int:
    """Return the start of the window with the most different terms.

    A window is `width` characters long. On a tie, the earliest window is chosen.
    """
    best, most = 0, 0
    within: Counter[str] = Counter()
    first = after = 0
    for start in (0, *(max(0, hit - 40) for hit, _ in hits)):
        while after < len(hits) and hits[after][0] < start + width:
            within[hits[after][1]] += 1
            after += 1
        while first < after and hits[first][0] < start:
            within[hits[first][1]] -= 1
            if not within[hits[first][1]]:
                del within[hits[first][1]]
            first += 1
        if len(within) > most:
            best, most = start, len(within)
    return best


def excerpt(passage: str, terms: Sequence[str], characters: int = EXCERPT_CHARACTERS) -> str:
    """Return the part of a passage with the most terms, cut at words. Omissions are marked with ….

    Markdown marks like "##" and "**" do not count as words. Table rows are on separate lines.
    """
    passage = _separate_rows(EMPHASIS.sub(r"\2", HEADING_MARK.sub("", passage)))
    if len(passage) <= characters:
        return passage
    pattern = _terms_pattern(terms, is_joined=False)
    hits = [(m.start(), m.group().casefold()) for m in pattern.finditer(passage)] if pattern else []
    start = max(0, min(_densest_window(hits, characters - 12), len(passage) - characters))
    end = min(len(passage), start + characters)
    if start > 0 and " " in passage[start : start + 25]:
        start = passage.index(" ", start) + 1
    if end < len(passage) and " " in passage[end - 25 : end]:
        end = passage.rindex(" ", start, end)
    return ("… " if start > 0 else "") + passage[start:end].rstrip(" ,;") + (" …" if end < len(passage) else "")


def _separate_rows(passage: str) -> str:
    joined, was_row = "", False
    for line in passage.splitlines():
        if TABLE_RULE.fullmatch(line.strip()):
            continue
        is_row = CELL_BREAK in line
        line = " ".join(line.strip().strip("|").split()) if is_row else " ".join(line.split())
        if line:
            joined += ("\n" if is_row or was_row else " ") + line
            was_row = is_row
    return joined.strip()


def marked(passage: str, terms: Sequence[str], color: str = "yellow") -> str:
    """Return a passage as Markdown with the terms highlighted, and table rows on separate lines."""
    pattern = _terms_pattern(terms)
    return "  \n".join(_marked_line(line, pattern, color) for line in _separate_rows(passage).split("\n"))


def _marked_line(passage: str, pattern: re.Pattern[str] | None, color: str) -> str:
    if pattern is None:
        return plain(passage)
    pieces = []
    position = 0
    for match in pattern.finditer(passage):
        pieces.append(_escape_text(passage[position : match.start()]))
        pieces.append(f":{color}-background[{plain(match.group())}]")
        position = match.end()
    pieces.append(_escape_text(passage[position:]))
    return "".join(pieces)


def _terms_pattern(terms: Sequence[str], *, is_joined: bool = True) -> re.Pattern[str] | None:
    distinct = sorted({t.strip() for t in terms if t.strip()}, key=len, reverse=True)
    if not distinct:
        return None
    # Scripts without spaces have no word boundaries to match. Neighbours, even across two short words ("of the"), are
    # marked as a single run: a passage in confetti is unreadable.
    word = "|".join(
        re.escape(t) if CJK.search(t) else rf"(?<!\w)(?<!\d[.,]){re.escape(t)}(?!\w|[.,]\d)" for t in distinct
    )
    if not is_joined:
        return re.compile(word, re.IGNORECASE)
    return re.compile(rf"(?:{word})(?: (?:\w{{1,3}} ){{0,2}}(?:{word}))*", re.IGNORECASE)
