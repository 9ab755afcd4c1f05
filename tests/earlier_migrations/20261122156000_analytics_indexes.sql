-- What the analytics page reads of single questions: the slowest, failures, and estimated calls.
CREATE INDEX chat_logs_slowest ON chat_logs (tenant_id, total_ms DESC NULLS LAST, created_at DESC);
CREATE INDEX chat_logs_failures ON chat_logs (tenant_id, created_at DESC)
    WHERE outcome IN ('failed', 'refused') AND error <> '';
CREATE INDEX cost_ledger_estimated ON cost_ledger (tenant_id, created_at DESC) WHERE is_estimated;
