"""Write workbooks from Excel and LibreOffice as pages of text."""
