"""Catalogues of the interface in each language, as gettext keeps them."""
