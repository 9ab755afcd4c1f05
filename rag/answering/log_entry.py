"""Close the log row of an answered question."""

from __future__ import annotations

from rag.answering.state import AnswerState
from rag.money.bill import costs_of
from rag.records.chat_logs import Prompt, QuestionEnd, SentPassage


def log_answer(state: AnswerState) -> None:
    """Close the row with outcome, text, costs, times and prompt."""
    total_ms = state.elapsed_ms
    state.details.costs = costs_of(state.bill.entries)
    answer = [entry.charge.usage for entry in state.bill.entries if entry.line == "openai"]
    state.details.openai.input_tokens = sum(usage.input_tokens for usage in answer)
    state.details.openai.output_tokens = sum(usage.output_tokens for usage in answer)
    state.details.timing.openai_ms = round(state.details.timing.openai_ms, 1)
    state.details.timing.total_ms = float(total_ms)
    # Warnings are left out: they contain titles, and the log outlives documents.
    state.details.notices = list(dict.fromkeys(state.asides)) or None
    # Only cited documents count as used.
    used = state.citations if state.kind == "cited" else ()
    state.cost = state.parts.chat_logs.close_billed(
        state.bill,
        QuestionEnd(
            outcome=state.outcome,
            answer=state.text,
            details=state.details,
            error=state.error,
            language=state.language,
            model=state.model,
            document_ids=list(dict.fromkeys(citation.document_id for citation in used)),
            first_token_ms=state.first_text_ms,
            total_ms=total_ms,
            prompt=_prompt(state),
        ),
    )


def _prompt(state: AnswerState) -> Prompt | None:
    """Return the messages sent to the model, and each numbered passage with its fate: cited, supported, or neither."""
    passages = state.context.citations if state.context is not None else ()
    if not passages and not state.messages:
        return None
    named = {citation.chunk_id: citation for citation in (state.citations if state.kind == "cited" else ())}
    return Prompt(
        messages=tuple((message.role, message.content) for message in state.messages),
        passages=tuple(
            SentPassage(
                number=passage.number, chunk_id=passage.chunk_id, document_id=passage.document_id,
                title=passage.title, first_page=passage.first_page, last_page=passage.last_page,
                section=passage.section, text=passage.passage,
                state="not named" if (source := named.get(passage.chunk_id)) is None
                else "held" if source.is_supported else "not held",
                unsupported=source.unsupported if source else (),
            )
            for passage in passages
        ),
    )  # fmt: skip
