"""Write superscripts and subscripts like in print, and put footnotes next to their sentences.

10³, m² and CO₂ keep their small digits. A superscript 1 after "30" is a footnote reference and must not become 301. The
reference is moved to the sentence's end, with the footnote's text if known.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from rag.text import currencies

_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱᵃᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
RAISED = str.maketrans("0123456789+-−=()niabcdefghjklmoprstuvwxyz", _RAISED)
LOWERED = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
LOWERABLE = re.compile(r"[\d+\-−=()]+")
RAISABLE = re.compile(r"[0-9+\-−=()a-z]+(?<!q)")
POWER = re.compile(r"[+\-−–]?\d{1,3}|[+\-−]")
#: Marks of notes: figures, a letter, stars and daggers, also repeated and in brackets.
MARK = re.compile(
    r"[(\[]?(?:[※＊*注]{1,3} ?\d{0,3}|[†‡§¶#]{1,3}|\d{1,3}|[a-zA-Z])"
    r"(?:[,;/–-] ?(?:\d{1,3}|[a-z*†‡]))*[.)\]]{0,2}"
)
#: A line with a note, marked by a star or dagger before it.
STARRED = re.compile(r"(?P<mark>\*{1,3}|[†‡§]|※ ?\d{0,2})\)? ?(?P<text>[^\s*].+)", re.DOTALL)
ORDINALS = frozenset({
    "st", "nd", "rd", "th", "er", "re", "e", "è", "ère", "nde", "eme", "ème", "ᵉ", "os", "as", "ste", "de", "d",
})  # fmt: skip
UNITS = frozenset({
    "m", "cm", "mm", "km", "dm", "µm", "μm", "nm", "hm", "ft", "in", "yd", "mi", "s", "ms", "h", "min", "mol", "l",
})  # fmt: skip
SIGNS = {"tm": "™", "sm": "℠", "o": "º"}
LAST_WORD = re.compile(r"[^\W\d_]{1,30}\Z")
LAST_NUMBER = re.compile(r"(?<![\d.,])\d[\d.,]{0,20}\Z")
SUM = re.compile(r"\([^()]*[+\-−–×*/=][^()]*\)\Z")
#: "8⁰⁰ Uhr", "8⁰⁰–17⁰⁰", "5⁹⁹ €": minutes after an hour, and cents after a price.
HOUR = re.compile(r"(?<![\d.,:])(?:[01]?\d|2[0-4])\Z")
MINUTES = re.compile(r"[0-5]\d")
BEHIND_TIME = re.compile(
    r"\s*(?:(?:uhr|hrs?|h|a\.?m|p\.?m|ur|heures|ore|uur|godz)\b|[-–—]\s*\d|(?:to|bis|until|till|à|a|tot|do)\s\d)",
    re.IGNORECASE,
)
CURRENCY = rf"(?:[{currencies.SIGNS}]|{currencies.WORDS})"
BEHIND_PRICE = re.compile(rf"\s*{CURRENCY}", re.IGNORECASE)
BEFORE_PRICE = re.compile(rf"{CURRENCY}\s?\d[\d.,]{{0,12}}\Z", re.IGNORECASE)
#: Characters examined before a raised character.
LOOKED_AT = 40


def raised(before: str, text: str) -> tuple[str, bool]:
    """Convert superscripts to text ("10" + "3" → "³"), and return whether they are a footnote reference.

    `before` is the text before them.
    """
    mark = text.strip()
    if not mark:
        return text, False
    word, number = LAST_WORD.search(before), LAST_NUMBER.search(before)
    if POWER.fullmatch(mark) and _is_power(mark, before, word, number):
        return mark.replace("–", "-").translate(RAISED), False
    if mark.lower() in SIGNS and (len(mark) > 1 or number):
        return SIGNS[mark.lower()], False
    if number and mark.lower() in ORDINALS:
        return mark, False
    if word and len(word[0]) == 1 and mark.isalpha():
        return small(mark) if len(mark) == 1 else mark, False
    if MARK.fullmatch(mark):
        return small(mark), True
    if not mark[0].isalnum() or (word and mark.isalpha()) or not before[-1:].isalnum():
        return text, False
    return f" {mark}", False


def _is_power(mark: str, before: str, word: re.Match[str] | None, number: re.Match[str] | None) -> bool:
    if mark == "1":
        return False
    if number:
        return number[0] == "10"
    if word:
        return word[0] in UNITS or (len(word[0]) == 1 and not word[0].isupper() and word[0].isalpha())
    return SUM.search(before) is not None


def minutes_or_cents(before: str, text: str, after: str) -> str:
    """Convert superscript digits to minutes ("8" + "00" → ":00") or cents. Returns "" if the context fits neither."""
    figures = text.strip()
    if HOUR.search(before) and MINUTES.fullmatch(figures) and BEHIND_TIME.match(after):
        return f":{figures}"
    if len(figures) == 2 and figures.isdecimal() and LAST_NUMBER.search(before):
        if BEFORE_PRICE.search(before):
            return f".{figures}"
        if BEHIND_PRICE.match(after):
            return f",{figures}"
    return ""


def placed_in_cell(before: str, text: str, place: str) -> str:
    """Convert a superscript or subscript in a table cell to text. A footnote reference is not moved."""
    if not text.strip() or not place.startswith(("super", "sub")):
        return text
    if place.startswith("sub"):
        return lowered(text)
    part, is_mark = raised(before[-LOOKED_AT:], text)
    return f" {small(part)}" if is_mark else part


def lowered(text: str) -> str:
    """Convert subscripts to text: "2" → "₂"."""
    return text.translate(LOWERED) if LOWERABLE.fullmatch(text.strip()) else text


def small(text: str) -> str:
    """Convert to superscript characters ("2" → "²"). Unchanged if a character has no superscript form."""
    return text.translate(RAISED) if RAISABLE.fullmatch(text) else text


#: Enclose the number of a note not yet placed: characters which occur in no text.
OPEN, CLOSE = "\ufdd0", "\ufdd1"
PLACE = re.compile(f" ?{OPEN}(\\d{{1,7}}){CLOSE}")
FOREIGN = re.compile("[\ufdd0-\ufdef]")
SENTENCE_END = re.compile(
    r"[.!?…]+[\"')\]”’»]*(?=\s+[^\sa-zà-öø-ÿ]|\s*\Z)|[。！？]+[」』）]*|\s*(?=\n)|[:;]?\s*\Z",
)
WRAPPED_END = re.compile(SENTENCE_END.pattern.replace(r"\s*(?=\n)|", ""))
JUST_ENDED = re.compile(r"[.!?…。！？]+[\"')\]”’»」』）]*\s?\Z")
#: Longer notes become a separate line below their paragraph.
LONGEST_WITHIN = 300
#: Paragraphs with more marks than this keep their marks in place.
MOST_PLACED = 200
#: The most marks for a note which is only a line on the page.
MOST_REPEATED = 10


@dataclass(frozen=True)
class Note:
    """A footnote or endnote: the mark in the text, and the note's text."""

    mark: str
    text: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.mark, self.text)))


