"""Word notices for their readers: only operators read about settings, everybody else reads the consequence."""

from __future__ import annotations

import re

from rag.answering.answer_run import KEY_REJECTED, QUOTA_EXHAUSTED
from rag.errors import ProviderKeyRejected, ProviderQuotaExhausted
from rag.language import N_, translated
from rag.providers import MODEL_UNKNOWN, NOT_ACCEPTED, NOT_OLLAMA
from rag.retrieval.multi_query import NO_EMBEDDING
from rag.retrieval.reranker import NO_RERANKING

NO_ANSWERS = N_("Answers cannot be written at the moment. Try again later, or tell your administrator.")
#: These keep an answer from being written.
OPERATORS = (
    str(ProviderKeyRejected()),
    str(ProviderQuotaExhausted()),
    KEY_REJECTED,
    QUOTA_EXHAUSTED,
    MODEL_UNKNOWN,
    NOT_ACCEPTED,
    NOT_OLLAMA,
)
#: What everybody else reads, by the pattern of the English sentence. No word: the answer is there all the same.
FOR_EVERYBODY = {
    **{re.sub(r"\\\{\w+\\\}", r"[^.]{1,60}", re.escape(sentence)): NO_ANSWERS for sentence in OPERATORS},
    re.escape(NO_EMBEDDING): "",
    re.escape(NO_RERANKING): "",
}


def notice_for(notice: str, *, is_for_operators: bool) -> str:
    """Return a notice, which is stored in English, in the reader's language and for the reader's role."""
    if not is_for_operators:
        for pattern, meaning in FOR_EVERYBODY.items():
            notice = re.sub(pattern, meaning, notice)
    return translated(" ".join(notice.split()))
