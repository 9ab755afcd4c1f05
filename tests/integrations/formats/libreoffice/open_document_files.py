"""Make documents of LibreOffice from the XML of their bodies."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

ODF = 'xmlns:xlink="http://www.w3.org/1999/xlink" ' + " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in [
        ("office", "office"), ("table", "table"), ("text", "text"), ("draw", "drawing"), ("style", "style"),
        ("fo", "xsl-fo-compatible"), ("svg", "svg-compatible"), ("presentation", "presentation"),
    ]
)  # fmt: skip


def odf_file(
    body: str, kind: str, styles: str = "", *, manifest: str = "", parts: Mapping[str, str] | None = None
) -> bytes:
    """Make an OpenDocument file: `body` is within `office:spreadsheet` or `office:text`, as `kind` says."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        package.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        package.writestr(
            "content.xml",
            f"<office:document-content {ODF}><office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        )
        package.writestr("META-INF/manifest.xml", f"<manifest>{manifest}</manifest>")
        for name, content in (parts or {}).items():
            package.writestr(f"{name}.xml", content)
    return buffer.getvalue()
