"""Word documents: what their pages show is read, and what is not read is named."""

from __future__ import annotations

import io
import zipfile

import docx
import pytest

from rag.errors import FileDamaged
from rag.ingestion.loaders import load
from rag.ingestion.loaders.values import ExtractedDocument
from rag.ingestion.loaders.word.numbering import formatted
from tests.ingestion.word_files import NAMES, cell, level, numbered, paragraph, run, table, word_file

CHANGED = 'w:id="1" w:author="A" w:date="2026-01-01T00:00:00Z"'
RAISED = '<w:vertAlign w:val="superscript"/>'
LOWERED = '<w:vertAlign w:val="subscript"/>'


def read(content: bytes) -> ExtractedDocument:
    return load(content, "a.docx")


def lines(body: str, **parts: str) -> list[str]:
    return read(word_file(body, **parts)).pages[0].text.split("\n")


def warnings(body: str, **parts: str) -> tuple[str, ...]:
    return read(word_file(body, **parts)).pages[0].warnings


# Tracked changes


def test_tracked_changes_are_read_as_accepted() -> None:
    gone = f"<w:del {CHANGED}><w:r><w:delText>two</w:delText></w:r></w:del>"
    new = f"<w:ins {CHANGED}>{run('three')}</w:ins>"
    body = (
        paragraph("From home ", gone, new, " days.")
        + paragraph(f"<w:moveFrom {CHANGED}>{run('Moved away.')}</w:moveFrom>")
        + paragraph(f"<w:moveTo {CHANGED}>{run('Moved here.')}</w:moveTo>")
    )
    assert lines(body) == ["From home three days.", "", "Moved here."]
    assert warnings(body) == ()


def test_a_deleted_paragraph_mark_joins_two_paragraphs() -> None:
    deleted = f"<w:rPr><w:del {CHANGED}/></w:rPr>"
    body = paragraph("Notice is ", properties=deleted) + paragraph("four weeks.") + paragraph("Next.")
    assert lines(body) == ["Notice is four weeks.", "Next."]


def test_deleted_rows_are_left_out_and_inserted_ones_are_read() -> None:
    rows = [cell("Kind") + cell("Days"), cell("Paid") + cell("25"), cell("Unpaid") + cell("10")]
    body = table(*rows).replace("<w:tr>", f"<w:tr><w:trPr><w:ins {CHANGED}/></w:trPr>", 2)
    body = body[::-1].replace("<w:tr>"[::-1], f"<w:tr><w:trPr><w:del {CHANGED}/></w:trPr>"[::-1], 1)[::-1]
    assert lines(body) == ["Kind | Days", "Paid | 25"]


# Boxes, controls and fields


def box(text: str) -> str:
    content = f"<w:txbxContent>{paragraph(text)}</w:txbxContent>"
    shape = f"<wp:inline><wps:wsp><wps:txbx>{content}</wps:txbx></wps:wsp></wp:inline>"
    old = f"<w:pict><v:shape><v:textbox>{content}</v:textbox></v:shape></w:pict>"
    return (
        f'<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing>{shape}</w:drawing></mc:Choice>'
        f"<mc:Fallback>{old}</mc:Fallback></mc:AlternateContent></w:r>"
    )


def test_a_text_box_is_read_once_below_its_paragraph() -> None:
    assert lines(paragraph("A guide.", box("Seven weeks before.")) + paragraph("End.")) == [
        "A guide.", "Seven weeks before.", "End.",
    ]  # fmt: skip
    old = f"<w:r><w:pict><v:textbox><w:txbxContent>{paragraph('Old box')}</w:txbxContent></v:textbox></w:pict></w:r>"
    assert lines(paragraph(old)) == ["Old box"]
    assert lines(paragraph('<w:r><w:pict><v:shape><v:textpath string="DRAFT"/></v:shape></w:pict></w:r>')) == ["DRAFT"]


def control(content: str, properties: str = "") -> str:
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def test_content_controls_are_read_at_every_level_but_not_their_placeholders() -> None:
    row = f"<w:tr>{cell('Meal')}{control(cell('62 euros'))}</w:tr>"
    body = (
        control(paragraph("In a block."))
        + paragraph("Up to ", control(run("135 euros")), ".")
        + f"<w:tbl><w:tr>{cell('Kind')}{cell('Amount')}</w:tr>{control(row)}</w:tbl>"
        + paragraph("Name: ", control(run("Click to enter text."), "<w:showingPlcHdr/>"))
    )
    assert lines(body) == ["In a block.", "Up to 135 euros.", "Kind | Amount", "Meal | 62 euros", "Name:"]
    assert warnings(body) == ()


