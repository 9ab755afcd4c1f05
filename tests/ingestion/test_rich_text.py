"""Documents in rich text format: what their pages show, and what was left out."""

from __future__ import annotations

import time

import pytest

from rag.errors import DocumentError, FileDamaged, FileNotAsNamed
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.types import Page
from tests.patience import patient

HEAD = (
    r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset129 Batang{\*\falt Other};}"
    r"{\f2\fcharset2 Symbol;}}{\stylesheet{\s0 Normal;}{\s1\b heading 1;}{\s7\outlinelevel1 Clause;}}"
    r"{\info{\title Leave {\'fc}ber}{\author Ann}}{\*\generator Writer;}"
)


def read(body: str) -> Page:
    return load(f"{HEAD}{body}}}".encode("latin-1"), "a.rtf").pages[0]


def test_paragraphs_headings_and_the_title_are_read() -> None:
    document = load(rf"{HEAD}\pard\plain\s1 Leave\par\pard\s7 Days\par\pard 25 days.\par}}".encode(), "a.rtf")
    assert document.pages[0].text == "Leave\nDays\n25 days."
    assert document.pages[0].warnings == ()
    assert [(found.title, found.level, found.start) for found in document.sections] == [("Leave", 1, 0), ("Days", 2, 6)]
    assert (document.title, document.author) == ("Leave über", "Ann")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"f\'fcr alle \emdash  \ldblquote ja\rdblquote", "für alle — “ja”"),
        (r"{\f1 \'bf\'ac\'c2\'f7} 25", "연차 25"),
        (r"\u50672 ?\uc0\u52264 25\u26085.", "연차25日."),
        (r"\uc2\u8364\'80\'80 5 {\uc1\u8364 x}5", "€ 5 €5"),
        (r"\u-10179?\u-8704?", "😀"),
        (r"a\~b\_c\-d\{e\}\\", "a b-cde}\\".replace("cde", "cd{e")),
        (r"10{\super 3} and CO{\sub 2} m\super 2\nosupersub .", "10³ and CO₂ m²."),
        ("25\ndays\\\nnew", "25days\nnew"),
        (r"{\field{\*\fldinst HYPERLINK x}{\fldrslt the rules}}", "the rules"),
        (r"{\listtext\pard\plain\f2 \'b7\tab}Item", "- Item"),
        (r"{\upr{Old}{\*\ud{New}}}", "New"),
        (r"{\*\unknown no}{\bkmkstart a}yes", "yes"),
        (r"{\header Head {\field{\*\fldinst PAGE}{\fldrslt 7}}\par}{\footer Foot\par}Text\par", "Head\nText\nFoot"),
        (r"Text{\shp{\*\shpinst{\sp{\sn a}{\sv b}}{\shptxt Box\par}}{\shprslt No}} on\par Next", "Text on\nBox\nNext"),
        (r"Kept{\deleted gone} text", "Kept text"),
    ],
)
def test_what_a_page_shows_is_read(body: str, text: str) -> None:
    page = read(body)
    assert (page.text, page.warnings) == (text, ())


def test_notes_stand_beside_their_sentences() -> None:
    page = read(r"25 days{\super\chftn{\footnote\pard\plain{\super\chftn} Without Sundays.\par}} a year. More.\par")
    assert page.text == "25 days a year (¹ Without Sundays). More."
    assert page.warnings == ()


def test_tables_are_rows_of_cells() -> None:
    row = r"\trowd\cellx1\cellx2\pard\intbl "
    page = read(
        rf"Before\par{row}Office\cell Days\cell\row{row}Seoul\par South\cell 15\cell\row"
        r"\trowd\clvmgf\cellx1\cellx2\pard\intbl Busan\cell 16\cell\row"
        r"\trowd\clvmrg\cellx1\cellx2\pard\intbl \cell "
        r"{\itap2 in\nestcell side\nestcell{\*\nesttableprops\nestrow}}"
        r"\pard\intbl\itap1 \cell\row\pard After\par"
    )
    assert page.text == "Before\nOffice | Days\nSeoul South | 15\nBusan | 16\nBusan | in / side\nAfter"


def test_what_is_left_out_is_said() -> None:
    page = read(
        r"Text{\v secret}{\strike old}{\*\annotation Hm}{\*\shppict{\pict\picwgoal2000\pichgoal2000 ffd8}}"
        r"{\nonshppict{\pict 00}}{\pict\picwgoal200\pichgoal200 00}{\object{\*\objdata 00}{\result{\pict 00}}}"
        r"{\f2 ab}"
    )
    assert page.text == "Text"
    assert page.warnings == (
        "Text that is hidden in the document was left out: 6 characters.",
        "Struck-through text was left out: “old”.",
        "1 comment was not read.",
        "1 embedded file was not read.",
        "1 picture may contain text that was not read.",
        "2 symbols of unknown fonts were not read.",
    )


@pytest.mark.parametrize(
    "body",
    [
        "{" * 200_000 + "Text", "Text" + "}" * 200_000, r"Text\bin99999999999 ", r"Text{\pict\bin8 }}}}{{{{}",
        r"Text\u" * 50_000, r"Text\'zz\'", r"Text\uc9999999999\fs-1", r"{\super a}" * 50_000 + "Text",
        r"\trowd\intbl " + r"a\cell" * 50_000 + r"\row Text", r"{\shptxt " * 3_000 + "Text", r"\intbl Text\cell",
        r"{\footnote " * 3_000 + "Text",
    ],
)  # fmt: skip
def test_hostile_files_are_read_soon(body: str) -> None:
    began = time.process_time()
    assert "Text" in read(body).text
    assert time.process_time() - began < patient(2)


def test_rich_text_is_told_by_its_content_and_refused_with_a_reason(sandbox: Sandbox) -> None:
    content = f"{HEAD}25 days}}".encode()
    assert kind_of(content, "export") == "rtf"
    assert sandbox.load(content, file_name="a.rtf").pages[0].text == "25 days"
    for other, name, error in [
        (content, "a.txt", FileNotAsNamed),
        (b"Just words", "a.rtf", FileDamaged),
        (b"%PDF-1.7", "a.rtf", FileNotAsNamed),
    ]:
        with pytest.raises(DocumentError) as caught:
            check(other, name)
        assert type(caught.value) is error


def test_a_head_over_two_columns_is_over_both() -> None:
    # As LibreOffice writes it: the cell is as wide as both, and nothing else says so.
    body = (
        r"\trowd\clvmgf\cellx1000\cellx3000\pard\intbl Site\cell Fee\cell\row"
        r"\trowd\clvmrg\cellx1000\cellx2010\cellx3000\pard\intbl \cell Car\cell Bike\cell\row"
        r"\trowd\cellx1000\cellx2000\cellx3000\pard\intbl Kiel\cell 15\cell 3\cell\row"
        r"\trowd\cellx1000\cellx2000\cellx3000\pard\intbl Bonn\cell 18\cell 4\cell\row\pard End."
    )
    assert read(body).text.split("\n")[:3] == ["Site | Fee Car | Fee Bike", "Kiel | 15 | 3", "Bonn | 18 | 4"]
