"""Make documents of Hangul: .hwpx of the XML of its paragraphs, .hwp of the texts of its paragraphs."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from html import escape

from tests.ingestion.compound_files import compound_file

NAMES = " ".join(
    f'xmlns:{short}="http://www.hancom.co.kr/hwpml/2011/{name}"'
    for short, name in (("hp", "paragraph"), ("hs", "section"), ("hc", "core"), ("hh", "head"))
)
#: Letters by their number: plain, raised, struck, bold.
RAISED, STRUCK, BOLD = 1, 2, 3
LETTERS = ("", "<hh:supscript/>", '<hh:strikeout shape="SOLID" color="#000000"/>', "<hh:bold/>")
#: Paragraphs by their number: plain, and a heading of the first level.
HEADING = 1
HEAD = f"""<hh:head {NAMES} version="1.4" secCnt="1"><hh:refList>
<hh:charProperties itemCnt="{len(LETTERS)}">{
    "".join(f'<hh:charPr id="{number}" height="1000">{kind}</hh:charPr>' for number, kind in enumerate(LETTERS))
}</hh:charProperties>
<hh:paraProperties itemCnt="2"><hh:paraPr id="0"/><hh:paraPr id="1"><hh:heading type="OUTLINE" idRef="0" level="0"/>
</hh:paraPr></hh:paraProperties></hh:refList></hh:head>"""
CONTAINER = """<ocf:container xmlns:ocf="urn:oasis:names:tc:opendocument:xmlns:container"><ocf:rootfiles>
<ocf:rootfile full-path="Contents/content.hpf" media-type="application/hwpml-package+xml"/></ocf:rootfiles>
</ocf:container>"""
PACKAGE = """<opf:package xmlns:opf="http://www.idpf.org/2007/opf/"><opf:metadata><opf:title>{title}</opf:title>
</opf:metadata><opf:manifest>
<opf:item id="header" href="Contents/header.xml" media-type="application/xml"/>
<opf:item id="section0" href="Contents/section0.xml" media-type="application/xml"/></opf:manifest>
<opf:spine><opf:itemref idref="header"/><opf:itemref idref="section0"/></opf:spine></opf:package>"""


def run(content: str, letters: int = 0) -> str:
    """A run of a paragraph: text, or other elements as they are."""
    inner = content if content.startswith("<") else f"<hp:t>{escape(content)}</hp:t>"
    return f'<hp:run charPrIDRef="{letters}">{inner}</hp:run>'


def paragraph(*runs: str, kind: int = 0) -> str:
    """A paragraph of texts and of runs."""
    inner = "".join(part if part.startswith("<hp:run") else run(part) for part in runs)
    return f'<hp:p id="0" paraPrIDRef="{kind}" styleIDRef="0">{inner}</hp:p>'


def box(*paragraphs: str) -> str:
    """A rectangle with text."""
    return (
        f'<hp:rect id="1"><hp:drawText><hp:subList>{"".join(paragraphs)}</hp:subList></hp:drawText>'
        "<hp:shapeComment>사각형입니다.</hp:shapeComment></hp:rect>"
    )


def table(*rows: tuple[str, ...]) -> str:
    """A table of one cell for each text."""
    cells = (
        f'<hp:tc><hp:subList>{paragraph(text)}</hp:subList><hp:cellAddr colAddr="{column}" rowAddr="{number}"/>'
        '<hp:cellSpan colSpan="1" rowSpan="1"/></hp:tc>'
        for number, row in enumerate(rows)
        for column, text in enumerate(row)
    )
    width = len(rows[0])
    lines = "".join(f"<hp:tr>{''.join(next(cells) for _ in range(width))}</hp:tr>" for _ in rows)
    return f'<hp:tbl id="2" rowCnt="{len(rows)}" colCnt="{width}">{lines}</hp:tbl>'


def hwpx(*paragraphs: str, title: str = "", more: dict[str, bytes] | None = None) -> bytes:
    """A .hwpx file of paragraphs, with further parts."""
    parts = {
        "mimetype": b"application/hwp+zip",
        "META-INF/container.xml": CONTAINER.encode(),
        "Contents/content.hpf": PACKAGE.format(title=escape(title)).encode(),
        "Contents/header.xml": HEAD.encode(),
        "Contents/section0.xml": f"<hs:sec {NAMES}>{''.join(paragraphs)}</hs:sec>".encode(),
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in (parts | (more or {})).items():
            archive.writestr(name, content)
    return made.getvalue()


def record(tag: int, content: bytes, level: int = 0) -> bytes:
    """A record of a .hwp file."""
    size = min(len(content), 0xFFF)
    long = struct.pack("<I", len(content)) if size == 0xFFF else b""
    return struct.pack("<I", tag | level << 10 | size << 20) + long + content


def hwp(*texts: str, properties: int = 1) -> bytes:
    """A .hwp file of version 5.0.3 with plain paragraphs; `properties` are those of its header, 1 for packed."""
    records = b"".join(
        # The length, control mask, styles and counts of a paragraph; its text ends with a mark.
        record(66, struct.pack("<IIHBBHHHI", len(text) + 1, 0, 0, 0, 0, 1, 0, 1, 0))
        + record(67, (text + "\r").encode("utf-16-le"), 1)
        for text in texts
    )
    counts = record(16, struct.pack("<HHHHHHHIII", 1, 1, 1, 1, 1, 1, 1, 0, 0, 0))
    packed = [_packed(part) if properties & 1 else part for part in (counts, records)]
    head = b"HWP Document File".ljust(32, b"\0") + bytes([0, 3, 0, 5]) + struct.pack("<I", properties)
    return compound_file(
        {"FileHeader": head.ljust(256, b"\0"), "DocInfo": packed[0], "BodyText": {"Section0": packed[1]}},
        kind=bytes(16),
    )


def _packed(content: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(content) + made.flush()
