"""Remove a model's reasoning from its text: some servers send it between tags, others without the opening tag."""

from __future__ import annotations

import re

_NAMES = r"(?:think|thinking|thought|reasoning|reflection)"
_OPENING = re.compile(rf"<{_NAMES}>", re.IGNORECASE)
_CLOSING = re.compile(rf"</{_NAMES}>", re.IGNORECASE)
#: The end of a piece, which may become a tag with the next.
_PERHAPS_TAG = re.compile(r"<(?:/?[a-z]{0,10})?$", re.IGNORECASE)


class ReasoningFilter:
    """Pass on a stream's answer without its reasoning.

    `waits` holds text back until the reasoning has ended, for a model known to send it without an opening tag.
    """

    def __init__(self, *, waits: bool = False) -> None:
        self._held = ""
        self._is_inside = waits
        self._waits = waits
        self._has_answer = False
        #: Whether a closing tag came without an opening tag: all text before it was reasoning.
        self.has_unopened = False

    def feed(self, delta: str) -> str:
        """Return text to pass on. If `has_unopened` becomes set, the answer restarts with this text."""
        if not self._held and not self._is_inside and self._has_answer and "<" not in delta:
            return delta
        text, self._held = self._held + delta, ""
        shown = ""
        while text:
            if self._is_inside:
                closing = _CLOSING.search(text)
                if closing is None:
                    # While the opening tag is only assumed, all text may belong to the answer.
                    self._held = text if self._waits else text[-12:]
                    break
                self._is_inside = self._waits = False
                text = text[closing.end() :]
                continue
            opening, closing = _OPENING.search(text), _CLOSING.search(text)
            if closing is not None and (opening is None or closing.start() < opening.start()):
                self.has_unopened = True
                shown, self._has_answer, text = "", False, text[closing.end() :]
                continue
            if opening is not None:
                shown += self._answer(text[: opening.start()])
                self._is_inside, text = True, text[opening.end() :]
                continue
            perhaps = _PERHAPS_TAG.search(text)
            end = perhaps.start() if perhaps else len(text)
            shown += self._answer(text[:end])
            self._held = text[end:]
            break
        return shown

    def finish(self) -> str:
        """Return the text held back, unless reasoning."""
        held, self._held = self._held, ""
        return held if self._waits or not self._is_inside else ""

    def _answer(self, text: str) -> str:
        """Return answer text without the blank lines after the reasoning."""
        text = text if self._has_answer else text.lstrip()
        self._has_answer = self._has_answer or bool(text)
        return text


def without_reasoning(text: str) -> str:
    """Return a whole reply without its reasoning."""
    answer = ReasoningFilter()
    shown = answer.feed(text)
    return shown + answer.finish()
