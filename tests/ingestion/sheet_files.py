"""Make workbooks from their XML, with the parts that a test needs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import escape

SCHEMAS = "http://schemas.openxmlformats.org"
MAIN = f"{SCHEMAS}/spreadsheetml/2006/main"
NAMES = (
    f'xmlns="{MAIN}" xmlns:r="{SCHEMAS}/officeDocument/2006/relationships" '
    f'xmlns:xdr="{SCHEMAS}/drawingml/2006/spreadsheetDrawing" xmlns:a="{SCHEMAS}/drawingml/2006/main"'
)
RELATIONS = f'xmlns="{SCHEMAS}/package/2006/relationships"'
KINDS = f"{SCHEMAS}/officeDocument/2006/relationships"
PROPERTIES = f"{SCHEMAS}/package/2006/relationships/metadata/core-properties"


def cell(place: str, value: object, style: int = 0, *, formula: str = "") -> str:
    """Make a cell: a text within the cell, or a number. `style` is the place of its number format."""
    inner = f"<f>{formula}</f>" if formula else ""
    if isinstance(value, str):
        return f'<c r="{place}" s="{style}" t="inlineStr">{inner}<is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}" s="{style}">{inner}{"<v/>" if value is None else f"<v>{value}</v>"}</c>'


def rows_of(*rows: object, first: int = 1, style: int = 0) -> str:
    """Make rows of lists of values from column A; "" and None leave a cell out."""
    made = ""
    for number, values in enumerate(rows, first):
        assert isinstance(values, (list, tuple))
        cells = (
            cell(f"{chr(65 + column)}{number}", value, style if not isinstance(value, str) else 0)
            for column, value in enumerate(values)
            if value not in ("", None)
        )
        made += f'<row r="{number}">{"".join(cells)}</row>'
    return made


def xlsx_file(
    sheets: Mapping[str, str],
    *,
    formats: tuple[str, ...] = (),
    hidden: tuple[str, ...] = (),
    said: str = "Worksheets",
    is_1904: bool = False,
    parts: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    strings: str | None = None,
) -> bytes:
    """Make a workbook: for each sheet its rows, then a "|" and what follows the cells, such as merged ones.

    The style 1 has the first of `formats`. `said` is what the program calls worksheets. `parts` are further parts by
    name, and `links` those of the first sheet by id, as "kind target".
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr(
            "_rels/.rels",
            f'<Relationships {RELATIONS}><Relationship Id="a" Type="{KINDS}/officeDocument" Target="xl/workbook.xml"/>'
            f'<Relationship Id="b" Type="{KINDS}/extended-properties" Target="docProps/app.xml"/></Relationships>',
        )
        vt = f"{SCHEMAS}/officeDocument/2006/docPropsVTypes"
        package.writestr("docProps/app.xml", f'<P xmlns:vt="{vt}"><vt:lpstr>{said}</vt:lpstr></P>')
        listed = named = ""
        for number, (name, content) in enumerate(sheets.items(), 1):
            state = ' state="hidden"' if name in hidden else ""
            listed += f'<sheet name="{escape(name)}" sheetId="{number}" r:id="s{number}"{state}/>'
            named += f'<Relationship Id="s{number}" Type="{KINDS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
            before, _, rest = content.rpartition("<!>") if "<!>" in content else ("", "", content)
            rows, bar, after = rest.partition("|<")
            package.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f"<worksheet {NAMES}>{before}<sheetData>{rows}</sheetData>{bar[1:]}{after}</worksheet>",
            )
        for kind in ("styles", *(("sharedStrings",) if strings is not None else ())):
            named += f'<Relationship Id="{kind}" Type="{KINDS}/{kind}" Target="{kind}.xml"/>'
        if strings is not None:
            package.writestr("xl/sharedStrings.xml", f"<sst {NAMES}>{strings}</sst>")
        package.writestr("xl/_rels/workbook.xml.rels", f"<Relationships {RELATIONS}>{named}</Relationships>")
        package.writestr(
            "xl/workbook.xml",
            f'<workbook {NAMES}><workbookPr date1904="{int(is_1904)}"/><sheets>{listed}</sheets></workbook>',
        )
        made = "".join(
            f'<numFmt numFmtId="{164 + place}" formatCode="{escape(code, {chr(34): "&quot;"})}"/>'
            for place, code in enumerate(formats)
        )
        looks = "".join(f'<xf numFmtId="{164 + place}" fontId="0"/>' for place in range(len(formats)))
        # Behind the formats: a date, bold, struck.
        looks = f'<xf numFmtId="0" fontId="0"/>{looks}<xf numFmtId="14" fontId="0"/><xf fontId="1"/><xf fontId="2"/>'
        package.writestr(
            "xl/styles.xml",
            f"<styleSheet {NAMES}><numFmts>{made}</numFmts><fonts><font/><font><b/></font><font><strike/></font>"
            f"</fonts><cellXfs>{looks}</cellXfs></styleSheet>",
        )
        for name, text in (parts or {}).items():
            package.writestr(name, text)
        if links:
            found = "".join(
                f'<Relationship Id="{link}" Type="{KINDS}/{kind}" Target="{target}"/>'
                for link, (kind, target) in ((link, value.split()) for link, value in links.items())
            )
            package.writestr(
                "xl/worksheets/_rels/sheet1.xml.rels", f"<Relationships {RELATIONS}>{found}</Relationships>"
            )
    return buffer.getvalue()
