-- Requests to an embedding model that several documents of a collection share have no document. The library adds up what
-- they cost.
CREATE INDEX cost_ledger_shared ON cost_ledger (tenant_id, collection_id)
    WHERE document_id IS NULL AND chat_log_id IS NULL;
