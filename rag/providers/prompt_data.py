"""Put text of documents into prompts so that it cannot end its own part; there is no other way in.

Instructions of ours are outside of `<name>` and `</name>`, text of others is inside. What a document writes to look
like the end of that part, or like the marks by which models tell who is speaking, is written with other characters.
"""

from __future__ import annotations

import re

#: Characters that are not seen and may stand between those of a mark.
_UNSEEN = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_GAP = rf"[\s{_UNSEEN}]*+"
_NAMES = ("passage", "question", "conversation", "document", "system", "assistant", "user", "instruction", "rules")
#: An opening bracket as it looks, and what makes a mark of it: a name of ours, the bars and words of chat templates.
_MARK = re.compile(
    rf"[<＜﹤](?={_GAP}[/／\\]?{_GAP}(?:"
    + "|".join(_GAP.join(name) for name in _NAMES)
    + rf"|[|｜]|<?{_GAP}SYS\b|/?s>|/?{_GAP}(?:start|end)_of_turn|/?think|/?tool))",
    re.IGNORECASE,
)
_INSTRUCTION_MARK = re.compile(r"\[(?=/?INST\])", re.IGNORECASE)


def as_data(name: str, text: str, *, title: str | None = None) -> str:
    """Wrap text of others in `<name>` and `</name>`, with its title where it has one."""
    inside = defused(text) if title is None else f"Title: {defused(' '.join(title.split()))}\n\n{defused(text)}"
    return f"<{name}>\n{inside}\n</{name}>"


def defused(text: str) -> str:
    """Return the text without marks that end its part of a prompt, or look like another speaker."""
    return _INSTRUCTION_MARK.sub("［", _MARK.sub("‹", text))
