"""Small documents from LibreOffice, for tests of all formats."""

from __future__ import annotations

from tests.integrations.formats.libreoffice.open_document_files import odf_file

SAMPLES = {
    "odt": odf_file("<text:p>Everyone has 25 days.</text:p>", "text"),
    "ods": odf_file(
        '<table:table table:name="Leave"><table:table-row><table:table-cell office:value-type="string">'
        "<text:p>25 days</text:p></table:table-cell></table:table-row></table:table>",
        "spreadsheet",
    ),
}
BLANK = {
    "ods": odf_file('<table:table table:name="Leave"/>', "spreadsheet"),
    "odt": odf_file("<text:p/>", "text"),
}
PROTECTED = {
    "odt": odf_file("", "text", manifest="<encryption-data/>"),
    "ods": odf_file("", "spreadsheet", manifest="<encryption-data/>"),
}
