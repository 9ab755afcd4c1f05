"""Make books from the HTML of their chapters."""

from __future__ import annotations

import io
import zipfile


def epub_file(*chapters: str, locked: str = "", styles: str = "") -> bytes:
    """Make a book whose chapters stand in the package in another order; `locked` is the name of a protected part."""
    head = '<head><link rel="stylesheet" type="text/css" href="styles/a%20b.css"/></head>' if styles else ""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        package.writestr("mimetype", "application/epub+zip")
        package.writestr("META-INF/container.xml", '<c><rootfile full-path="OEBPS/book.opf"/></c>')
        if locked:
            package.writestr("META-INF/encryption.xml", f'<e><CipherReference URI="{locked}"/></e>')
        numbers = range(1, len(chapters) + 1)
        items = "".join(
            f'<item id="c{n}" href="chapter%20{n}.xhtml" media-type="application/xhtml+xml"/>'
            for n in reversed(numbers)
        )
        order = "".join(f'<itemref idref="c{n}"/>' for n in numbers)
        package.writestr(
            "OEBPS/book.opf",
            '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Handbook</dc:title>'
            "<dc:creator>Example Ltd</dc:creator><dc:language>de-AT</dc:language></metadata>"
            f'<manifest><item id="css" href="a.css" media-type="text/css"/>{items}</manifest>'
            f"<spine>{order}</spine></package>",
        )
        for number, body in reversed(list(enumerate(chapters, 1))):
            package.writestr(
                f"OEBPS/chapter {number}.xhtml",
                f'<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml">{head}<body>{body}</body></html>',
            )
        package.writestr("OEBPS/styles/a b.css", styles)
    return buffer.getvalue()
