"""Continue in `.venv` where this Python has not the packages, so that a copied `python -m rag ...` works.

It runs before anything else is imported, on Python 3.8 and newer: a system's own may be older than the product needs.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: The environment that `make run` makes (`rag.launch`, which needs a newer Python than this may be).
PYTHON = os.path.join(PROJECT, ".venv", *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
#: Packages that tell whether the rest is there too; looking for them imports nothing.
TELLING = ("psycopg", "pydantic", "openai", "streamlit")


def require_packages() -> None:
    """Return where the packages are there, else begin again with `.venv`'s Python, or end with a sentence."""
    if sys.version_info >= (3, 11) and all(map(find_spec, TELLING)):
        return
    # Where this is that Python already, its packages are not installed yet.
    if os.path.exists(PYTHON) and os.path.abspath(sys.executable or "") != PYTHON:
        # Python 3.9 has no `sys.orig_argv`.
        command = getattr(sys, "orig_argv", ["", "-m", "rag", *sys.argv[1:]])
        os.execv(PYTHON, [PYTHON, *command[1:]])  # noqa: S606 - the same command
    if sys.version_info < (3, 11):  # noqa: UP036 - this file also runs on older ones
        sys.exit(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. Install one and start again.")
    sys.exit("The packages are not installed yet: run `make run` first.")
