"""Convert Excel and LibreOffice workbooks to text pages."""
