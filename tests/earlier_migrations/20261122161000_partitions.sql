-- What a search reads is kept in sixteen parts by a hash of the tenant: vacuum, the making of an index and what is held in
-- memory stay as small as the part, and a search reads one. Every statement names its tenant, by which Postgres finds it.
--
-- Rows are copied, so that for the length of this transaction the tables lie on disk twice and nobody else reads them
-- (docs/operations.md, Upgrade). Counts, numbers and segments of the keyword index are a few rows a collection and stay.

-- Nobody may name a table here, and row-level security without a policy shows its rows to nobody, the owner included:
-- they are reached through the table they are part of, where its rights and policies hold. On Supabase it is no schema of
-- the REST API.
CREATE SCHEMA rag_partitions;
COMMENT ON SCHEMA rag_partitions IS 'Parts of tables by tenant, reached through the tables themselves; granted to nobody.';
REVOKE ALL ON SCHEMA rag_partitions FROM PUBLIC;

-- The owner is bound by row-level security too, and no tenant is set here: lifted for the copy and for checking references.
ALTER TABLE tenants NO FORCE ROW LEVEL SECURITY;
ALTER TABLE collections NO FORCE ROW LEVEL SECURITY;
ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;
ALTER TABLE keyword_segments NO FORCE ROW LEVEL SECURITY;
ALTER TABLE meaning_vectors NO FORCE ROW LEVEL SECURITY;
ALTER TABLE spare_vectors NO FORCE ROW LEVEL SECURITY;

ALTER TABLE meaning_vectors DROP CONSTRAINT meaning_vectors_chunk_id_tenant_id_fkey;
ALTER TABLE spare_vectors DROP CONSTRAINT spare_vectors_chunk_id_fkey;

-- Indexes come after the rows, which is several times as fast.
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'document_chunks', 'chunk_terms', 'chunk_bits', 'keyword_documents', 'keyword_blocks', 'meaning_bits'
    ] LOOP
        EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I RENAME TO %I', t, t || '_whole');
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY HASH (tenant_id)',
                       t, t || '_whole');
        -- With every text short and in the row, these two need no second table for what does not fit.
        IF t IN ('chunk_bits', 'meaning_bits') THEN
            EXECUTE format('ALTER TABLE %I ALTER tenant_id SET STORAGE PLAIN, ALTER %I SET STORAGE PLAIN', t,
                           CASE t WHEN 'chunk_bits' THEN 'embedding_model' ELSE 'language' END);
        END IF;
        FOR part IN 0..15 LOOP
            EXECUTE format('CREATE TABLE rag_partitions.%I PARTITION OF %I FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
                           format('%s_%s', t, lpad(part::text, 2, '0')), t, part);
        END LOOP;
        EXECUTE format('INSERT INTO %I SELECT * FROM %I', t, t || '_whole');
        EXECUTE format('DROP TABLE %I', t || '_whole');
    END LOOP;
END
$$;

-- Keys and references. A key holds the tenant now, by which its part is found. What is unique without it stays so: a
-- document or a segment has one tenant, and ids are drawn at random.

ALTER TABLE document_chunks
    ADD PRIMARY KEY (id, tenant_id),
    ADD UNIQUE (document_id, chunk_index, tenant_id);
CREATE INDEX document_chunks_scope ON document_chunks (tenant_id, collection_id);
ALTER TABLE chunk_terms ADD PRIMARY KEY (chunk_id, tenant_id);
CREATE INDEX chunk_terms_document ON chunk_terms (tenant_id, document_id);
ALTER TABLE chunk_bits ADD PRIMARY KEY (chunk_id, tenant_id);
CREATE INDEX chunk_bits_scope ON chunk_bits (tenant_id, collection_id);
CREATE INDEX chunk_bits_document ON chunk_bits (document_id);
ALTER TABLE keyword_documents ADD PRIMARY KEY (document_id, tenant_id);
CREATE UNIQUE INDEX keyword_documents_passages ON keyword_documents (collection_id, first_passage, tenant_id);
ALTER TABLE keyword_blocks ADD PRIMARY KEY (segment_id, first_term, tenant_id);
ALTER TABLE meaning_bits ADD PRIMARY KEY (chunk_id, tenant_id);
-- Ids are drawn at random, so that the first of a language are a sample of its passages.
CREATE INDEX meaning_bits_scope ON meaning_bits (tenant_id, collection_id, language, chunk_id);
CREATE INDEX meaning_bits_document ON meaning_bits (document_id);

