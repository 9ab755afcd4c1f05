-- That a person's data was erased: how many rows of which kind, and none of their content.

CREATE TABLE erasures (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Of the account that is gone, by which a receipt is found again.
    erased_id uuid NOT NULL,
    counts jsonb NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON erasures (tenant_id, erased_at DESC);
ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON erasures USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT ON erasures TO rag_app;
-- What a question meant is forgotten with its text.
GRANT DELETE ON gap_questions TO rag_app;
