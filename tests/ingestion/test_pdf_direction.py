"""Letters that a PDF draws in another order, or another form, than they are read in."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from reportlab.pdfbase.pdfmetrics import stringWidth

from rag.ingestion.loaders.pdf import load_pdf
from tests.hostile import raw_pdf, stream


def pdf_of(content: bytes, meanings: dict[str, str]) -> bytes:
    """A page with this content, whose font says of these letters that they mean others."""
    pairs = "\n".join(f"<{ord(own):02X}> <{text.encode('utf-16-be').hex()}>" for own, text in meanings.items())
    meaning = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def "
        "1 begincodespacerange <00> <FF> endcodespacerange "
        f"{len(meanings)} beginbfchar\n{pairs}\nendbfchar endcmap end end"
    )
    return raw_pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
            b"/Resources << /Font << /F 5 0 R >> >> >>",
            4: stream(content),
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /ToUnicode 6 0 R >>",
            6: stream(meaning.encode()),
        }
    )


def read(content: bytes, meanings: dict[str, str]) -> str:
    return load_pdf(pdf_of(content, meanings)).pages[0].text


ARABIC = {"a": "س", "b": "ي", "c": "ا", "d": "ة", "e": "ج", "L": "لإ"}


def test_a_word_from_right_to_left_that_is_drawn_letter_by_letter_is_read_in_its_order() -> None:
    # As Chromium draws it: from the left, each letter with the text that it stands for.
    span = b"/Span<</ActualText <FEFF%s> >> BDC (%c) Tj EMC\n"
    letters = b"".join(span % (ARABIC[chr(own)].encode("utf-16-be").hex().encode(), own) for own in b"dacba")
    assert read(b"BT /F 12 Tf 1 0 0 1 300 700 Tm (dce ) Tj\n" + letters + b"ET", ARABIC) == "سياسة جاة"


def test_lam_and_alef_that_are_drawn_as_one_keep_their_order() -> None:
    assert read(b"BT /F 12 Tf 1 0 0 1 300 700 Tm (dceLc) Tj ET", ARABIC) == "الإجاة"


#: Capital letters that mean Hebrew ones, in the order of the alphabet.
HEBREW = {chr(ord("A") + place): letter for place, letter in enumerate("אבגדהוזחטיכלמנסעפצקרשת")}
SAME = {chr(code): chr(code) for code in range(32, 127) if not chr(code).isupper()}


def visual(line: str) -> bytes:
    """Draw a line from right to left by the places of its words, each word as it looks."""
    drawn: list[bytes] = []
    right = 530.0
    for word in re.findall(r"[a-z0-9]+(?:[ .][a-z0-9]+)*|[A-Z]+|.", line):
        if word[0].isupper():
            word = word[::-1]
        elif word in "()":
            word = ")" if word == "(" else "("
        width = stringWidth(word, "Helvetica", 10)
        right -= width
        shown = re.sub(r"([()])", r"\\\1", word)
        drawn.append(f"BT /F 10 Tf 1 0 0 1 {right:.2f} 700 Tm ({shown}) Tj ET".encode())
    return b"\n".join(reversed(drawn))


@pytest.mark.parametrize(
    "line",
    [
        "ABGD HVS (travel desk) TIK LMN",
        "ABGD HVS travel desk team TIK LMN ABGD",
        "ABGD (HVS TIK) LMN SPK",
        "ABGD (travel desk) HVS TIK LMN (SPK ABG) DHV",
        "ABGD HVS 31.12.2026.",
        "KLM-24 NSO APC",
        "ABGD HVS 24 TIK",
        "ABGD travel HVS",
        "ABGD: travel expense claim form HVS human resources portal.",
        "ABG TIK global mobility services department extension 4415.",
        "HVS form w8ben part 2 TIK LMN hr example.com ABG 31.12.2026.",
    ],
)
def test_latin_words_brackets_and_numbers_within_a_line_from_right_to_left_keep_their_order(line: str) -> None:
    meant = "".join(HEBREW.get(letter, letter) for letter in line)
    assert read(visual(line), {**SAME, **HEBREW}) == meant


def test_brackets_and_words_of_a_line_from_left_to_right_stay_as_they_are() -> None:
    drawn = (
        b"BT /F 10 Tf 1 0 0 1 60 700 Tm (the word \\(in brackets\\) is ) Tj (CBA) Tj ( and no more \\)a\\( of it) Tj ET"
    )
    assert read(drawn, {**SAME, **HEBREW}) == "the word (in brackets) is אבג and no more )a( of it"


def test_a_word_from_right_to_left_at_the_end_of_a_latin_line_stays_there() -> None:
    lines = [b"(the leave is called ) Tj (CBA) Tj", b"(ask the office for it) Tj", b"(before the end of june) Tj"]
    drawn = b"\n".join(
        b"BT /F 10 Tf 1 0 0 1 60 %d Tm %s ET" % (700 - 14 * place, line) for place, line in enumerate(lines)
    )
    text = read(drawn, {**SAME, **HEBREW})
    assert text == "the leave is called אבג\nask the office for it\nbefore the end of june"


def test_figures_that_a_font_draws_raised_make_no_other_number() -> None:
    # Typst takes the small figures of the font in the size of the line.
    plain = {chr(code): chr(code) for code in range(32, 127)}
    pieces = [(60, b"Everyone has 30"), (151, b"\xb9"), (158, b"days and 10"), (224, b"\xb3"), (231, b"kilograms.")]
    drawn = b"".join(b"BT /F 12 Tf 1 0 0 1 %d 700 Tm (%s) Tj ET\n" % piece for piece in pieces)
    text = read(drawn, {**plain, "\xb9": "1", "\xb3": "3"})
    assert text == "Everyone has 30 days and 10³ kilograms ¹."


def table_from_the_right(rows: Sequence[tuple[str, ...]], *, is_ruled: bool) -> bytes:
    """Draw rows with their first cell on the right, word by word as each looks."""
    drawn: list[str] = []
    for place, row in enumerate(rows):
        y = 700 - 20 * place
        for edge, cell in zip((530.0, 400.0, 270.0), row, strict=True):
            right = edge
            for phrase in re.findall(r"[a-z0-9]+(?: [a-z0-9]+)*|[A-Z]+", cell):
                shown = phrase[::-1] if phrase[0].isupper() else phrase
                right -= stringWidth(shown, "Helvetica", 10)
                drawn.append(f"BT /F 10 Tf 1 0 0 1 {right:.2f} {y} Tm ({shown}) Tj ET")
                right -= 3
    lines = [f"140 {714 - 20 * place} m 540 {714 - 20 * place} l S" for place in range(len(rows) + 1)]
    lines += [f"{x} 714 m {x} {714 - 20 * len(rows)} l S" for x in (140, 280, 410, 540)]
    return "\n".join([*(lines if is_ruled else []), *drawn]).encode()


@pytest.mark.parametrize("is_ruled", [True, False], ids=["ruled", "unruled"])
def test_a_table_from_right_to_left_begins_with_its_first_column(is_ruled: bool) -> None:
    rows = [
        ("ABGD HVS", "TIK LMN", "SPK ABG"),
        ("ABG TIK", "350 HVS", "12"),
        ("LMN SPK", "280 HVS", "9"),
        ("HVS travel desk", "200 HVS", "7"),
    ]
    meant = "\n".join("".join(HEBREW.get(letter, letter) for letter in " | ".join(row)) for row in rows)
    assert read(table_from_the_right(rows, is_ruled=is_ruled), {**SAME, **HEBREW}) == meant