ALTER TABLE document_chunks
    ADD FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE,
    ADD CONSTRAINT document_chunks_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    ADD CONSTRAINT document_chunks_document_id_fkey FOREIGN KEY (document_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE CASCADE;
ALTER TABLE chunk_terms
    ADD FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE,
    ADD FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    ADD FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE;
ALTER TABLE chunk_bits
    ADD FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE,
    ADD FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    ADD FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE;
ALTER TABLE keyword_documents
    ADD FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE,
    ADD CONSTRAINT keyword_documents_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    ADD FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE;
ALTER TABLE keyword_blocks
    ADD FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE,
    ADD CONSTRAINT keyword_blocks_segment_id_fkey FOREIGN KEY (segment_id, tenant_id)
        REFERENCES keyword_segments (id, tenant_id) ON DELETE CASCADE;
ALTER TABLE meaning_bits
    ADD FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE,
    ADD FOREIGN KEY (chunk_id, tenant_id) REFERENCES meaning_vectors (chunk_id, tenant_id) ON DELETE CASCADE,
    ADD FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    ADD FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE;
ALTER TABLE meaning_vectors ADD FOREIGN KEY (chunk_id, tenant_id)
    REFERENCES document_chunks (id, tenant_id) ON DELETE CASCADE;
ALTER TABLE spare_vectors ADD CONSTRAINT spare_vectors_chunk_id_fkey FOREIGN KEY (chunk_id, tenant_id)
    REFERENCES document_chunks (id, tenant_id) ON DELETE CASCADE;

-- Triggers as they were; those that look something up name the tenant.

CREATE TRIGGER fill_minimal_chunk BEFORE INSERT ON document_chunks FOR EACH ROW
    WHEN (NEW.collection_id IS NULL) EXECUTE FUNCTION fill_minimal_chunk();
CREATE TRIGGER renew_bits AFTER UPDATE OF embedding, embedding_model ON document_chunks
    FOR EACH ROW EXECUTE FUNCTION renew_bits();
CREATE TRIGGER forget_meaning AFTER UPDATE OF content ON document_chunks
    FOR EACH ROW WHEN (OLD.content IS DISTINCT FROM NEW.content) EXECUTE FUNCTION forget_meaning();
CREATE TRIGGER count_changed AFTER UPDATE ON document_chunks
    FOR EACH STATEMENT EXECUTE FUNCTION count_change();
CREATE TRIGGER keywords_added AFTER INSERT ON keyword_documents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keywords_added();
CREATE TRIGGER keywords_removed AFTER DELETE ON keyword_documents
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keywords_removed();

CREATE OR REPLACE FUNCTION public.forget_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.keyword_documents WHERE tenant_id = OLD.tenant_id AND document_id = OLD.id;
    DELETE FROM public.chunk_terms WHERE tenant_id = OLD.tenant_id AND document_id = OLD.id;
    DELETE FROM public.chunk_bits WHERE tenant_id = OLD.tenant_id AND document_id = OLD.id;
    RETURN OLD;
END
$$;

CREATE OR REPLACE FUNCTION public.renew_bits() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.chunk_bits WHERE tenant_id = NEW.tenant_id AND chunk_id = NEW.id;
    IF NEW.embedding IS NOT NULL AND NEW.embedding_model NOT LIKE 'builtin/%'
       AND EXISTS (SELECT FROM public.keyword_documents k
                   WHERE k.tenant_id = NEW.tenant_id AND k.document_id = NEW.document_id) THEN
        INSERT INTO public.chunk_bits (chunk_id, tenant_id, collection_id, document_id, embedding_model, bits)
        VALUES (NEW.id, NEW.tenant_id, NEW.collection_id, NEW.document_id, NEW.embedding_model,
                extensions.binary_quantize(NEW.embedding));
    END IF;
    RETURN NULL;
END
$$;

-- A collection's own index is made on the part that its tenant is in: on all sixteen at once it could not be made while
-- people ask. Those that were there went with the old table; their rows stay, and the search scans until each is made again.

CREATE FUNCTION public.rag_partition_of(tenant text) RETURNS regclass
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT i.inhrelid::regclass
    FROM generate_series(0, 15) AS remainder
    JOIN pg_class c ON c.relname = 'document_chunks_' || lpad(remainder::text, 2, '0')
    JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'public.document_chunks'::regclass
    WHERE satisfies_hash_partition('public.document_chunks'::regclass, 16, remainder, tenant)
$$;
COMMENT ON FUNCTION public.rag_partition_of(text) IS 'The part of document_chunks that holds a tenant''s chunks.';

CREATE FUNCTION public.rag_vector_index(collection uuid) RETURNS oid
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.indexrelid FROM pg_class c
    JOIN pg_index x ON x.indexrelid = c.oid
    JOIN pg_inherits i ON i.inhrelid = x.indrelid AND i.inhparent = 'public.document_chunks'::regclass
    WHERE c.relname = 'document_chunks_near_' || replace(collection::text, '-', '')
$$;
COMMENT ON FUNCTION public.rag_vector_index(uuid) IS 'A collection''s own index of vectors, finished or not; null without one.';

CREATE OR REPLACE FUNCTION public.rag_has_vector_index(collection uuid) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = public.rag_vector_index(collection) AND indisvalid)
$$;

