"""Workbooks from Excel before 2007: what each sheet shows, and what was not read."""

from __future__ import annotations

import pytest

from rag.errors import DocumentError, FileDamaged, FileNotAsNamed, FileProtected
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.signatures import COMPOUND
from tests.ingestion.sheet_files import rows_of, xlsx_file
from tests.ingestion.test_spreadsheets import read, warnings_of
from tests.integration_rows import needs
from tests.integrations.formats.excel97.old_workbook_files import xls_file, xls_file_of_parts

pytestmark = needs("excel97")
BANDS = rows_of(["Grade", "Low", "High"], ["G1", 30000, 45000], ["G2", 35000, 50000])


def test_a_workbook_of_before_2007_is_read_as_it_is_shown() -> None:
    document = read(xls_file(), "a.xls")
    assert document.pages[0].text.split("\n") == [
        "Gehaltsbänder",
        "Stufe | Minimum | Bonus | Ab",
        "G1 | 30.000,50 € | 5,0% | 01.02.2026",
        "G3 | 41.000,00 € | 12,5% | 01.04.2026",
    ]
    assert warnings_of(document) == [
        "1 hidden sheet was not read: “Geheim”.",
        "Sheet “Gehälter”: 1 hidden row was not read.",
    ]
    assert document.metadata["sheet_rows"] == {"1": [[0, 1, "A", "D"], [3, 5, "A", "D"]]}


def test_parts_of_a_cell_before_2007_are_raised_lowered_and_struck() -> None:
    document = read(xls_file_of_parts(), "a.xls")
    assert document.pages[0].text.split("\n") == [
        "Rule | Value",
        "Limit | 30 ¹ days",
        "Pay | pays 45 euros",
        "Gas | CO₂ in 10³ g",
    ]
    assert warnings_of(document) == ["Sheet “Pay”: Struck-through text was left out of 1 cell."]


def test_workbooks_are_told_by_their_content_and_a_wrong_name_is_named() -> None:
    assert kind_of(xls_file(), "export") == "xls"
    for content, name, told in [
        (xlsx_file({"a": BANDS}), "a.xls", "an Excel workbook (.xlsx). Rename the file so that its name ends in .xlsx"),
        (
            xls_file(),
            "a.xlsx",
            "an Excel workbook of before 2007 (.xls). Rename the file so that its name ends in .xls",
        ),
        (
            b"<html><table><tr><td>Kind</td></tr></table>",
            "a.xls",
            "HTML. Rename the file so that its name ends in .html",
        ),
    ]:
        with pytest.raises(FileNotAsNamed, match=r"The name of this file ends in \.\w+, but the file is ") as caught:
            check(content, name)
        assert told in caught.value.message


def test_what_cannot_be_read_says_why() -> None:
    protected = COMPOUND + "EncryptedPackage".encode("utf-16-le")
    cases: list[tuple[bytes, type[DocumentError]]] = [
        (protected, FileProtected),
        (COMPOUND + b"\0" * 600, FileDamaged),
    ]
    for content, error in cases:
        with pytest.raises(error):
            load(content, "a.xls")


def test_workbooks_come_through_the_sandbox(sandbox: Sandbox) -> None:
    assert sandbox.check(xls_file(), file_name="a.xls").page_count == 1
    assert " | " in sandbox.load(xls_file(), file_name="a.xls").pages[0].text
    with pytest.raises(FileNotAsNamed):
        sandbox.load(xls_file(), file_name="a.xlsx")
