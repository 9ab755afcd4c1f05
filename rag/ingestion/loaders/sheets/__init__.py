"""Spreadsheets: workbooks of Excel and of LibreOffice as pages of text."""