def test_check_boxes_say_whether_they_are_ticked() -> None:
    ticked = '<w14:checkbox><w14:checked w14:val="1"/></w14:checkbox>'
    old = '<w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData>'
    field = (
        f'<w:r><w:fldChar w:fldCharType="begin">{old}</w:fldChar></w:r><w:r><w:instrText> FORMCHECKBOX </w:instrText>'
        '</w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    body = (
        paragraph(control(run("☒"), ticked), " drawn")
        + paragraph(control("<w:r/>", ticked), " not drawn")
        + paragraph(field, " old")
        + paragraph('<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>', " a sign")
    )
    assert lines(body) == ["☒ drawn", "☒ not drawn", "☒ old", "☑ a sign"]


def complex_field(instruction: str, result: str, data: str = "") -> str:
    return (
        f'<w:r><w:fldChar w:fldCharType="begin">{data}</w:fldChar></w:r>'
        f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{result}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def test_fields_show_their_result_and_not_their_instruction() -> None:
    inner = complex_field("REF a", run("30"))
    nested = complex_field(f"IF </w:instrText></w:r>{complex_field('REF b', run('hidden'))}<w:r><w:instrText>", inner)
    entries = '<w:listEntry w:val="Red"/><w:listEntry w:val="Blue"/>'
    choices = f'<w:ffData><w:ddList><w:result w:val="1"/>{entries}</w:ddList></w:ffData>'
    body = (
        paragraph("Days: ", nested)
        + paragraph('<w:fldSimple w:instr="DOCPROPERTY Owner">' + run("Travel Desk") + "</w:fldSimple>")
        + paragraph("Colour: ", complex_field("FORMDROPDOWN", "", choices))
        + paragraph("Click ", complex_field("MACROBUTTON None [here]", "").replace(
            '<w:r><w:fldChar w:fldCharType="separate"/></w:r>', ""))
    )  # fmt: skip
    assert lines(body) == ["Days: 30", "Travel Desk", "Colour: Blue", "Click [here]"]
    assert warnings(body) == ()


# Tables


def test_a_table_in_a_cell_stays_in_its_row() -> None:
    inner = table(cell("2025") + cell("4 percent"), cell("2026") + cell("6 percent"))
    body = table(cell("Grade") + cell("Bonus"), cell("Senior") + cell(paragraph("by year:") + inner + paragraph("")))
    assert lines(body) == ["Grade | Bonus", "Senior | by year: 2025: 4 percent; 2026: 6 percent"]
    heads = table(*(cell(a) + cell(b) + cell(c) for a, b, c in [("Year", "Low", "High"), ("2025", "3 %", "4 %")]))
    body = table(cell("Grade") + cell("Bonus"), cell("Senior") + cell(heads))
    assert lines(body) == ["Grade | Bonus", "Senior | Year: 2025, Low: 3 %, High: 4 %"]
    assert warnings(body) == ()


def test_a_long_table_in_a_cell_goes_below_the_outer_one() -> None:
    inner = table(*(cell(f"Town {n}") + cell("a long remark about this town " * 3) for n in range(30)))
    text = lines(table(cell("Kind") + cell("Towns"), cell("All") + cell(inner)))
    assert text[:2] == ["Kind | Towns", "All | "]
    assert text[-1].startswith("Town 29 | a long remark")


def test_a_table_that_arranges_the_page_is_no_row() -> None:
    inner = table(cell("Stop") + cell("Time") + cell("Fare"), cell("Airport") + cell("6:25") + cell("3 euros"))
    body = table(cell("Home") + cell(paragraph("Shuttle") + inner))
    assert lines(body) == ["Home", "Shuttle", "Stop | Time | Fare", "Airport | 6:25 | 3 euros"]


def test_merged_cells_are_repeated_across_and_down() -> None:
    begins, two = '<w:vMerge w:val="restart"/>', '<w:gridSpan w:val="2"/>'
    body = (
        f"<w:tbl><w:tr>{cell('Office', begins)}{cell('Days', two)}</w:tr>"
        f"<w:tr>{cell('', '<w:vMerge/>')}{cell('Paid')}{cell('Unpaid')}</w:tr>"
        f"<w:tr>{cell('Graz')}{cell('30')}{cell('10')}</w:tr>"
        f'<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>{cell("25")}{cell("5")}</w:tr></w:tbl>'
    )
    assert lines(body) == ["Office | Days Paid | Days Unpaid", "Graz | 30 | 10", " | 25 | 5"]


# Notes, headers, comments

NOTE = (
    '<w:footnote w:id="2">'
    + paragraph("<w:r><w:footnoteRef/></w:r>", " In probation it is nine days.")
    + "</w:footnote>"
)
REFERENCE = '<w:r><w:footnoteReference w:id="2"/></w:r>'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (paragraph("It is four weeks.", REFERENCE), "It is four weeks (¹ In probation it is nine days)."),
        (
            paragraph("It is four", REFERENCE, " weeks for all. Next."),
            "It is four weeks for all (¹ In probation it is nine days). Next.",
        ),
        (paragraph("Four weeks", REFERENCE), "Four weeks (¹ In probation it is nine days)"),
        (paragraph("四週間です。", REFERENCE, "次。"), "四週間です (¹ In probation it is nine days)。次。"),
    ],
)
def test_a_footnote_is_read_in_its_sentence(body: str, expected: str) -> None:
    assert lines(body, footnotes=NOTE) == [expected]


