"""Join Korean words which a PDF breaks at line ends.

Some programs break lines inside words, so that all lines are full. The text of a PDF has no blank at a line end:
particles, verb endings and the page's words tell whether a word continues.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.ingestion.loaders.pdf_objects import Box

SYLLABLE = "\uac00-\ud7a3"
LAST, FIRST = re.compile(f"[{SYLLABLE}]+\\Z"), re.compile(f"[{SYLLABLE}]+")
TOKEN = re.compile(f"(?<![{SYLLABLE}])[{SYLLABLE}]+")
#: Particles and endings which never start a word.
NEVER_FIRST = frozenset({
    "은", "는", "가", "을", "를", "의", "에", "에서", "에게", "께서", "와", "과", "로", "으로", "부터", "까지", "마다",
    "보다", "처럼", "며", "으며", "고", "면", "으면", "다", "이다", "이며", "니다", "습니다", "입니다",
})  # fmt: skip
#: Verb forms attached to the previous noun, unless a particle ends it.
OF_NOUN = re.compile("(?:하[여고며는지면다]|한다|합니다|되[어고며는지면다]|된다|됩니다|시[켜키])")
PARTICLE_END = frozenset("을를은는이가도만에로와과의야지게고면서며")
#: In syllables: the widths of a blank and of other letters, the difference between full lines, and the room left in
#: them.
BLANK, OTHER, SAME_WIDTH, ROOM = 0.3, 0.55, 1.7, 1.6
FEWEST_FULL, MOST_FULL = 3, 0.8
#: In points, and in line heights.
SAME_EDGE, NEXT_LINE = 3.0, 2.2


def with_whole_words(lines: Sequence[str], boxes: dict[int, Box]) -> list[str]:
    """Join words broken at a line end, on the line where they start. `boxes` maps line numbers to boxes."""
    written = list(lines)
    broken = [
        (place, place + 1)
        for place in range(len(lines) - 1)
        if place in boxes and place + 1 in boxes and LAST.search(lines[place]) and FIRST.match(lines[place + 1])
        and _follow(boxes[place], boxes[place + 1])
    ]  # fmt: skip
    full = _full(lines, boxes, [place for place, _ in broken])
    if len(full) < max(FEWEST_FULL, MOST_FULL * len(broken)):
        return written
    words = set(TOKEN.findall("\n".join(lines)))
    for place, below in broken:
        before, after = LAST.search(lines[place]), FIRST.match(written[below])
        if place not in full or before is None or after is None or not _is_broken(before[0], after[0], words):
            continue
        head, _, rest = written[below].partition(" ")
        written[place] += head
        written[below] = rest
    return written


def _follow(above: Box, below: Box) -> bool:
    height = above[3] - above[1]
    return below[0] <= above[0] + SAME_EDGE and 0 < above[1] - below[1] < NEXT_LINE * height


def _full(lines: Sequence[str], boxes: dict[int, Box], places: Sequence[int]) -> set[int]:
    """Return the lines without room for a further syllable.

    Empty if the lines have different numbers of syllables: then the program moved whole words and stretched the lines.
    """
    if not places:
        return set()
    edge = max(boxes[place][2] for place in places)
    widths: dict[int, float] = {}
    for place in places:
        left, _, right, _ = boxes[place]
        width = sum(BLANK if letter == " " else 1.0 if letter >= "\u1100" else OTHER for letter in lines[place])
        if edge - right < ROOM * (right - left) / width:
            widths[place] = width
    lefts = {boxes[place][0] for place in widths}
    # Lines only stretched to the edge have fewer letters if a long word moved to the next line.
    if not widths or max(widths.values()) - min(widths.values()) > SAME_WIDTH + (max(lefts) - min(lefts)) / 8:
        return set()
    return set(widths)


def _is_broken(before: str, after: str, words: set[str]) -> bool:
    """Whether the text at a line's end and the text on the next line are parts of a single word."""
    if after in NEVER_FIRST:
        return True
    if OF_NOUN.match(after) and before[-1] not in PARTICLE_END:
        return True
    whole = (before + after)[: len(before) + 2]
    return any(word.startswith(whole) for word in words if word not in (before, after))
