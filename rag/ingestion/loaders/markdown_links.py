"""Reduce Markdown to the visible text: links to their words, HTML tables to rows, template marks removed.

Headings, lists, tables and emphasis stay as written, and so does everything between code marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable

CODE = re.compile(
    r"(^[ \t]*(?P<fence>```+|~~~+).*?(?:^[ \t]*(?P=fence)[^\n]*$|\Z)|`[^`\n]+`)", re.DOTALL | re.MULTILINE
)
#: `{% alert %}`, `{{% notice %}}`, `{{< youtube >}}`, `{{ site.name }}`, `{: .class }`, `[[toc]]`.
TEMPLATE = re.compile(
    r"\{%.{0,400}?%\}|\{\{.{0,400}?\}\}|\{:[^}\n]{0,200}\}|^\[\[_?toc_?\]\]\s*$", re.DOTALL | re.I | re.M
)
PICTURE = re.compile(r"!\[(?P<words>[^\]\n]{0,300})\](?:\((?:[^()\n]|\([^()\n]{0,500}\)){0,2000}\)|\[[^\]\n]{0,200}\])")
#: The address may contain one level of brackets and may be followed by a title.
LINK = re.compile(
    r"\[(?P<words>(?:[^\[\]\n]|\[[^\[\]\n]{0,300}\]|\n(?!\s*\n)){1,500})\](?:\((?:[^()\n]|\([^()\n]{0,500}\)){0,2000}\)"
    r"|\[(?!\^)[^\]\n]{0,200}\])"
)
#: `[name]: https://…` at the end of a text, but no footnote, `[^1]: …`.
DEFINITION = re.compile(r"^[ ]{0,3}\[(?!\^)[^\]\n]{1,200}\]:[ \t]+\S+[^\n]*\n?", re.MULTILINE)
ADDRESS = re.compile(r"<(?P<address>(?:https?://|mailto:)[^<>\s]+|[^<>\s@]+@[^<>\s]+)>")
BREAK = re.compile(r"<br\s*/?>|</(?:p|div|li|tr|h[1-6])\s*>", re.IGNORECASE)
TAG = re.compile(r"</?[a-z][a-z0-9-]*(?:\s+[^<>]{0,2000})?/?>", re.IGNORECASE)


def visible(text: str, read_table: Callable[[str], str]) -> str:
    """Return Markdown as readers see the page. `read_table` returns the rows of HTML tables."""
    return "".join(part if is_code else _visible(part, read_table) for part, is_code in _by_code(text))


def _by_code(text: str) -> list[tuple[str, bool]]:
    """Return a text's parts in order, each with a flag for code."""
    parts, start = [], 0
    for match in CODE.finditer(text):
        parts += [(text[start : match.start()], False), (match[0], True)]
        start = match.end()
    return [*parts, (text[start:], False)]


def _visible(text: str, read_table: Callable[[str], str]) -> str:
    # Before the links, because templates occur in their addresses.
    text = TEMPLATE.sub("", text) if "{" in text or "[[" in text else text
    if "<" in text:
        text = _with_tables(text, read_table)
        text = ADDRESS.sub(lambda match: match["address"].removeprefix("mailto:"), text)
        text = TAG.sub("", BREAK.sub("\n", text))
    if "[" in text:
        text = PICTURE.sub(lambda match: match["words"], text)
        text = LINK.sub(_words, text)
        text = DEFINITION.sub("", text)
    return text


def _with_tables(text: str, read_table: Callable[[str], str]) -> str:
    """Replace each HTML table by rows.

    No pattern is used, because it would search the rest of the text from each tag.
    """
    folded, parts, at = text.lower(), list[str](), 0
    while (start := folded.find("<table", at)) >= 0 and (end := folded.find("</table", start)) >= 0:
        end = folded.find(">", end) + 1 or len(text)
        parts += [text[at:start], f"\n\n{read_table(text[start:end])}\n\n"]
        at = end
    return "".join([*parts, text[at:]])


def _words(match: re.Match[str]) -> str:
    return match["words"]
