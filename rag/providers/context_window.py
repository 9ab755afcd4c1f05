"""Find out how much of a prompt a server reads. Ollama silently cuts off the beginning of a prompt which is too long.

Ollama's `GET /api/ps` states the context length of each loaded model. Other servers only reveal by their token count
that they have read less than was sent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import httpx2

from rag.providers.bounds import Bounds, bound

log = logging.getLogger(__name__)

#: Seconds until the server is asked again, after an answer and after no answer.
KNOWN_SECONDS, UNKNOWN_SECONDS = 300.0, 30.0
ASK_TIMEOUT_SECONDS = 1.0
#: Prompts with fewer tokens fit everywhere.
LEAST_SENT = 800
#: A server with a prompt cache may count only the new tokens; a smaller count proves nothing.
LEAST_COUNTED = 256
#: A prompt was cut if the server counted less than this share of the estimate: with a known window smaller than the
#: prompt, and without a known window. The margin covers differences between tokenizers.
SHARE_IN_WINDOW, SHARE = 0.85, 0.25


class ContextWindow:
    """A model's context window: the tokens for prompt and answer together. `ask` requests the size from the server."""

    def __init__(self, model: str, ask: Callable[[], int | None] | None = None) -> None:
        self._model = model
        self._ask = ask
        self._asked_at = -KNOWN_SECONDS
        self._told: int | None = None
        #: Learned from a cut prompt.
        self._seen: int | None = None

    def size(self) -> int | None:
        """Return the window in tokens; `None` if unknown."""
        if self._ask is not None:
            lasts = UNKNOWN_SECONDS if self._told is None else KNOWN_SECONDS
            if time.monotonic() - self._asked_at > lasts:
                self._told, self._asked_at = self._ask(), time.monotonic()
        return self._told if self._told is not None else self._seen

    def cuts(self, *, sent: int, counted: int) -> bool:
        """Whether the server cut a prompt. `sent` is our estimate of its tokens, `counted` the server's count.

        A prompt was cut if `counted` is far below `sent`. If the size is unknown, `counted` is remembered as the
        context window.
        """
        if self._told is None:
            # The first prompt loads the model, and the server then names its window.
            self._asked_at = -KNOWN_SECONDS
        if sent < LEAST_SENT or counted < LEAST_COUNTED:
            return False
        window = self.size()
        if self._told is not None:
            is_cut = sent > self._told and counted < SHARE_IN_WINDOW * sent
        else:
            is_cut = counted < SHARE * sent
            if is_cut and (self._seen is None or counted > self._seen):
                self._seen = window = counted
        if is_cut:
            log.warning(
                "%s reads %d tokens at most, of a prompt of about %d: give it a larger context window "
                "(Ollama: OLLAMA_CONTEXT_LENGTH=%d or more)",
                self._model, window, sent, _power_above(2 * sent),
            )  # fmt: skip
        return is_cut


def loaded_window(address: str, key: str, model: str) -> int | None:
    """Return the context window of a model loaded in Ollama at this address, or `None` for any other response."""
    try:
        with bound(
            httpx2.Client(timeout=ASK_TIMEOUT_SECONDS), Bounds(longest_seconds=3 * ASK_TIMEOUT_SECONDS)
        ) as client:
            answer = client.get(f"{address}/api/ps", headers={"Authorization": f"Bearer {key}"})
        for model_entry in answer.json()["models"]:
            if model in (model_entry["name"], model_entry["name"].removesuffix(":latest")):
                return int(model_entry["context_length"]) or None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RecursionError, TypeError, LookupError) as exc:
        log.info("the context window of %s is not known: %r", model, exc)
    return None


def _power_above(tokens: int) -> int:
    return 1 << max(12, tokens.bit_length())
