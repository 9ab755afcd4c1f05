-- Vectors of sentences that a cut by topic has paid for. They are kept from the answer until the cut is stored, so that
-- a killed process asks for none of them twice; a document that is deleted takes them with it.
CREATE TABLE sentence_vectors (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    -- Of the model and the texts of one call.
    digest text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- The rows one after the other, float32, little-endian: the cut is the same only when no bit of them is lost.
    vectors bytea NOT NULL,
    PRIMARY KEY (document_id, digest)
);
CREATE INDEX ON sentence_vectors (tenant_id);

ALTER TABLE sentence_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE sentence_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sentence_vectors USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON sentence_vectors TO rag_app;