def test_a_footnote_in_a_cell_a_heading_or_a_long_one_has_its_place() -> None:
    heading = paragraph("Notice", REFERENCE, properties='<w:outlineLvl w:val="0"/>')
    extracted = read(word_file(heading + paragraph("Text."), footnotes=NOTE))
    assert extracted.pages[0].text == "Notice\n¹ In probation it is nine days.\nText."
    assert [section.title for section in extracted.sections] == ["Notice"]
    cells = table(cell("Kind") + cell("Weeks"), cell("Notice") + cell(paragraph("4", REFERENCE)))
    assert lines(cells, footnotes=NOTE) == ["Kind | Weeks", "Notice | 4 (¹ In probation it is nine days)"]
    long = NOTE.replace("In probation", "In probation and so on " * 20)
    assert lines(paragraph("Four", REFERENCE, " weeks."), footnotes=long)[0] == "Four weeks ¹."


def test_headers_and_footers_that_pages_show_are_read_once_without_page_numbers() -> None:
    links = "".join(
        f'<w:{kind}Reference w:type="{use}" r:id="{part}"/>'
        for kind, use, part in [
            ("header", "default", "header1"), ("header", "first", "header2"), ("header", "even", "header3"),
            ("footer", "default", "footer1"),
        ]
    )  # fmt: skip
    page = complex_field("PAGE", run("3")), complex_field("NUMPAGES", run("9"))
    parts = {
        "header1": paragraph("Valid from 1 March 2026."),
        "header2": paragraph("Valid from 1 March 2026.") + paragraph("First page only."),
        "header3": paragraph("Not shown."),
        "footer1": paragraph("HR-117", "<w:r><w:tab/></w:r>", "Page ", page[0], " of ", page[1]),
    }
    body = paragraph("Body.") + f"<w:sectPr>{links}<w:titlePg/></w:sectPr>"
    assert lines(body, **parts) == ["Valid from 1 March 2026.", "First page only.", "Body.", "HR-117"]
    assert warnings(body, **parts) == ()


def test_what_is_not_read_is_named_with_its_count() -> None:
    chart = '<w:r><w:drawing><wp:inline><c:chart r:id="rId9"/></wp:inline></w:drawing></w:r>'
    picture = (
        '<w:r><w:drawing><wp:inline><wp:extent cx="4000000" cy="3000000"/><a:blip r:embed="rId8"/></wp:inline>'
        "</w:drawing></w:r>"
    )
    logo = picture.replace("4000000", "400000")
    file = "<w:r><w:object><o:OLEObject/></w:object></w:r>"
    comments = "".join(f'<w:comment w:id="{n}">{paragraph("Check this.")}</w:comment>' for n in range(3))
    body = paragraph(chart, picture, file) + paragraph(logo) + '<w:altChunk r:id="rId7"/>' + paragraph("Text.")
    assert warnings(body, comments=comments) == (
        "3 comments were not read.",
        "1 chart was not read.",
        "1 embedded file was not read.",
        "1 inserted document was not read.",
        "1 picture may contain text that was not read.",
    )


