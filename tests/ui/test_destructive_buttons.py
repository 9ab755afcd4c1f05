"""Buttons that take something away are red, and what they ask first is asked by one helper."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
TAKES_AWAY = ("delete", "remove", "revoke", "erase", "disable", "disconnect", "stop following", "empty")


def buttons() -> list[tuple[str, str, bool]]:
    """The place, the words and whether they are red, of each button whose words are written in its call."""
    found = []
    for path in [
        *(ROOT / "pages").glob("*.py"),
        *(ROOT / "rag" / "ui").glob("*.py"),
        *ROOT.glob("rag/integrations/*/*/section.py"),
    ]:
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
                continue
            if call.func.attr not in ("button", "form_submit_button"):
                continue
            label = call.args[0]
            texts = [n.value for n in ast.walk(label) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            is_red = isinstance(label, ast.Call) and isinstance(label.func, ast.Name) and label.func.id == "red"
            found += [(f"{path.relative_to(ROOT)}:{call.lineno}", text, is_red) for text in texts]
    return found


def test_every_button_that_takes_away_is_red() -> None:
    found = buttons()
    plain = [f"{place} {text!r}" for place, text, is_red in found if text.lower().startswith(TAKES_AWAY) and not is_red]
    assert not plain
    assert sum(is_red for _, _, is_red in found) > 20, "the walk still finds them"


def test_every_question_before_a_deletion_is_asked_by_one_helper() -> None:
    """A dialog of one's own is for what asks for more than yes: a name typed, a list of what goes with it."""
    own = set()
    for path in [
        *(ROOT / "pages").glob("*.py"),
        *(ROOT / "rag" / "ui").glob("*.py"),
        *ROOT.glob("rag/integrations/*/*/section.py"),
    ]:
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for decorator in function.decorator_list:
                words = [n.value for n in ast.walk(decorator) if isinstance(n, ast.Constant)]
                if any(str(word).lower().startswith(TAKES_AWAY) for word in words):
                    own.add(f"{path.name} {function.name}")
    assert own == {
        "collection_settings.py ask_to_delete_for_good",
        "conversation_list.py delete",
        "privacy.py ask_to_erase",
    }
