-- Threads of chat programs such as Slack that are conversations here: a person's questions in a thread go on with one
-- conversation of theirs.

CREATE TABLE chat_threads (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Which program, such as slack.
    program text NOT NULL,
    -- As the program names its channel and the message a thread begins with.
    channel text NOT NULL CHECK (length(channel) <= 200),
    thread text NOT NULL CHECK (length(thread) <= 200),
    account_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, program, channel, thread, account_id),
    CONSTRAINT chat_threads_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT chat_threads_conversation_id_fkey FOREIGN KEY (conversation_id, tenant_id)
        REFERENCES conversations (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON chat_threads (account_id);
CREATE INDEX ON chat_threads (conversation_id);
COMMENT ON TABLE chat_threads IS 'Threads of chat programs that are conversations.';

ALTER TABLE chat_threads ENABLE ROW LEVEL SECURITY;
ALTER TABLE chat_threads FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON chat_threads USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON chat_threads TO rag_app;

SELECT rag_close_rest_api();
