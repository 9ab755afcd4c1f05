-- Questions that the documents did not answer, or that were rated as not helpful, grouped by what they ask: each group is
-- a gap, which somebody fills with a document or an answer, or dismisses.

CREATE TABLE gaps (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'solved', 'dismissed')),
    -- Why it was dismissed.
    reason text NOT NULL DEFAULT '',
    assigned_to uuid,
    -- The document that answers it.
    solved_by_id uuid,
    changed_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT gaps_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT gaps_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT gaps_assigned_to_fkey FOREIGN KEY (assigned_to, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (assigned_to),
    CONSTRAINT gaps_solved_by_id_fkey FOREIGN KEY (solved_by_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE SET NULL (solved_by_id)
);
CREATE INDEX ON gaps (tenant_id, collection_id);

CREATE TABLE gap_questions (
    chat_log_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    gap_id uuid NOT NULL,
    -- What it means, by the embedder of that name; questions of other embedders are not compared with it.
    embedder text NOT NULL,
    embedding extensions.halfvec NOT NULL,
    CONSTRAINT gap_questions_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT gap_questions_gap_id_fkey FOREIGN KEY (gap_id, tenant_id)
        REFERENCES gaps (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON gap_questions (gap_id);
CREATE INDEX ON gap_questions (tenant_id);
-- Questions that may be gaps are a few of a hundred.
CREATE INDEX chat_logs_unanswered ON chat_logs (tenant_id, created_at)
    WHERE kind = 'question' AND outcome IN ('no_context', 'perhaps', 'refused');

ALTER TABLE gaps ENABLE ROW LEVEL SECURITY;
ALTER TABLE gaps FORCE ROW LEVEL SECURITY;
ALTER TABLE gap_questions ENABLE ROW LEVEL SECURITY;
ALTER TABLE gap_questions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON gaps USING (tenant_id = (SELECT rag_tenant())) WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY tenant ON gap_questions USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY reader ON gaps AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON gap_questions AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM gaps g WHERE g.id = gap_id));
GRANT SELECT, INSERT, UPDATE ON gaps TO rag_app;
GRANT SELECT, INSERT ON gap_questions TO rag_app;
CREATE TRIGGER audit AFTER UPDATE ON gaps FOR EACH ROW
    EXECUTE FUNCTION audit_change('gap', 'id', 'status', 'reason', 'assigned_to', 'solved_by_id');

SELECT rag_close_rest_api();
