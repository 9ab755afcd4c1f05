"""Text written by models and documents as Markdown that cannot act.

Streamlit's Markdown turns `$…$` into formulas, `![…](…)` into requests to other sites and `:red[…]` into style. Answers
keep their bold, lists and tables; links, images and formulas become plain text, and only verified citations are links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: Everything Markdown or Streamlit's extensions give a meaning to.
SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&@/])")
CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)
NUMBERS = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")
LARGE_HEADING = re.compile(r"^ {0,3}#{1,4}(?=\s)", re.MULTILINE)
#: A line of dashes or equals signs below text would make that text a heading.
UNDERLINE = re.compile(r"^(\s{0,3})([-=])(?=[-=]*\s*$)", re.MULTILINE)

#: Characters of a passage on a card; about five lines: the answer above stays in sight.
EXCERPT_CHARACTERS = 160
CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0e7f]")


def plain(text: str) -> str:
    """Text that Markdown shows exactly as it is, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def answer_markdown(text: str, numbers: Iterable[int] = (), anchor: str = "") -> str:
    """An answer, safe to draw. `[n]` links to `#{anchor}-n` for the numbers given, and is only shown for others."""
    known = set(numbers)
    parts = CODE.split(text)
    # Odd parts are code, which Markdown leaves alone.
    return "".join(part if i % 2 else _prose(part, known, anchor) for i, part in enumerate(parts))


def _prose(text: str, known: set[int], anchor: str) -> str:
    pieces = []
    position = 0
    for match in NUMBERS.finditer(text):
        pieces.append(_harmless(text[position : match.start()]))
        for number in (int(n) for n in match.group(1).split(",")):
            linked = anchor and number in known
            pieces.append(f"[\\[{number}\\]](#{anchor}-{number})" if linked else f"\\[{number}\\]")
        position = match.end()
    pieces.append(_harmless(text[position:]))
    return LARGE_HEADING.sub("#####", "".join(pieces))


def _harmless(text: str) -> str:
    # Escapes the model wrote itself go first: doubled, they would undo ours.
    text = re.sub(r"(?<!\\)\\*+([\[\]$<~]|:(?=[A-Za-z]))", r"\\\1", text)
    return UNDERLINE.sub(r"\1\\\2", text) if "|" not in text else text


def excerpt(passage: str, terms: Sequence[str], characters: int = EXCERPT_CHARACTERS) -> str:
    """The stretch of a passage that holds most of the terms, cut at words, with … where something is left out."""
    passage = " ".join(passage.split())
    if len(passage) <= characters:
        return passage
    pattern = _terms_pattern(terms, is_joined=False)
    hits = [(m.start(), m.group().casefold()) for m in pattern.finditer(passage)] if pattern else []
    # The window may begin a little before any hit; the one with most different terms wins, the earliest on a tie.
    starts = [0, *(max(0, hit - 40) for hit, _ in hits)]
    start = max(starts, key=lambda s: (len({term for hit, term in hits if s <= hit < s + characters - 12}), -s))
    start = max(0, min(start, len(passage) - characters))
    end = min(len(passage), start + characters)
    if start > 0 and " " in passage[start : start + 25]:
        start = passage.index(" ", start) + 1
    if end < len(passage) and " " in passage[end - 25 : end]:
        end = passage.rindex(" ", start, end)
    return ("… " if start > 0 else "") + passage[start:end].rstrip(" ,;") + (" …" if end < len(passage) else "")


def marked(passage: str, terms: Sequence[str], color: str = "yellow") -> str:
    """A passage as Markdown with the terms marked; everything else exactly as it is."""
    passage = " ".join(passage.split())
    pattern = _terms_pattern(terms)
    if pattern is None:
        return plain(passage)
    pieces = []
    position = 0
    for match in pattern.finditer(passage):
        pieces.append(_kept(passage[position : match.start()]))
        pieces.append(f":{color}-background[{plain(match.group())}]")
        position = match.end()
    pieces.append(_kept(passage[position:]))
    return "".join(pieces)


def _kept(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)


def _terms_pattern(terms: Sequence[str], *, is_joined: bool = True) -> re.Pattern[str] | None:
    wanted = sorted({t.strip() for t in terms if t.strip()}, key=len, reverse=True)
    if not wanted:
        return None
    # Scripts without spaces have no word edges to hold on to. Neighbours, also across two short words such as "of
    # the", are marked as one: a passage in confetti cannot be read.
    word = "|".join(
        re.escape(t) if CJK.search(t) else rf"(?<!\w)(?<!\d[.,]){re.escape(t)}(?!\w|[.,]\d)" for t in wanted
    )
    if not is_joined:
        return re.compile(word, re.IGNORECASE)
    return re.compile(rf"(?:{word})(?: (?:\w{{1,3}} ){{0,2}}(?:{word}))*", re.IGNORECASE)
