"""Make presentations from the XML of their slides."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

SCHEMAS = "http://schemas.openxmlformats.org"
NAMES = (
    f'xmlns:p="{SCHEMAS}/presentationml/2006/main" xmlns:a="{SCHEMAS}/drawingml/2006/main" '
    f'xmlns:r="{SCHEMAS}/officeDocument/2006/relationships" xmlns:mc="{SCHEMAS}/markup-compatibility/2006" '
    f'xmlns:dgm="{SCHEMAS}/drawingml/2006/diagram"'
)
RELATIONS = f'xmlns="{SCHEMAS}/package/2006/relationships"'
KINDS = f"{SCHEMAS}/officeDocument/2006/relationships"
ROOTS = {"notesSlide": "p:notes", "slideLayout": "p:sldLayout", "comments": "p:cmLst", "diagramData": "dgm:dataModel"}


def paragraph(text: str, properties: str = "") -> str:
    return f"<a:p><a:pPr>{properties}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>"


def shape(*paragraphs: str, kind: str | None = None, is_hidden: bool = False) -> str:
    """Make a text box, or a placeholder of this kind; text without a tag becomes a paragraph."""
    place = "" if kind is None else f'<p:ph type="{kind}"/>' if kind else '<p:ph idx="1"/>'
    body = "".join(part if part.startswith("<") else paragraph(part) for part in paragraphs)
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" hidden="{int(is_hidden)}"/><p:nvPr>{place}</p:nvPr></p:nvSpPr>'
        f"<p:txBody>{body}</p:txBody></p:sp>"
    )


def table(*rows: Sequence[str]) -> str:
    """Make a table whose first row is marked as heads; ">" and "^" go on from the left and from above."""

    def cell(text: str) -> str:
        merged = {">": ' hMerge="1"', "^": ' vMerge="1"'}.get(text, "")
        return f"<a:tc{merged}><a:txBody>{paragraph('' if merged else text)}</a:txBody></a:tc>"

    made = "".join(f"<a:tr>{''.join(map(cell, row))}</a:tr>" for row in rows)
    return frame(f'<a:tbl><a:tblPr firstRow="1"/>{made}</a:tbl>', f"{SCHEMAS}/drawingml/2006/table")


def frame(content: str, uri: str) -> str:
    return (
        f'<p:graphicFrame><a:graphic><a:graphicData uri="{uri}">{content}</a:graphicData></a:graphic></p:graphicFrame>'
    )


def pptx_file(*slides: str, hidden: Sequence[int] = (), parts: Mapping[int, Mapping[str, str]] | None = None) -> bytes:
    """Make a presentation of the shapes on its slides. `parts` are the parts that a slide links to, by its number."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        link = f'<Relationship Id="a" Type="{KINDS}/officeDocument" Target="ppt/presentation.xml"/>'
        package.writestr("_rels/.rels", f"<Relationships {RELATIONS}>{link}</Relationships>")
        numbers = range(1, len(slides) + 1)
        listed = "".join(f'<p:sldId id="{255 + n}" r:id="s{n}"/>' for n in numbers)
        package.writestr(
            "ppt/presentation.xml", f"<p:presentation {NAMES}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
        )
        # In the package the slides stand in another order.
        links = "".join(
            f'<Relationship Id="s{n}" Type="{KINDS}/slide" Target="slides/slide{99 - n}.xml"/>' for n in numbers
        )
        package.writestr("ppt/_rels/presentation.xml.rels", f"<Relationships {RELATIONS}>{links}</Relationships>")
        for number, content in enumerate(slides, 1):
            show = ' show="0"' if number in hidden else ""
            package.writestr(
                f"ppt/slides/slide{99 - number}.xml",
                f"<p:sld {NAMES}{show}><p:cSld><p:spTree>{content}</p:spTree></p:cSld></p:sld>",
            )
            found = ""
            for kind, text in (parts or {}).get(number, {}).items():
                found += f'<Relationship Id="{kind}" Type="{KINDS}/{kind}" Target="../{kind}{number}.xml"/>'
                root = ROOTS[kind]
                package.writestr(f"ppt/{kind}{number}.xml", f"<{root} {NAMES}>{text}</{root}>")
            package.writestr(
                f"ppt/slides/_rels/slide{99 - number}.xml.rels", f"<Relationships {RELATIONS}>{found}</Relationships>"
            )
    return buffer.getvalue()