def test_a_diagram_is_read_and_a_large_initial_is_part_of_its_word() -> None:
    points = "".join(
        f"<dgm:pt><dgm:t><a:p><a:r><a:t>{name}</a:t></a:r></a:p></dgm:t></dgm:pt>" for name in ("HR", "IT")
    )
    diagram = '<w:r><w:drawing><wp:inline><dgm:relIds r:dm="diagramData1"/></wp:inline></w:drawing></w:r>'
    initial = paragraph("N", properties='<w:framePr w:dropCap="drop"/>')
    body = initial + paragraph("otice.") + paragraph(diagram)
    assert lines(body, diagramData1=f"<dgm:ptLst>{points}</dgm:ptLst>") == ["Notice.", "HR", "IT"]
    assert warnings(body) == ("1 diagram (SmartArt) was not read.",)


def test_characters_that_the_walk_did_not_write_are_counted() -> None:
    """In an element that no version of Word has had so far."""
    body = paragraph("Known.") + f"<w:future>{paragraph('Four score')}</w:future>"
    assert warnings(body) == ("9 characters of the text were not read.",)


# Numbers and bullets

FORM = (
    '<w:abstractNum w:abstractNumId="0">'
    + level(0, "upperRoman", "Article %1")
    + level(1, "decimal", "%1.%2", "<w:isLgl/>")
    + level(2, "lowerLetter", "(%3)")
    + level(3, "bullet", "\uf0b7")
    + "</w:abstractNum>"
)
LISTS = f'{FORM}<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'


def test_automatic_numbers_are_written_as_printed() -> None:
    places = [0, 1, 1, 2, 2, 3, 0, 1, 2]
    assert lines("".join(numbered("x", place) for place in places), numbering=LISTS) == [
        "Article I x", "1.1 x", "1.2 x", "(a) x", "(b) x", "- x", "Article II x", "2.1 x", "(a) x",
    ]  # fmt: skip


def test_a_level_that_was_left_out_counts_as_begun() -> None:
    places = [1, 1, 0, 2, 1]
    assert lines("".join(numbered("x", place) for place in places), numbering=LISTS) == [
        "1.1 x", "1.2 x", "Article II x", "(a) x", "2.2 x",
    ]  # fmt: skip


def test_another_use_of_a_list_goes_on_or_begins_anew() -> None:
    start = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    more = '<w:num w:numId="2"><w:abstractNumId w:val="0"/></w:num>' + (
        f'<w:num w:numId="3"><w:abstractNumId w:val="0"/>{start}</w:num>'
    )
    body = "".join(numbered("x", 0, number) for number in (1, 2, 3, 3, 0))
    assert lines(body, numbering=LISTS + more) == ["Article I x", "Article II x", "Article V x", "Article VI x", "x"]


def test_numbers_of_a_style_and_levels_that_do_not_begin_again() -> None:
    form = (
        '<w:abstractNum w:abstractNumId="0">'
        + level(0, "decimal", "%1.", '<w:pStyle w:val="Heading1"/>')
        + level(1, "decimalZero", "§ %2", '<w:lvlRestart w:val="0"/><w:pStyle w:val="Rule"/>')
        + '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    numbers = '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{shown}"/>{numbers}</w:style>'
        for name, shown in [("Heading1", "heading 1"), ("Rule", "Rule")]
    )
    body = "".join(
        paragraph("x", properties=f'<w:pStyle w:val="{style}"/>') for style in ("Heading1", "Rule", "Heading1", "Rule")
    )
    extracted = read(word_file(body, numbering=form, styles=styles))
    assert extracted.pages[0].text.split("\n") == ["1. x", "§ 01 x", "2. x", "§ 02 x"]
    assert [section.title for section in extracted.sections] == ["1. x", "2. x"]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("decimal", "1 4 28"), ("upperLetter", "A D BB"), ("lowerRoman", "i iv xxviii"), ("ordinal", "1st 4th 28th"),
        ("ganada", "가 라 하하"), ("decimalEnclosedCircle", "① ④ 28"), ("koreanCounting", "일 사 이십팔"),
        ("japaneseCounting", "一 四 二十八"), ("ideographDigital", "一 四 二八"), ("aiueo", "ア エ フ"),
        ("cardinalText", "One Four 28"), ("unknown", "1 4 28"), ("none", "  "),
    ],
)  # fmt: skip
def test_numbers_are_written_in_words_forms(form: str, expected: str) -> None:
    assert " ".join(formatted(count, form) for count in (1, 4, 28)) == expected


