"""The interface's gettext catalogues, by language."""
