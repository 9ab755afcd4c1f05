"""Files that are made when somebody asks for them."""

from __future__ import annotations

import ast
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_a_click_on_a_file_that_is_made_then_does_not_draw_the_page_again() -> None:
    """Streamlit gives the file another name each time the page is drawn, and the click asks for the one before."""
    made_then = {}
    for path in [
        *PROJECT.glob("pages/*.py"),
        *PROJECT.glob("rag/ui/*.py"),
        *PROJECT.glob("rag/integrations/*/*/section.py"),
    ]:
        for call in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if call.func.attr == "download_button" and isinstance(call.args[1], ast.Lambda):
                given = {keyword.arg: keyword.value for keyword in call.keywords}
                made_then[f"{path.name}:{call.lineno}"] = ast.unparse(given.get("on_click", ast.Constant(None)))
    assert len(made_then) >= 5
    assert set(made_then.values()) == {"'ignore'"}, made_then
