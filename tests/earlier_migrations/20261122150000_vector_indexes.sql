-- An approximate index of one collection's vectors, made by command for collections too large to be scanned. Its row says
-- what it was measured at; the search uses it only where that says so. The index itself is
-- document_chunks_near_<the collection's id>, a partial one on document_chunks.

CREATE TABLE vector_indexes (
    collection_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    embedding_model text NOT NULL,
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    kind text NOT NULL CHECK (kind IN ('hnsw', 'ivfflat')),
    -- hnsw.ef_search or ivfflat.probes: the least at which the recall was high enough.
    breadth integer NOT NULL DEFAULT 1 CHECK (breadth > 0),
    is_used boolean NOT NULL DEFAULT false,
    -- How many passages the collection had when it was measured.
    passages integer NOT NULL DEFAULT 0,
    measured jsonb NOT NULL DEFAULT '{}',
    built_at timestamptz NOT NULL DEFAULT now(),
    measured_at timestamptz,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON vector_indexes (tenant_id);
ALTER TABLE vector_indexes ENABLE ROW LEVEL SECURITY;
ALTER TABLE vector_indexes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON vector_indexes USING (tenant_id = (SELECT rag_tenant())) WITH CHECK (tenant_id = (SELECT rag_tenant()));
-- Without a tenant only the owner sees rows, and has to see all: it drops the indexes that have none.
CREATE POLICY reader ON vector_indexes AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR (SELECT rag_tenant()) IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
GRANT SELECT, INSERT, UPDATE, DELETE ON vector_indexes TO rag_app;
DO $$
BEGIN
    -- The owner of the tables sees which indexes still belong to a collection, to drop the others.
    EXECUTE format('CREATE POLICY operator ON vector_indexes FOR SELECT TO %I USING (true)', current_user);
END
$$;

-- A collection embedded by another model has no vectors in the index any more.
CREATE FUNCTION public.forget_vector_index() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.vector_indexes WHERE collection_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_vector_index AFTER UPDATE OF embedding_model ON collections FOR EACH ROW
    WHEN (OLD.embedding_model <> NEW.embedding_model) EXECUTE FUNCTION forget_vector_index();

-- Whether a collection's index is there and finished: one whose making was interrupted is neither read nor complete.
CREATE FUNCTION public.rag_has_vector_index(collection uuid) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_index
        WHERE indexrelid = to_regclass('public.document_chunks_near_' || replace(collection::text, '-', ''))
          AND indrelid = 'public.document_chunks'::regclass AND indisvalid)
$$;

-- The nearest passages of one collection by its index, as far as `breadth` looks, and at no fewer than `neighbours` where
-- that is a number of passages. The statement is put together because a
-- partial index is found by constants only: two ids, and the model's name from the row. Row-level security holds: it runs
-- as whoever calls. Sorting is off, so that the planner takes the index, which was measured to be better; iterative
-- scans go on where passages of unpublished documents are in the way.
CREATE FUNCTION public.rag_nearest_by_index(
    tenant text, collection uuid, asked extensions.halfvec, breadth integer, neighbours integer, wanted integer)
    RETURNS TABLE (chunk_id uuid, distance double precision)
    LANGUAGE plpgsql STABLE SET search_path = public, extensions, pg_temp SET enable_sort = off AS $$
DECLARE
    made public.vector_indexes;
BEGIN
    SELECT * INTO made FROM public.vector_indexes v WHERE v.tenant_id = tenant AND v.collection_id = collection;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF made.kind = 'hnsw' THEN
        PERFORM set_config('hnsw.ef_search', least(greatest(breadth, neighbours), 1000)::text, true),
                set_config('hnsw.iterative_scan', 'relaxed_order', true);
    ELSE
        PERFORM set_config('ivfflat.probes', least(breadth, 32768)::text, true),
                set_config('ivfflat.iterative_scan', 'relaxed_order', true);
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT c.id, c.embedding::halfvec(%1$s) <=> $1::halfvec(%1$s) FROM document_chunks c '
        'WHERE c.tenant_id = %2$L AND c.collection_id = %3$L AND c.embedding_model = %4$L AND c.document_id NOT IN '
        '(SELECT d.id FROM documents d WHERE d.tenant_id = %2$L AND d.collection_id = %3$L AND d.status <> ''completed'') '
        'ORDER BY c.embedding::halfvec(%1$s) <=> $1::halfvec(%1$s) LIMIT $2',
        made.dimensions, made.tenant_id, made.collection_id, made.embedding_model) USING asked, wanted;
END
$$;

-- Drop the indexes of collections that are deleted or embedded anew; how many. As the owner, who alone may; one that is
-- being made or that searches keep waiting for is left for the next time.
CREATE FUNCTION public.rag_drop_unused_indexes() RETURNS integer
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
        SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'public.document_chunks'::regclass AND c.relname ~ '^document_chunks_near_[0-9a-f]{32}$'
          AND NOT EXISTS (SELECT FROM public.vector_indexes v
                          WHERE 'document_chunks_near_' || replace(v.collection_id::text, '-', '') = c.relname)
    LOOP
        BEGIN
            EXECUTE format('DROP INDEX public.%I', unused);
            dropped := dropped + 1;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    RETURN dropped;
END
$$;

SELECT rag_close_rest_api();
