"""How plainly docstrings and comments are written, by folder: `python -m tests.prose` writes `tests/prose.toml`.

Counted are words that make a sentence hard to follow where they are many, in a hundred words: "what", "that", "one",
"none", "it", "of", "as", "so" and their like. Plain code has 3 to 5.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
FIGURES = PROJECT / "tests" / "prose.toml"
WORDS = re.compile(
    r"(?<![a-z'])(?:what|where|that|those|ones?|none|nothing|nobody|so|such|as|than|of|its?|another|others|own|itself"
    r"|themselves|whose|once|whatever|whoever|anew|therein|thereof|whereof)(?![a-z'])"
)
#: A text of this many words or more is crowded above this share.
SHORTEST_WORDS, CROWDED_PERCENT = 8, 25.0
NO_PROSE = re.compile(r"#\s*(noqa|type:|pragma|fmt|hadolint)")


def texts_of(source: str) -> Iterator[str]:
    """Yield docstrings, and comments with those of consecutive lines as one text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    block, last_line = list[str](), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not NO_PROSE.match(token.string):
            if token.start[0] != last_line + 1:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("#: "))
            last_line = token.start[0]
    yield " ".join(block)


def counted(text: str) -> tuple[int, int]:
    """Return how many of the words are in `WORDS`, and how many words there are. Code and addresses do not count."""
    plain = re.sub(r"`[^`]*`|https?://\S+", " ", text.lower())
    return len(WORDS.findall(plain)), len(re.findall(r"[a-z']+", plain))


def figures() -> dict[str, dict[str, float]]:
    """Return for each folder of `rag` and `pages` the percentage of such words, and how many texts are crowded."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for root in ("rag", "pages"):
        for path in sorted((PROJECT / root).rglob("*.py")):
            folder = sums[path.parent.relative_to(PROJECT).as_posix()]
            for text in texts_of(path.read_text("utf-8")):
                odd, words = counted(text)
                is_crowded = words >= SHORTEST_WORDS and 100 * odd / words > CROWDED_PERCENT
                folder[:] = folder[0] + odd, folder[1] + words, folder[2] + is_crowded
    return {
        name: {"percent": round(100 * odd / max(words, 1), 1), "crowded": crowded}
        for name, (odd, words, crowded) in sorted(sums.items())
    }


if __name__ == "__main__":
    lines = (f'"{name}" = {{ percent = {f["percent"]}, crowded = {f["crowded"]} }}\n' for name, f in figures().items())
    FIGURES.write_text(f"# Written by `python -m tests.prose`. No folder gets worse.\n{''.join(lines)}", "utf-8")
