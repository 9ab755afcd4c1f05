-- Questions that a person passes on to the people in charge, because the answer from the documents did not help, and what
-- those answered.

CREATE TABLE help_requests (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    -- Who asks; the request outlives the account and the conversation.
    account_id uuid,
    conversation_id uuid,
    -- The question as it was asked and answered from the documents.
    chat_log_id uuid,
    question text NOT NULL,
    reason text NOT NULL DEFAULT 'other'
        CHECK (reason IN ('wrong', 'incomplete', 'outdated', 'wrong_source', 'unanswered', 'other')),
    comment text NOT NULL DEFAULT '' CHECK (length(comment) <= 2000),
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'answered', 'dismissed')),
    -- Of a dismissed one: why, where that was said.
    answer text NOT NULL DEFAULT '' CHECK (length(answer) <= 10000),
    answered_by uuid,
    answered_at timestamptz,
    -- When the asker saw how it ended.
    seen_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT help_request_is_ended CHECK ((status = 'open') = (answered_at IS NULL)),
    CONSTRAINT help_request_has_answer CHECK (status <> 'answered' OR answer <> ''),
    -- One for each answer.
    CONSTRAINT help_requests_of_answer UNIQUE (chat_log_id),
    CONSTRAINT help_requests_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT help_requests_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (account_id),
    CONSTRAINT help_requests_answered_by_fkey FOREIGN KEY (answered_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (answered_by),
    CONSTRAINT help_requests_conversation_id_fkey FOREIGN KEY (conversation_id, tenant_id)
        REFERENCES conversations (id, tenant_id) ON DELETE SET NULL (conversation_id),
    CONSTRAINT help_requests_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE SET NULL (chat_log_id)
);
CREATE INDEX ON help_requests (tenant_id, status, created_at);
CREATE INDEX ON help_requests (tenant_id, account_id) WHERE answered_at IS NOT NULL AND seen_at IS NULL;
CREATE INDEX ON help_requests (conversation_id);
COMMENT ON TABLE help_requests IS 'Questions passed on to the people in charge, and their answers.';

ALTER TABLE help_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE help_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON help_requests USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY reader ON help_requests AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
GRANT SELECT, INSERT, UPDATE ON help_requests TO rag_app;
