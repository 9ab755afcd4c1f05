"""Drawing shared by the pages."""
