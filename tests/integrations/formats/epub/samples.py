"""Small books, for tests of all formats."""

from __future__ import annotations

from tests.integrations.formats.epub.book_files import epub_file

SAMPLES = {"epub": epub_file("<p>Everyone has 25 days.</p>")}
BLANK = {"epub": epub_file("<p></p>")}
PROTECTED = {"epub": epub_file("<p>One</p>", locked="OEBPS/chapter%201.xhtml")}