# Typography


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (("leave of 30", run("1", RAISED), " days."), "leave of 30 days ¹."),
        (("10", run("3", RAISED), " litres on 40 m", run("2", RAISED)), "10³ litres on 40 m²"),
        (("CO", run("2", LOWERED), " of the 1", run("st", RAISED), " year"), "CO₂ of the 1st year"),
        (("Pay", run("*", RAISED), " is due"), "Pay is due *"),
        (("Annual leave", run("a)", RAISED), " of 25 days."), "Annual leave of 25 days ᵃ⁾."),
        (("M", run("me", RAISED), " Roux"), "Mme Roux"),
        (("x", run("n", RAISED)), "xⁿ"),
        ((run("1", RAISED), "Without holidays"), "¹ Without holidays"),
        (("From ", run("5 July", "<w:strike/>"), " 12 July"), "From 12 July"),
        (("a", run("b", "<w:vanish/>"), run("c", '<w:vanish w:val="0"/>')), "ac"),
        (("non", "<w:r><w:noBreakHyphen/></w:r>", "EU, co", "<w:r><w:softHyphen/></w:r>", "op"), "non-EU, coop"),
        (('<w:r><w:sym w:font="Symbol" w:char="F061"/></w:r>', run("b", '<w:rFonts w:ascii="Symbol"/>')), "αβ"),
    ],
)
def test_raised_lowered_struck_and_hidden_text(runs: tuple[str, ...], expected: str) -> None:
    assert lines(paragraph(*runs)) == [expected]


def test_a_mark_is_put_with_its_note_where_the_page_has_one() -> None:
    body = (
        paragraph("Leave of 30", run("1", RAISED), " days. Paid.")
        + paragraph(run("1", RAISED), " Without public holidays.")
        + paragraph("Pay", run("*", RAISED), ".")
        + paragraph("* Gross.")
    )
    assert lines(body) == [
        "Leave of 30 days (¹ Without public holidays). Paid.",
        "¹ Without public holidays.",
        "Pay (* Gross).",
        "* Gross.",
    ]


def test_text_struck_or_hidden_by_a_style_is_left_out_and_named() -> None:
    styles = (
        '<w:style w:type="character" w:styleId="Old"><w:name w:val="Old"/><w:rPr><w:strike/></w:rPr></w:style>'
        '<w:style w:type="character" w:styleId="Older"><w:name w:val="Older"/><w:basedOn w:val="Old"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Gone"><w:name w:val="Gone"/><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:type="paragraph" w:styleId="Sub"><w:name w:val="Kapitel"/><w:basedOn w:val="Berschrift2"/>'
        "</w:style>"
        '<w:style w:type="paragraph" w:styleId="Berschrift2"><w:name w:val="heading 2"/>'
        '<w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
    )
    body = (
        paragraph("Dogs are ", run("allowed", '<w:rStyle w:val="Older"/>'), " not allowed.")
        + paragraph("Secret", properties='<w:pStyle w:val="Gone"/>')
        + paragraph("Rules", properties='<w:pStyle w:val="Sub"/>')
    )
    extracted = read(word_file(body, styles=styles))
    assert extracted.pages[0].text.split("\n") == ["Dogs are not allowed.", "Rules"]
    assert extracted.pages[0].warnings == (
        "Text that is hidden in the document was left out: 6 characters.",
        "Struck-through text was left out: “allowed”.",
    )
    assert [(section.title, section.level) for section in extracted.sections] == [("Rules", 2)]


def test_equations_are_written_on_one_line() -> None:
    def part(name: str, content: str) -> str:
        return f"<m:{name}>{content}</m:{name}>"

    def text(content: str) -> str:
        return f"<m:r><m:t>{content}</m:t></m:r>"

    fraction = part("f", part("num", text("a+b")) + part("den", text("2")))
    square = part("sSup", part("e", text("𝑥")) + part("sup", text("2")))
    root = part("rad", part("deg", "") + part("e", text("y")))
    total = part(
        "nary",
        part("naryPr", '<m:chr m:val="∑"/>') + part("sub", text("k=0")) + part("sup", text("n")) + part("e", text("k")),
    )
    sine = part("func", part("fName", text("sin")) + part("e", part("d", part("e", text("θ")))))
    whole = f"<m:oMath>{text('α=')}{fraction}{text('+')}{square}{text('+')}{root}</m:oMath>"
    body = paragraph("The angle is ", whole, ".") + paragraph(
        f"<m:oMathPara><m:oMath>{total}{sine}</m:oMath></m:oMathPara>"
    )
    assert lines(body) == ["The angle is α=(a+b)/2+x^2+√(y).", "∑_(k=0)^n ksin(θ)"]
    assert warnings(body) == ()


