"""Keeps secrets out of what people read: messages of drivers that repeat an address, and everything that is logged."""

from __future__ import annotations

import logging
import re

from rag.settings import SECRET_FIELDS, Settings

HIDDEN = "***"
#: user:password@ in addresses, and password=… in connection strings, quoted or not.
IN_ADDRESS = re.compile(r"(?<=//)[^/@\s]+@(?=[^\s]*)")
IN_PAIRS = re.compile(r"\b(password|pwd|apikey|api_key|token|secret)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)", re.IGNORECASE)
#: Shorter settings are no secrets anybody chose, and would hide half of every sentence.
SHORTEST_SECRET = 6


def without_passwords(text: str) -> str:
    """The text without what stands before the `@` of an address, and without values called password or the like."""
    return IN_PAIRS.sub(rf"\1={HIDDEN}", IN_ADDRESS.sub(f"{HIDDEN}@", text))


def first_line(error: BaseException) -> str:
    """The first line of what a driver says, without passwords."""
    return without_passwords((str(error).strip().splitlines() or ["no reason given"])[0])


class SecretsFilter(logging.Filter):
    """Takes the secrets of these settings out of every record that passes, its traceback included."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        values = {str(getattr(settings, name)) for name in SECRET_FIELDS}
        self._secrets = sorted((v for v in values if len(v) >= SHORTEST_SECRET), key=len, reverse=True)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self.clean(record.exc_text)
        message = record.getMessage()
        cleaned = self.clean(message)
        if cleaned != message:
            record.msg, record.args = cleaned, None
        return True

    def clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return without_passwords(text)


def hide_secrets(settings: Settings, handlers: list[logging.Handler] | None = None) -> None:
    """Have the handlers, by default those of the root logger, log none of the settings' secrets."""
    for handler in logging.getLogger().handlers if handlers is None else handlers:
        handler.addFilter(SecretsFilter(settings))
