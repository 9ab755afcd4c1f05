-- Vectors of meaning beside those of words: made in the background for passages of collections on the built-in embedder,
-- and used as far as they are there.

CREATE TABLE meaning_vectors (
    chunk_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    -- Of the document: similarities are compared within one language.
    language text NOT NULL,
    -- Null: the model cannot read this text, and is not asked again.
    embedding extensions.halfvec(384),
    FOREIGN KEY (chunk_id, tenant_id) REFERENCES document_chunks (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
-- In the row and not beside it: reading a scope is reading its pages, ten rows each.
ALTER TABLE meaning_vectors ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX meaning_vectors_scope ON meaning_vectors (tenant_id, collection_id);
CREATE INDEX meaning_vectors_document ON meaning_vectors (document_id);

ALTER TABLE meaning_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE meaning_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON meaning_vectors USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
-- Readers are held to their collections, as in every table of one.
CREATE POLICY reader ON meaning_vectors AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
GRANT SELECT, INSERT, UPDATE, DELETE ON meaning_vectors TO rag_app;

-- A passage whose text changes has another meaning.
CREATE FUNCTION forget_meaning() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    DELETE FROM meaning_vectors WHERE chunk_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_meaning AFTER UPDATE OF content ON document_chunks
    FOR EACH ROW WHEN (OLD.content IS DISTINCT FROM NEW.content) EXECUTE FUNCTION forget_meaning();

-- Passages that are there already get theirs too. The owner is bound by row-level security, and no tenant is set here:
-- lifted for the moment.
ALTER TABLE collections NO FORCE ROW LEVEL SECURITY;
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
SELECT 'meaning', 'embed_meaning', 'meaning ' || id, 'meaning ' || id,
       jsonb_build_object('tenant_id', tenant_id, 'collection_id', id)
FROM collections WHERE embedding_model = 'builtin/lexical@1536'
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING;
ALTER TABLE collections FORCE ROW LEVEL SECURITY;