class Notes:
    """A document's footnotes and endnotes.

    Lines which start with a mark (1, *, †) are also stored, because they may be footnotes typed by hand.
    """

    def __init__(self) -> None:
        self._notes: list[Note] = []
        self._lines: defaultdict[str, list[str]] = defaultdict(list)
        self._repeated: Counter[str] = Counter()

    def refer(self, mark: str, text: str = "") -> str:
        """Store a footnote, and return a placeholder for the text. `placed` or `in_place` later replaces the
        placeholder.
        """
        self._notes.append(Note(mark, text))
        return f"{OPEN}{len(self._notes) - 1}{CLOSE}"

    def add_line(self, mark: str, text: str) -> None:
        """Store a line which starts with a footnote mark, because the line may be a footnote's text."""
        self._lines[bare(mark)].append(text)

    def placed(self, text: str, *, are_all_below: bool = False, is_wrapped: bool = False) -> tuple[str, list[str]]:
        """Replace placeholders by footnotes. Short footnotes are inserted after their sentence.

        Returns the text, and the footnotes to append below. With `are_all_below`, used for headings, all footnotes are
        returned. With `is_wrapped`, a sentence may continue on the next line.
        """
        if OPEN not in text:
            return text, []
        parts = PLACE.split(text)
        notes = [self._notes[int(number)] for number in parts[1::2]]
        if len(notes) > MOST_PLACED:
            return PLACE.sub(lambda number: f" {self._notes[int(number[1])]}", text), []
        plain = "".join(parts[::2])
        additions: dict[int, list[str]] = {}
        below: list[str] = []
        place = 0
        for piece, note in zip(parts[::2], notes, strict=False):
            place += len(piece)
            number = note if note.text else self._by_hand(note)
            is_within = not are_all_below and len(number.text) <= LONGEST_WITHIN and "\n" not in number.text
            if number.text and not is_within:
                below.append(str(number))
            addition = _bracket(number) if number.text and is_within else note.mark
            if addition and not (are_all_below and number.text):
                additions.setdefault(_end_of_sentence(plain, place, is_wrapped=is_wrapped), []).append(f" {addition}")
        pieces, last = [], 0
        for at in sorted(additions):
            pieces += [plain[last:at], *additions[at]]
            last = at
        return "".join((*pieces, plain[last:])).rstrip(), below

    def in_place(self, text: str) -> str:
        """Replace placeholders in a table cell by footnotes in brackets. If a footnote's text is unknown, the mark is
        used.
        """

        def note_text(match: re.Match[str]) -> str:
            note = self._notes[int(match[1])]
            return f" {_bracket(note) if note.text else note.mark}"

        return PLACE.sub(note_text, text).strip()

    def _by_hand(self, note: Note) -> Note:
        lines = self._lines.get(bare(note.mark), ())
        # With two lines for this mark, the right line is unknown.
        if len(lines) != 1 or len(lines[0]) > LONGEST_WITHIN or self._repeated[note.mark] >= MOST_REPEATED:
            return note
        self._repeated[note.mark] += 1
        return Note(note.mark, lines[0])