# Packages


def test_the_text_is_found_where_the_package_says_and_in_strict_form() -> None:
    content = word_file(paragraph("Elsewhere."), main="word/document2.xml")
    assert read(content).pages[0].text == "Elsewhere."
    strict = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word_file(paragraph("Strict.")))) as given, zipfile.ZipFile(strict, "w") as made:
        for name in given.namelist():
            usual, its_own = (
                b"schemas.openxmlformats.org/wordprocessingml/2006",
                b"purl.oclc.org/ooxml/wordprocessingml",
            )
            made.writestr(name, given.read(name).replace(usual, its_own))
    assert read(strict.getvalue()).pages[0].text == "Strict."


@pytest.mark.parametrize(
    "document",
    [
        f'<!DOCTYPE d [<!ENTITY a "aaaa">]><w:document {NAMES}><w:body><w:p>&a;</w:p></w:body></w:document>',
        f"<w:document {NAMES}/>",
        "<w:document>",
        "<a>" * 5000 + "</a>" * 5000,
    ],
    ids=["entities", "no body", "not whole", "deep"],
)  # fmt: skip
def test_a_package_that_word_would_not_open_is_damaged(document: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        package.writestr("word/document.xml", document)
    with pytest.raises(FileDamaged):
        read(buffer.getvalue())


def test_nested_to_the_limit_of_xml_everything_is_read() -> None:
    inner = paragraph("deep")
    for _ in range(70):
        inner = table(cell(inner) + cell("x"))
    assert "deep" in read(word_file(inner)).pages[0].text
    controls = "<w:sdt><w:sdtContent>" * 110 + paragraph("deep") + "</w:sdtContent></w:sdt>" * 110
    assert lines(controls) == ["deep"]


def test_content_in_several_forms_within_each_other_is_read_in_useful_time() -> None:
    content = run("once")
    for _ in range(80):
        forms = f'<mc:Choice Requires="wps">{content}</mc:Choice><mc:Fallback>{run("again")}</mc:Fallback>'
        content = f"<mc:AlternateContent>{forms}</mc:AlternateContent>"
    assert lines(paragraph(content)) == ["once"]
    assert warnings(paragraph(content)) == ()


def test_a_note_referred_to_many_times_is_written_once() -> None:
    references = "".join(paragraph(f"Rule {n}.", REFERENCE) for n in range(500))
    text = read(word_file(references, footnotes=NOTE.replace("nine", "nine " * 50))).pages[0].text
    assert text.count("In probation") == 1
    wide = table(cell("x", '<w:gridSpan w:val="1000000000"/>') + cell("y"))
    assert len(read(word_file(wide)).pages[0].text) < 1000


def test_a_document_of_python_docx_gives_all_its_words() -> None:
    made = docx.Document()
    made.add_heading("Notice", 0)
    made.add_paragraph("First", style="List Number")
    made.add_paragraph("Second", style="List Number")
    made.add_paragraph("Point", style="List Bullet")
    made.sections[0].header.paragraphs[0].text = "HR-117"
    buffer = io.BytesIO()
    made.save(buffer)
    extracted = read(buffer.getvalue())
    assert extracted.pages[0].text.split("\n") == ["HR-117", "Notice", "1. First", "2. Second", "- Point"]
    assert extracted.author == "python-docx"


def test_text_moved_up_or_down_by_hand_is_raised_or_lowered() -> None:
    up, down, hardly = (f'<w:position w:val="{points}"/><w:sz w:val="14"/>' for points in (8, -8, 2))
    content = word_file(
        paragraph("Leave is 30", run("1", up), " days. CO", run("2", down), " and 4", run("0", hardly), ".")
    )
    text = read(content).pages[0].text
    assert text == "Leave is 30 days ¹. CO₂ and 40."
