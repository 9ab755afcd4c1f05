"""The files of scripts and styles: all are drawn, and values cannot end a script."""

from __future__ import annotations

import re
from pathlib import Path

from rag.ui.scripts import FOLDER, script, style

PROJECT = Path(__file__).resolve().parents[2]


def test_values_are_written_as_json_and_cannot_end_the_script() -> None:
    text = script("own_words", LOST='</script> \\ "quoted" LOST')
    assert text.startswith("<script>\n")
    assert text.count("</script>") == 1
    assert 'window.hrAssistantLost = "\\u003c/script> \\\\ \\"quoted\\" LOST";' in text


def test_a_style_is_an_element_of_its_own() -> None:
    assert style("keys").startswith("<style>\n")
    assert style("keys").endswith("</style>\n")


def test_every_file_is_drawn() -> None:
    sources = "".join(file.read_text("utf-8") for file in (PROJECT / "rag" / "ui").glob("*.py"))
    for file in (*FOLDER.glob("*.js"), *FOLDER.glob("*.css")):
        assert re.search(rf'"{file.stem}"', sources) or f"'{file.stem}'" in sources, f"{file.name} is drawn nowhere"
