"""Make Word documents from their XML, with the parts that a test needs."""

from __future__ import annotations

import io
import zipfile

SCHEMAS = "http://schemas.openxmlformats.org"
NAMES = (
    f'xmlns:w="{SCHEMAS}/wordprocessingml/2006/main" xmlns:m="{SCHEMAS}/officeDocument/2006/math" '
    f'xmlns:r="{SCHEMAS}/officeDocument/2006/relationships" xmlns:mc="{SCHEMAS}/markup-compatibility/2006" '
    f'xmlns:wp="{SCHEMAS}/drawingml/2006/wordprocessingDrawing" xmlns:a="{SCHEMAS}/drawingml/2006/main" '
    f'xmlns:c="{SCHEMAS}/drawingml/2006/chart" '
    f'xmlns:dgm="{SCHEMAS}/drawingml/2006/diagram" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)
RELATIONS = f'xmlns="{SCHEMAS}/package/2006/relationships"'
KINDS = f"{SCHEMAS}/officeDocument/2006/relationships"
#: The element that each part consists of.
ROOTS = {
    "styles": "w:styles", "numbering": "w:numbering", "settings": "w:settings", "footnotes": "w:footnotes",
    "endnotes": "w:endnotes", "comments": "w:comments", "header": "w:hdr", "footer": "w:ftr",
    "diagramData": "dgm:dataModel",
}  # fmt: skip


def word_file(body: str, main: str = "word/document.xml", **parts: str) -> bytes:
    """Make a document of the XML within its body, and of parts by name, such as `styles` or `header2`.

    A header or footer has the id of its name: `r:id="header2"`.
    """
    folder, _, name = main.rpartition("/")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        link = f'<Relationship Id="rId1" Type="{KINDS}/officeDocument" Target="{main}"/>'
        package.writestr("_rels/.rels", f"<Relationships {RELATIONS}>{link}</Relationships>")
        package.writestr(main, f"<w:document {NAMES}><w:body>{body}</w:body></w:document>")
        links = ""
        for part, content in parts.items():
            kind = part.rstrip("0123456789")
            links += f'<Relationship Id="{part}" Type="{KINDS}/{kind}" Target="{part}.xml"/>'
            root = ROOTS[kind]
            package.writestr(f"{folder}/{part}.xml", f"<{root} {NAMES}>{content}</{root}>")
        package.writestr(f"{folder}/_rels/{name}.rels", f"<Relationships {RELATIONS}>{links}</Relationships>")
    return buffer.getvalue()


def run(text: str, properties: str = "") -> str:
    """Make a run."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*runs: str, properties: str = "") -> str:
    """Make a paragraph of runs; text without a tag becomes one."""
    content = "".join(part if part.startswith("<") else run(part) for part in runs)
    return f"<w:p><w:pPr>{properties}</w:pPr>{content}</w:p>"


def numbered(text: str, level: int = 0, number: int = 1) -> str:
    """Make a paragraph of a list."""
    place = f'<w:ilvl w:val="{level}"/><w:numId w:val="{number}"/>'
    return paragraph(text, properties=f"<w:numPr>{place}</w:numPr>")


def level(place: int, form: str, text: str, more: str = "") -> str:
    """Make a level of a list's form."""
    own = f'<w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}<w:lvlText w:val="{text}"/>'
    return f'<w:lvl w:ilvl="{place}">{own}</w:lvl>'


def cell(content: str, properties: str = "") -> str:
    """Make a cell of XML, or of text."""
    inner = content if content.startswith("<") else paragraph(content)
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>"


def table(*rows: str) -> str:
    """Make a table of rows, each the XML of its cells."""
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
