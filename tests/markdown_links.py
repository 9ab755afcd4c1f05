"""What Markdown would do to a page: found by a CommonMark parser, and by what Streamlit does to its text after that.

Streamlit resolves escapes, then makes links of addresses (GFM), icons of `:material_…:` and a picture of `:streamlit:`.
A browser is asked the same in tests/browser/test_hostile_text.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
#: As mdast-util-gfm-autolink-literal finds them, without what it asks of the character before.
ADDRESS = re.compile(r"(?:https?://|www\.)[-.\w]+\S*|[-.\w+]+@[-\w]+(?:\.[-\w]+)+", re.IGNORECASE)
ICON = re.compile(r":material_\w+:|:streamlit:")
#: In the source, outside of code: what begins a directive, a formula or a footnote when nothing escapes it.
CODE = re.compile(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]")
DIRECTIVE = re.compile(r":[a-zA-Z][\w-]*\[|^ {0,3}:{2,}\w|\[\^", re.MULTILINE)
FORMULA = re.compile(r"\$")

#: Pieces of CommonMark, GFM and Streamlit, and what they are often combined with.
PIECES: Sequence[str] = (
    "https://evil.test/a", "http://evil.test", "HTTPS://EVIL.TEST", "www.evil.test", "WWW.evil.test/x(y)",
    "a@evil.test", "mailto:a@evil.test", "xmpp:a@evil.test/x", "ftp://evil.test", "//evil.test",
    "javascript:alert(1)", "[click here](https://evil.test/phish)", "![x](https://evil.test/x.png)", "[x][y]",
    "\n\n[y]: https://evil.test\n\n", "<https://evil.test>", "<a href='https://evil.test'>x</a>",
    "<img src=x onerror=alert(1)>", "<script>", "<!-- x -->", "<b>", "</b>", "&lt;", "&#104;ttps://evil.test",
    "&colon;", "&#58;//evil.test", "&#10;", "&#10;&#10;", "&Tab;", "\\", "\\\\", "`", "``", "```", "````", "~~~",
    "\\`", "``` mermaid\n", "```mermaid\ngraph TD; click A \"https://evil.test\"\n```", "*", "**", "***", "_", "__",
    "~", "~~", "#", "# ", "## ", "> ", "- ", "+ ", "1. ", "- [ ] ", "---", "===", "|", " | ", "\n|---|---|\n",
    "\n| a | b |\n|---|---|\n| ", "\\|", "[^1]", "\n[^1]: https://evil.test\n", "[1]", "[1](https://evil.test)",
    "![1]", "[1, 2]", "[99]", ":red[x]", ":red[", ":blue-badge[x]", ":small[", ":color[x]{foreground=red}",
    ":help[x]", "::leaf[x]", ":::note\n", "\n:::\n", ":material/home:", ":material_home:", ":streamlit:", ":smile:",
    ":+1:", "$x$", "$$\nx\n$$", "$", "\\(x\\)", "\\href{https://evil.test}{x}", "[", "]", "(", ")", "{", "}", "!",
    ":", "@", ".", "/", " ", "  \n", "\n", "\n\n", "    ", "\t", "\u200b", "\u2060", "\xa0", "\u202e", "\x00", "a",
    "leave", "1", "한국어", "é", "https:", "http", "www", "evil.test",
)  # fmt: skip

#: Shown as it is, character by character.
FAITHFUL = (
    "a *b* [c](d) https://evil.test/x?a=b_c, a@evil.test :material/home: :material_home: $x$ <b>y</b> `z` #1 1. [1]"
)


def acting(markdown: str) -> list[str]:
    """What is a link, a picture, HTML, an icon, a formula or a directive in this Markdown."""
    # Streamlit does this to the source before it is parsed.
    markdown = markdown.replace(":material/", ":material_")
    bare = ESCAPED.sub("\ufffc", CODE.sub("\ufffd", markdown))
    found = [f"directive {match[0]}" for match in DIRECTIVE.finditer(bare)]
    found += ["formula" for _ in FORMULA.finditer(bare)]
    return found + list(_acting(PARSER.parse(markdown)))


def _acting(tokens: Sequence[Token], depth: int = 0) -> Iterator[str]:
    text = ""
    for token in tokens:
        if token.type == "text":
            text += token.content
            continue
        yield from _in_text(text)
        text = ""
        if token.type == "link_open":
            yield str(token.attrs["href"])
        elif token.type == "image":
            yield f"picture {token.attrs['src']}"
        elif token.type.startswith("html"):
            yield f"html {token.content}"
        elif token.type == "fence" and token.info:
            yield f"language {token.info}"
        if token.children and token.type == "inline":
            yield from _acting(token.children, depth + 1)
    yield from _in_text(text)


def _in_text(text: str) -> Iterator[str]:
    yield from (f"address {match[0]}" for match in ADDRESS.finditer(text))
    yield from (f"icon {match[0]}" for match in ICON.finditer(text))
