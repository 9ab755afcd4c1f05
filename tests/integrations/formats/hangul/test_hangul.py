"""Documents of Hangul: what their pages show is read, and what is not read is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.errors import DocumentError, FileDamaged, FileProtected, FileTooLarge
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractedDocument, ExtractionLimits, LoadOptions
from rag.integrations.formats.hangul.hwp import check_hwp, load_hwp
from tests.integrations.formats.hangul.hangul_files import (
    BOLD,
    HEADING,
    RAISED,
    STRUCK,
    box,
    hwp,
    hwpx,
    paragraph,
    run,
    table,
)


def text_of(*paragraphs: str) -> str:
    return load_hwp(hwpx(*paragraphs)).pages[0].text


def warnings_of(document: ExtractedDocument) -> tuple[str, ...]:
    return document.pages[0].warnings


def test_headings_are_sections_and_rows_keep_their_heads() -> None:
    leave = table(("직급", "일수"), ("부장", "20"), ("사원", "15"))
    read = load_hwp(
        hwpx(
            paragraph("제1장 연차휴가", kind=HEADING), paragraph(run("연차는 ", 0), run("15", BOLD), run("일이다.")),
            paragraph(run(leave)), title="취업 규칙",
        )
    )  # fmt: skip
    assert read.title == "취업 규칙"
    (section,) = read.sections
    assert (section.title, read.pages[0].text[section.start :].startswith("## 제1장")) == ("제1장 연차휴가", True)
    assert "연차는 15일이다.\n\n| 직급 | 일수 |\n| :--- | :--- |\n| 부장 | 20 |\n| 사원 | 15 |" in read.pages[0].text
    assert warnings_of(read) == ()


def test_the_letters_of_a_text_are_not_marks_of_markdown() -> None:
    for text in ("[1] 참조 *중요* a_b #3", "5~10일 | 10~15일", "1. 목적", "100% (세전)", "A\\B"):
        assert hwp_text(text) == text
        assert text_of(paragraph(text)) == text


def hwp_text(*texts: str) -> str:
    return load_hwp(hwp(*texts)).pages[0].text


def test_a_raised_mark_is_no_figure_and_struck_text_is_left_out_and_named() -> None:
    read = load_hwp(hwpx(paragraph("연차는 15", run("1", RAISED), "일이고 ", run("25일", STRUCK), "끝이다.")))
    assert "151" not in read.pages[0].text
    assert "25일" not in read.pages[0].text
    assert warnings_of(read) == ("Struck-through text was left out: “25일”.",)


def test_boxes_stand_below_their_paragraph_which_is_read_to_its_end() -> None:
    inner = box(paragraph("안쪽 상자"))
    boxes = box(paragraph("첫째 상자", run(inner), "의 끝")), box(paragraph("둘째 상자"))
    text = text_of(paragraph("앞 ", run(boxes[0]), "가운데 ", run(boxes[1]), "뒤"), paragraph("다음 문단"))
    assert text.split("\n\n") == ["앞 가운데 뒤", "첫째 상자의 끝", "안쪽 상자", "둘째 상자", "다음 문단"]


def test_headers_and_footers_are_read_once_below_the_text() -> None:
    margins = "".join(
        f"<hp:ctrl><hp:{kind}><hp:subList>{paragraph(text)}</hp:subList></hp:{kind}></hp:ctrl>"
        for kind, text in (("footer", "꼬리말"), ("header", "머리말"))
    )
    assert text_of(paragraph(run(margins), "본문")).split("\n\n") == ["본문", "꼬리말", "머리말"]


def test_tracked_deletions_are_left_out_and_insertions_read() -> None:
    change = (
        '<hp:t>연차는 <hp:deleteBegin Id="1"/>15일</hp:t><hp:t>이상<hp:deleteEnd Id="1"/>'
        '<hp:insertBegin Id="2"/>20일<hp:insertEnd Id="2"/>이다.</hp:t>'
    )
    read = load_hwp(hwpx(paragraph(run(change))))
    assert read.pages[0].text == "연차는 20일이다."
    assert warnings_of(read) == ()


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ('<hp:checkBtn caption="동의" value="CHECKED"/>', "☒ 동의"),
        ('<hp:radioBtn caption="거부" value="UNCHECKED"/>', "☐ 거부"),
        ('<hp:comboBox selectedValue="정규직"/>', "정규직"),
        ("<hp:edit><hp:text>1234</hp:text></hp:edit>", "1234"),
        ("<hp:equation><hp:script>15 over 365</hp:script></hp:equation>", "15 over 365"),
        ('<hp:compose composeText="12"/>', "12"),
        ("<hp:dutmal><hp:mainText>연차</hp:mainText><hp:subText>年次</hp:subText></hp:dutmal>", "연차 (年次)"),
        ('<hp:textart text="취업 규칙␍␊안내"/>', "취업 규칙 안내"),
    ],
)
def test_fields_formulas_and_shaped_letters_are_read(element: str, text: str) -> None:
    read = load_hwp(hwpx(paragraph("앞 ", run(element), " 뒤")))
    assert read.pages[0].text == f"앞 {text} 뒤"
    assert warnings_of(read) == ()


@pytest.mark.parametrize(
    ("element", "warning"),
    [
        ("<hp:hiddenComment><hp:subList/></hp:hiddenComment>", "1 comment was not read."),
        ('<hp:ctrl><hp:fieldBegin type="MEMO"><hp:subList/></hp:fieldBegin></hp:ctrl>', "1 comment was not read."),
        ('<hp:ole id="1"/><hp:chart id="2"/>', "2 embedded files were not read."),
        ('<hp:pic id="1"/>', "1 picture may contain text that was not read."),
    ],
)
def test_what_is_not_read_is_counted(element: str, warning: str) -> None:
    element = element.replace("<hp:subList/>", f"<hp:subList>{paragraph('숨은 말')}</hp:subList>")
    read = load_hwp(hwpx(paragraph("앞 ", run(element), "뒤")))
    assert read.pages[0].text == "앞 뒤"
    assert warnings_of(read) == (warning,)


def test_letters_that_the_second_reading_alone_finds_are_counted() -> None:
    unknown = "<hp:ctrl><hp:unheardOf><hp:t>새로운 말</hp:t></hp:unheardOf></hp:ctrl>"
    assert warnings_of(load_hwp(hwpx(paragraph("앞", run(unknown))))) == ("4 characters of the text were not read.",)


@pytest.mark.parametrize("properties", [0, 1], ids=["plain", "packed"])
def test_a_compound_file_is_read_and_an_article_is_no_heading(properties: int) -> None:
    read = load_hwp(hwp("제1조(목적) 이 규칙은 휴가를 정한다.", "연차는 15일이다.", properties=properties))
    assert read.pages[0].text == "제1조(목적) 이 규칙은 휴가를 정한다.\n\n연차는 15일이다."
    assert warnings_of(read) == ()


def test_a_long_text_is_read_to_its_end() -> None:
    assert hwp_text("가" * 5000 + "끝") == "가" * 5000 + "끝"


@pytest.mark.parametrize(
    ("content", "error", "sentence"),
    [
        (hwp("글", properties=1 | 2), FileProtected, "protected by a password"),
        (hwp("글", properties=1 | 4), FileDamaged, "locked for distribution"),
        (hwp("글")[:900], FileDamaged, "damaged"),
        (hwpx(paragraph("글"))[:-200], FileDamaged, "damaged"),
        (hwpx("<hp:p"), FileDamaged, "damaged"),
        (hwpx(more={"Contents/section0.xml": b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}), FileDamaged, "damaged"),
        (b"HWP Document File V3.00 \x1a\1\2\3\4\5" + b"\0" * 500, FileDamaged, "damaged"),
    ],
)
def test_what_cannot_be_read_says_why(content: bytes, error: type[DocumentError], sentence: str) -> None:
    for take in (check_hwp, load_hwp):
        with pytest.raises(error, match=sentence):
            take(content)


def test_a_file_that_unpacks_to_too_much_is_refused() -> None:
    with pytest.raises(FileTooLarge):
        check_hwp(hwpx(paragraph("가" * 5000)), LoadOptions(limits=ExtractionLimits(maximum_bytes=500)))


def test_it_is_told_by_its_bytes_and_read_in_the_sandbox(sandbox: Sandbox, tmp_path: Path) -> None:
    for content, kind in ((hwp("연차는 15일이다."), "hwp"), (hwpx(paragraph("연차는 15일이다.")), "hwpx")):
        assert kind_of(content, "export") == kind
        read = sandbox.load(content, file_name=f"a.{kind}")
        assert read.pages[0].text == "연차는 15일이다."


def test_footnotes_are_read_beside_their_sentences() -> None:
    def note(kind: str, text: str) -> str:
        return f'<hp:ctrl><hp:{kind} number="1"><hp:subList>{paragraph(text)}</hp:subList></hp:{kind}></hp:ctrl>'

    content = hwpx(
        paragraph("연차휴가는 17일이다", run(note("footNote", "신입은 11일.")), run(" 그리고 유급이다.")),
        paragraph("수당은 매월 지급한다.", run(note("endNote", "25일에."))),
    )
    page = load_hwp(content).pages[0]
    assert page.text == "연차휴가는 17일이다 (¹ 신입은 11일.) 그리고 유급이다.\n\n수당은 매월 지급한다. (¹ 25일에.)"
    assert page.warnings == ()
