-- What was sent to the model for a question, and the numbered passages as they were then, with what became of each as a
-- source. It belongs to the text of the question and is forgotten and erased with it.

CREATE TABLE prompts (
    chat_log_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Role and content of each message in its order; empty where no model was asked.
    messages jsonb NOT NULL,
    -- number, chunkId, documentId, title, firstPage, lastPage, section, text, state (held, not held, not named), and the
    -- sentences of the answer that it does not hold.
    passages jsonb NOT NULL,
    CONSTRAINT prompts_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON prompts (tenant_id);
ALTER TABLE prompts ENABLE ROW LEVEL SECURITY;
ALTER TABLE prompts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON prompts USING (tenant_id = (SELECT rag_tenant())) WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY reader ON prompts AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM chat_logs l WHERE l.id = chat_log_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON prompts TO rag_app;

-- What is done for a tenant once a day, a week or a month, with the last day for which it was done: whoever writes the
-- row does it.
CREATE TABLE calendar_work (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    work text NOT NULL,
    done_for date NOT NULL,
    PRIMARY KEY (tenant_id, work)
);
ALTER TABLE calendar_work ENABLE ROW LEVEL SECURITY;
ALTER TABLE calendar_work FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON calendar_work USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON calendar_work TO rag_app;

-- From this share on, people are asked before a paid model is called for them; null: they are not asked.
ALTER TABLE budgets ADD COLUMN ask_share numeric(4, 3) CHECK (ask_share BETWEEN 0 AND 1);

SELECT rag_close_rest_api();
