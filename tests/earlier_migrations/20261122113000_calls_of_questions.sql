-- Every call of a question is written down before it is made; one whose process was killed is charged by estimate.
ALTER TABLE paid_calls DROP CONSTRAINT paid_calls_operation_check;
ALTER TABLE paid_calls ADD CONSTRAINT paid_calls_operation_check CHECK (operation IN
    ('embedding', 'chunking', 'reranking', 'translation', 'chat', 'tagging', 'ocr'));

-- What a dead process left open is looked for again and again; of the questions ever asked hardly one is open.
CREATE INDEX ON chat_logs (tenant_id, created_at) WHERE outcome IS NULL;
CREATE INDEX ON messages (tenant_id, created_at) WHERE state = 'streaming';

-- A search that paid nothing leaves no row behind; no other row of the log may be deleted by the application.
GRANT DELETE ON chat_logs TO rag_app;
CREATE POLICY searches_discarded ON chat_logs AS RESTRICTIVE FOR DELETE TO rag_app
    USING (kind = 'search' AND outcome IS NULL);
