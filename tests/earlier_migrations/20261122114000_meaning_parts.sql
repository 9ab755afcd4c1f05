-- A passage holds several things: what each part of it means is compared where the passage is a candidate. The passage's
-- own vector, by which candidates are found, is the mean of its parts'.

ALTER TABLE meaning_vectors ADD UNIQUE (chunk_id, tenant_id);
CREATE TABLE meaning_parts (
    chunk_id uuid NOT NULL,
    part smallint NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    embedding extensions.halfvec(384) NOT NULL,
    PRIMARY KEY (chunk_id, part),
    FOREIGN KEY (chunk_id, tenant_id) REFERENCES meaning_vectors (chunk_id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE meaning_parts ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX meaning_parts_collection ON meaning_parts (collection_id);

ALTER TABLE meaning_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE meaning_parts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON meaning_parts USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY reader ON meaning_parts AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
GRANT SELECT, INSERT ON meaning_parts TO rag_app;

-- Vectors of whole passages are made once more, in parts. The owner is bound by row-level security, and no tenant is set
-- here: lifted for the moment.
ALTER TABLE meaning_vectors NO FORCE ROW LEVEL SECURITY;
ALTER TABLE collections NO FORCE ROW LEVEL SECURITY;
DELETE FROM meaning_vectors;
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
SELECT 'meaning', 'embed_meaning', 'meaning ' || id, 'meaning ' || id,
       jsonb_build_object('tenant_id', tenant_id, 'collection_id', id)
FROM collections WHERE embedding_model = 'builtin/lexical@1536'
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING;
ALTER TABLE collections FORCE ROW LEVEL SECURITY;
ALTER TABLE meaning_vectors FORCE ROW LEVEL SECURITY;
