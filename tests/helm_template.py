"""Render a Helm chart as far as ours uses its language: values, `if`, `range`, `define`, `include` and five functions.

Anything else raises, so that the chart stays within it. Where Helm itself is installed, the tests use that too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ACTION = re.compile(r"(\s*)\{\{-\s*(.*?)\s*(-?)\}\}|\{\{\s*(.*?)\s*(-?)\}\}", re.DOTALL)


@dataclass
class Chart:
    values: dict[str, Any]
    release: str
    defined: dict[str, list[str]]

    def render(self, text: str) -> str:
        return self._block(tokens(text), {"": self._root()})

    def _root(self) -> dict[str, Any]:
        return {"Values": self.values, "Release": {"Name": self.release}}

    def _block(self, parts: list[str], names: dict[str, Any]) -> str:
        written, position = "", 0
        while position < len(parts):
            part = parts[position]
            position += 1
            if not part.startswith("\0"):
                written += part
                continue
            action = part[1:]
            word = action.split()[0]
            if word in ("if", "range", "define"):
                end = closing(parts, position)
                inner, position = parts[position:end], end + 1
                if word == "define":
                    self.defined[action.split('"')[1]] = inner
                elif word == "if":
                    written += self._block(inner, names) if self._value(action[2:], names) else ""
                else:
                    key, value, source = re.fullmatch(r"range (\$\w+), (\$\w+) := (.+)", action).groups()  # type: ignore[union-attr]
                    for name, one in sorted(self._value(source, names).items()):
                        written += self._block(inner, {**names, key: name, value: one})
            else:
                found = self._value(action, names)
                written += str(found).lower() if isinstance(found, bool) else str(found)
        return written

    def _value(self, pipeline: str, names: dict[str, Any]) -> Any:
        value: Any = None
        for number, stage in enumerate(pipeline.strip().split(" | ")):
            words = re.findall(r'"[^"]*"|\S+', stage)
            arguments = [self._term(word, names) for word in words[1:]] + ([value] if number else [])
            match words[0]:
                case "include":
                    value = self._block(self.defined[arguments[0]], names)
                case "toYaml":
                    value = yaml.safe_dump(arguments[0]).rstrip()
                case "not":
                    value = not arguments[0]
                case "quote":
                    shown = str(arguments[0]).lower() if isinstance(arguments[0], bool) else str(arguments[0])
                    value = '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'
                case "nindent":
                    value = "\n" + "\n".join(" " * arguments[0] + line for line in str(arguments[1]).splitlines())
                case term:
                    assert not arguments, f"{stage} is not known here"
                    value = self._term(term, names)
        return value

    def _term(self, word: str, names: dict[str, Any]) -> Any:
        if word.startswith('"'):
            return word[1:-1]
        if word.isdigit():
            return int(word)
        if word.startswith("$"):
            return names[word]
        assert word.startswith("."), f"{word} is not known here"
        found = names[""]
        for part in filter(None, word.split(".")):
            found = found[part]
        return found


def tokens(text: str) -> list[str]:
    """Split into text and actions, which begin with a zero; white space is trimmed where a dash says so."""
    parts, position, is_trimmed = [], 0, False
    for found in ACTION.finditer(text):
        between = text[position : found.start()]
        parts.append(between.lstrip() if is_trimmed else between)
        parts.append("\0" + (found[2] if found[2] is not None else found[4]))
        position, is_trimmed = found.end(), "-" in (found[3] or found[5] or "")
    parts.append(text[position:].lstrip() if is_trimmed else text[position:])
    return parts


def closing(parts: list[str], position: int) -> int:
    """Return where the block that begins here ends."""
    depth = 1
    for at in range(position, len(parts)):
        word = parts[at][1:].split()[0] if parts[at].startswith("\0") else ""
        depth += (word in ("if", "range", "define")) - (word == "end")
        if not depth:
            return at
    raise AssertionError("a block does not end")


def rendered(folder: Path, release: str = "hr", **changes: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a chart with these values beside its own."""
    values = {**yaml.safe_load((folder / "values.yaml").read_text("utf-8")), **changes}
    chart = Chart(values, release, {})
    files = sorted((folder / "templates").iterdir(), key=lambda file: file.suffix != ".tpl")
    for file in files:
        text = chart.render(file.read_text("utf-8"))
        assert "\0" not in text
        if file.suffix == ".yaml":
            yield from (found for found in yaml.safe_load_all(text) if found)
