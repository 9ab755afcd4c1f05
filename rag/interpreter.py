"""Continue in `.venv` if this Python lacks the packages, so a copied `python -m rag ...` works.

Runs before every other import, on Python 3.8 and newer: a system's Python may be older than the product needs.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: The environment created by `make run` (`rag.launch`, which may need a newer Python than this).
PYTHON = os.path.join(PROJECT, ".venv", *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
#: Packages whose presence shows the rest is installed too; the check imports nothing.
TELLING = ("psycopg", "pydantic", "openai", "streamlit")


def require_packages() -> None:
    """Return if the packages are installed; else restart with `.venv`'s Python, or exit with a sentence."""
    if sys.version_info >= (3, 11) and all(map(find_spec, TELLING)):
        return
    # If this is the environment's Python already, its packages are not installed yet.
    if os.path.exists(PYTHON) and os.path.abspath(sys.executable or "") != PYTHON:
        # Python 3.9 has no `sys.orig_argv`.
        command = getattr(sys, "orig_argv", ["", "-m", "rag", *sys.argv[1:]])
        os.execv(PYTHON, [PYTHON, *command[1:]])  # noqa: S606 - the same command
    if sys.version_info < (3, 11):  # noqa: UP036 - this file also runs on older ones
        sys.exit(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. Install one and start again.")
    sys.exit("The packages are not installed yet: run `make run` first.")
