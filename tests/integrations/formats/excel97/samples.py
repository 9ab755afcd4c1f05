"""Small workbooks, for tests of all formats."""

from __future__ import annotations

from tests.integrations.formats.excel97.old_workbook_files import xls_file

SAMPLES = {"xls": xls_file()}