def bare(mark: str) -> str:
    """Remove brackets and full stop from a footnote mark: "(1)" → "1"."""
    return mark.strip("()[].⁽⁾ ")


def _bracket(note: Note) -> str:
    """Put a footnote in brackets. If it is a single sentence, the full stop is dropped."""
    text = str(note)
    return f"({text[:-1] if text.endswith('.') and '. ' not in text else text})"


def _end_of_sentence(text: str, place: int, *, is_wrapped: bool) -> int:
    ended = JUST_ENDED.search(text[max(0, place - 8) : place])
    if ended is not None:
        return max(0, place - 8) + ended.start()
    match = (WRAPPED_END if is_wrapped else SENTENCE_END).search(text, place)
    return match.start() if match else len(text)


#: Enclose raised and lowered text in a text gathered in pieces.
RAISED_PART, LOWERED_PART = ("\ufdd3", "\ufdd4"), ("\ufdd5", "\ufdd6")
SMALL_PART = re.compile("\ufdd3([^\ufdd3-\ufdd6]*)\ufdd4|\ufdd5([^\ufdd3-\ufdd6]*)\ufdd6")
PART_MARKS = re.compile("[\ufdd3-\ufdd6]")


def raised_part(text: str) -> str:
    """Enclose a superscript in placeholders, which `notes_below` replaces."""
    return PART_MARKS.sub("", text).join(RAISED_PART)


def lowered_part(text: str) -> str:
    """Enclose a subscript in placeholders, which `notes_below` replaces."""
    return PART_MARKS.sub("", text).join(LOWERED_PART)


def notes_below(text: str, notes: Notes, *, is_in_place: bool = False) -> str:
    """Convert superscripts and subscripts in several lines to text, and insert footnotes after their sentence or line.

    With `is_in_place`, footnotes stay at their reference, like in a table cell.
    """
    lines = [with_small_parts(line, notes) for line in text.split("\n")]
    if is_in_place:
        return "\n".join(map(notes.in_place, lines))
    return "\n".join(part for line in lines for part in _place_notes(line, notes))


def _place_notes(line: str, notes: Notes) -> list[str]:
    placed, below = notes.placed(line)
    return [placed, *below]


def with_small_parts(line: str, notes: Notes, *, has_stars: bool = True) -> str:
    """Convert superscripts and subscripts in a line to text. A line which starts with a footnote mark is stored in
    `notes`.

    Without `has_stars`, a star is no footnote mark, because a star starts a list item.
    """
    if PART_MARKS.search(line) is None:
        if has_stars and (starred := STARRED.fullmatch(line)):
            notes.add_line(starred["mark"], starred["text"])
        return line
    pieces: list[str] = []
    before, end, mark = "", 0, ""
    for match in SMALL_PART.finditer(line):
        between = line[end : match.start()]
        pieces.append(between)
        before = (before + PLACE.sub("", between))[-LOOKED_AT:]
        end = match.end()
        if match[2] is not None:
            piece = lowered(match[2])
        elif not (piece := minutes_or_cents(before, match[1] or "", PART_MARKS.sub("", line[end : end + LOOKED_AT]))):
            piece, is_mark = raised(before, match[1] or "")
            if is_mark and before.strip(" -•"):
                pieces.append(notes.refer(piece))
                continue
            if is_mark:
                mark, piece = mark or piece, f"{piece} "
        pieces.append(piece)
        before = (before + piece)[-LOOKED_AT:]
    joined = PART_MARKS.sub("", "".join((*pieces, line[end:])))
    if mark:
        notes.add_line(mark, joined.strip().removeprefix(mark).strip())
    return joined