CREATE OR REPLACE FUNCTION public.rag_drop_unused_indexes() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    unused name;
    dropped integer := 0;
BEGIN
    -- To a reader who may not see all collections, the indexes of others look unused.
    IF public.rag_tenant() IS NOT NULL AND NOT public.rag_reads_all() THEN
        RETURN 0;
    END IF;
    FOR unused IN
        SELECT c.relname FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
        JOIN pg_inherits i ON i.inhrelid = x.indrelid AND i.inhparent = 'public.document_chunks'::regclass
        WHERE c.relname ~ '^document_chunks_near_[0-9a-f]{32}$'
          AND NOT EXISTS (SELECT FROM public.vector_indexes v
                          WHERE 'document_chunks_near_' || replace(v.collection_id::text, '-', '') = c.relname)
    LOOP
        BEGIN
            EXECUTE format('DROP INDEX rag_partitions.%I', unused);
            dropped := dropped + 1;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    RETURN dropped;
END
$$;

-- Row-level security and rights as they were.

DO $$
DECLARE
    t text;
    part regclass;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'document_chunks', 'chunk_terms', 'chunk_bits', 'keyword_documents', 'keyword_blocks', 'meaning_bits'
    ] LOOP
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                       'OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
        FOR part IN SELECT relid FROM pg_partition_tree(t::regclass) LOOP
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
        END LOOP;
    END LOOP;
    -- People who signed in at Supabase: rag_close_rest_api makes this policy once only, with those of two other tables.
    IF EXISTS (SELECT FROM pg_policies WHERE schemaname = 'public' AND tablename = 'documents' AND policyname = 'claimed') THEN
        CREATE POLICY claimed ON document_chunks FOR SELECT TO authenticated
            USING (tenant_id = (SELECT rag_claimed_tenant())
                   AND EXISTS (SELECT FROM documents d WHERE d.id = document_id AND d.status = 'completed'));
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_reader') THEN
        GRANT SELECT ON document_chunks TO rag_reader;
    END IF;
END
$$;
GRANT SELECT, INSERT, UPDATE, DELETE ON document_chunks TO rag_app;
GRANT SELECT, INSERT, DELETE ON chunk_terms, chunk_bits, keyword_documents, keyword_blocks TO rag_app;
GRANT SELECT, INSERT ON meaning_bits TO rag_app;

ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
ALTER TABLE collections FORCE ROW LEVEL SECURITY;
ALTER TABLE documents FORCE ROW LEVEL SECURITY;
ALTER TABLE keyword_segments FORCE ROW LEVEL SECURITY;
ALTER TABLE meaning_vectors FORCE ROW LEVEL SECURITY;
ALTER TABLE spare_vectors FORCE ROW LEVEL SECURITY;

-- What the planner knows of the rows went with the old tables.
ANALYZE document_chunks, chunk_terms, chunk_bits, keyword_documents, keyword_blocks, meaning_bits;

SELECT rag_close_rest_api();
