"""Choose how notices are worded: operators read about keys and settings, everybody else about the consequence."""

from __future__ import annotations

import re

from rag.errors import ProviderError, ProviderKeyRejected, ProviderQuotaExhausted
from rag.language import N_, translated
from rag.providers import MODEL_UNKNOWN, NOT_ACCEPTED, NOT_OLLAMA
from rag.retrieval.multi_query import NO_EMBEDDING
from rag.retrieval.reranker import NO_RERANKING
from rag.settings.providers import provider_name

KEY_REJECTED = N_("{provider} rejected the API key. An administrator has to replace the key on the page Set-up.")
QUOTA_EXHAUSTED = N_(
    "The credit or the request limit at {provider} is used up. Try again later, or raise the limit there."
)

NO_ANSWERS = N_("Answers cannot be written at the moment. Try again later, or tell your administrator.")
#: Notices about failures which only an operator can repair.
OPERATORS = (
    str(ProviderKeyRejected()),
    str(ProviderQuotaExhausted()),
    KEY_REJECTED,
    QUOTA_EXHAUSTED,
    MODEL_UNKNOWN,
    NOT_ACCEPTED,
    NOT_OLLAMA,
)
#: The sentence for everybody else, by a pattern of the English notice; "" if the answer does not suffer.
FOR_EVERYBODY = {
    **{re.sub(r"\\\{\w+\\\}", r"[^.]{1,60}", re.escape(sentence)): NO_ANSWERS for sentence in OPERATORS},
    re.escape(NO_EMBEDDING): "",
    re.escape(NO_RERANKING): "",
}


def why_failed(error: ProviderError, provider: str) -> str:
    """Return an error's message, with the provider's name if the error is about a key or a quota."""
    sentence = str(error)
    if sentence == str(ProviderKeyRejected()):
        return KEY_REJECTED.format(provider=provider_name(provider))
    if sentence == str(ProviderQuotaExhausted()):
        return QUOTA_EXHAUSTED.format(provider=provider_name(provider))
    return sentence


def notice_for(notice: str, *, is_for_operators: bool) -> str:
    """Return a stored English notice in the reader's language, worded for operators or for everybody else."""
    if not is_for_operators:
        for pattern, meaning in FOR_EVERYBODY.items():
            notice = re.sub(pattern, meaning, notice)
    return translated(" ".join(notice.split()))
