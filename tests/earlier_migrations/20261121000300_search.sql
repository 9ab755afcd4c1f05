-- Search at size: nothing that is scanned lies outside its row, deleting is cheap, big collections have a bit per
-- dimension to scan first.

-- Rows with a vector are longer than 2 KB, so Postgres moves every other value of 24 bytes and more out of them. The
-- model's name, which the scan compares, would be read from TOAST for each row. (Rows written before stay as they are.)
ALTER TABLE document_chunks ALTER COLUMN embedding_model SET STORAGE PLAIN;
ALTER TABLE document_chunks ALTER COLUMN tenant_id SET STORAGE PLAIN;

-- A scope's documents that must not be found yet are few: read without a scan.
CREATE INDEX documents_unfinished ON documents (tenant_id, collection_id) WHERE status <> 'completed';

-- Keywords belong to their document: one deletion for all its passages instead of one for each. Columns of fixed length
-- come first: a scan finds them without reading the others.
ALTER TABLE chunk_keywords RENAME TO earlier_keywords;
ALTER INDEX chunk_keywords_pkey RENAME TO earlier_keywords_pkey;
ALTER INDEX chunk_keywords_scope RENAME TO earlier_keywords_scope;
CREATE TABLE chunk_keywords (
    chunk_id uuid PRIMARY KEY,
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    document_id uuid NOT NULL,
    length integer NOT NULL,
    average_length real NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Of the analyser: ISO 639-1.
    language text NOT NULL DEFAULT '',
    weights extensions.sparsevec NOT NULL
);
ALTER TABLE chunk_keywords ALTER COLUMN tenant_id SET STORAGE PLAIN;
ALTER TABLE chunk_keywords ALTER COLUMN language SET STORAGE PLAIN;
ALTER TABLE chunk_keywords ALTER COLUMN weights SET STORAGE MAIN;
CREATE INDEX chunk_keywords_scope ON chunk_keywords (tenant_id, collection_id);
CREATE INDEX chunk_keywords_document ON chunk_keywords (document_id);

-- The terms of a passage in their order, four bytes each: what the order of the best is refined by, without analysing
-- their texts again. Beside chunk_keywords, so that its scan stays narrow.
CREATE TABLE chunk_terms (
    chunk_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    terms bytea NOT NULL
);
ALTER TABLE chunk_terms ALTER COLUMN terms SET STORAGE EXTERNAL;
CREATE INDEX chunk_terms_document ON chunk_terms (document_id);
CREATE INDEX chunk_terms_tenant ON chunk_terms (tenant_id);

-- The sign of each dimension, of published passages and of embedders whose vectors are dense: 16 times smaller than the
-- vectors, so that a collection too large for an exact scan is scanned here, and the nearest 400 are compared exactly.
CREATE TABLE chunk_bits (
    chunk_id uuid PRIMARY KEY,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    embedding_model text NOT NULL,
    bits bit varying NOT NULL
);
ALTER TABLE chunk_bits ALTER COLUMN bits SET STORAGE PLAIN;
CREATE INDEX chunk_bits_scope ON chunk_bits (tenant_id, collection_id);
CREATE INDEX chunk_bits_document ON chunk_bits (document_id);

-- Terms of documents taken away, not yet subtracted from keyword_terms: a row here is cheaper than a thousand updates.
-- The search subtracts them; when there are 32, whoever changes the collection next folds them in.
CREATE TABLE keyword_removals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    terms integer[] NOT NULL,
    chunks integer[] NOT NULL
);
CREATE INDEX ON keyword_removals (tenant_id, collection_id);
-- Room in each page, so that a changed count stays there and no index is touched.
ALTER TABLE keyword_terms SET (fillfactor = 70);

-- Which analysers a collection's documents were indexed with is part of the totals.
ALTER TABLE keyword_totals ADD COLUMN language text NOT NULL DEFAULT '';
ALTER TABLE keyword_totals DROP CONSTRAINT keyword_totals_pkey;
ALTER TABLE keyword_totals ADD PRIMARY KEY (tenant_id, collection_id, language);

-- Whoever changes a collection's counts waits for the others until its transaction ends; nobody deadlocks.
CREATE FUNCTION lock_keywords(p_tenant_id text, p_collection_id uuid) RETURNS void
    LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('keywords ' || p_tenant_id || ' ' || p_collection_id, 0))
$$;

CREATE OR REPLACE FUNCTION count_keywords() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    PERFORM lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;

    INSERT INTO keyword_totals AS k (tenant_id, collection_id, language, chunks, tokens)
    SELECT tenant_id, collection_id, language, count(*), sum(length)
    FROM changed GROUP BY tenant_id, collection_id, language
    ON CONFLICT (tenant_id, collection_id, language)
        DO UPDATE SET chunks = k.chunks + excluded.chunks, tokens = k.tokens + excluded.tokens;

    PERFORM fold_keyword_removals(tenant_id, collection_id, 32)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed) AS scopes;

    INSERT INTO keyword_terms AS k (tenant_id, collection_id, term, chunks)
    SELECT tenant_id, collection_id, term, count(*)
    FROM changed, sparse_indices(weights) AS term
    GROUP BY tenant_id, collection_id, term
    ON CONFLICT (tenant_id, collection_id, term) DO UPDATE SET chunks = k.chunks + excluded.chunks;
    RETURN NULL;
END
$$;

CREATE FUNCTION uncount_keywords() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    PERFORM lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;

    UPDATE keyword_totals AS k SET chunks = k.chunks - gone.chunks, tokens = k.tokens - gone.tokens
    FROM (SELECT tenant_id, collection_id, language, count(*) AS chunks, sum(length) AS tokens
          FROM changed GROUP BY tenant_id, collection_id, language) AS gone
    WHERE (k.tenant_id, k.collection_id, k.language) = (gone.tenant_id, gone.collection_id, gone.language);

    INSERT INTO keyword_removals (tenant_id, collection_id, terms, chunks)
    SELECT tenant_id, collection_id, array_agg(term), array_agg(chunks)
    FROM (SELECT tenant_id, collection_id, term, count(*)::integer AS chunks
          FROM changed, sparse_indices(weights) AS term
          WHERE EXISTS (SELECT FROM collections c WHERE c.id = collection_id)
          GROUP BY tenant_id, collection_id, term) AS gone
    GROUP BY tenant_id, collection_id;

    PERFORM fold_keyword_removals(tenant_id, collection_id, 32)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed) AS scopes;
    RETURN NULL;
END
$$;

-- Subtract a collection's removals, if there are enough of them, and sweep the terms that stand nowhere any more.
CREATE FUNCTION fold_keyword_removals(p_tenant_id text, p_collection_id uuid, p_enough integer) RETURNS void
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
DECLARE
    folded integer[];
BEGIN
    IF (SELECT count(*) FROM keyword_removals
        WHERE tenant_id = p_tenant_id AND collection_id = p_collection_id) < p_enough THEN
        RETURN;
    END IF;
    WITH taken AS (
        DELETE FROM keyword_removals
        WHERE tenant_id = p_tenant_id AND collection_id = p_collection_id RETURNING terms, chunks
    ), gone AS (
        SELECT term, sum(n) AS chunks FROM taken, unnest(taken.terms, taken.chunks) AS t (term, n) GROUP BY term
    ), subtracted AS (
        UPDATE keyword_terms AS k SET chunks = k.chunks - gone.chunks FROM gone
        WHERE k.tenant_id = p_tenant_id AND k.collection_id = p_collection_id AND k.term = gone.term
        RETURNING k.term, k.chunks
    )
    SELECT array_agg(term) INTO folded FROM subtracted WHERE chunks <= 0;
    DELETE FROM keyword_terms
    WHERE tenant_id = p_tenant_id AND collection_id = p_collection_id AND term = ANY (folded) AND chunks <= 0;
END
$$;

CREATE TRIGGER count_keywords_added AFTER INSERT ON chunk_keywords
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_keywords();
CREATE TRIGGER count_keywords_removed AFTER DELETE ON chunk_keywords
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION uncount_keywords();

-- What is searched of a document goes with it, each kind in one statement.
CREATE FUNCTION forget_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    DELETE FROM chunk_keywords WHERE document_id = OLD.id;
    DELETE FROM chunk_terms WHERE document_id = OLD.id;
    DELETE FROM chunk_bits WHERE document_id = OLD.id;
    RETURN OLD;
END
$$;
CREATE TRIGGER forget_document BEFORE DELETE ON documents FOR EACH ROW EXECUTE FUNCTION forget_document();

-- A passage embedded anew must not keep the bits of its old vector.
CREATE FUNCTION renew_bits() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    DELETE FROM chunk_bits WHERE chunk_id = NEW.id;
    IF NEW.embedding IS NOT NULL AND NEW.embedding_model NOT LIKE 'builtin/%'
       AND EXISTS (SELECT FROM chunk_keywords k WHERE k.chunk_id = NEW.id) THEN
        INSERT INTO chunk_bits (chunk_id, tenant_id, collection_id, document_id, embedding_model, bits)
        VALUES (NEW.id, NEW.tenant_id, NEW.collection_id, NEW.document_id, NEW.embedding_model,
                binary_quantize(NEW.embedding));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER renew_bits AFTER UPDATE OF embedding, embedding_model ON document_chunks
    FOR EACH ROW EXECUTE FUNCTION renew_bits();

-- The day of a moment kept in a document's metadata, as YYYY-MM-DD: ISO text, or milliseconds since 1970 (0: not set).
CREATE FUNCTION metadata_day(moment jsonb) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE jsonb_typeof(moment)
        WHEN 'number' THEN CASE WHEN moment::numeric > 0
            THEN to_char(to_timestamp(moment::numeric::float8 / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD') END
        WHEN 'string' THEN substring(moment #>> '{}' FROM '^\d{4}-\d{2}-\d{2}')
    END
$$;

-- What was there before. The owner is bound by row-level security too, and no tenant is set here: lifted for the moment.

ALTER TABLE collections NO FORCE ROW LEVEL SECURITY;
ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;
ALTER TABLE document_chunks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE earlier_keywords NO FORCE ROW LEVEL SECURITY;
ALTER TABLE keyword_totals NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chunk_keywords DISABLE TRIGGER count_keywords_added;
INSERT INTO chunk_keywords (chunk_id, collection_id, document_id, length, average_length, tenant_id, language, weights)
SELECT k.chunk_id, k.collection_id, k.document_id, k.length, k.average_length, k.tenant_id,
       lower(split_part(coalesce(nullif(d.language, ''), l.language), '-', 1)), k.weights
FROM earlier_keywords k JOIN documents d ON d.id = k.document_id JOIN collections l ON l.id = d.collection_id;
ALTER TABLE chunk_keywords ENABLE TRIGGER count_keywords_added;
DROP TABLE earlier_keywords;
DELETE FROM keyword_totals;
INSERT INTO keyword_totals (tenant_id, collection_id, language, chunks, tokens)
SELECT tenant_id, collection_id, language, count(*), sum(length)
FROM chunk_keywords GROUP BY tenant_id, collection_id, language;
INSERT INTO chunk_bits (chunk_id, tenant_id, collection_id, document_id, embedding_model, bits)
SELECT c.id, c.tenant_id, c.collection_id, c.document_id, c.embedding_model, binary_quantize(c.embedding)
FROM document_chunks c JOIN chunk_keywords k ON k.chunk_id = c.id
WHERE c.embedding IS NOT NULL AND c.embedding_model NOT LIKE 'builtin/%';

ALTER TABLE collections FORCE ROW LEVEL SECURITY;
ALTER TABLE documents FORCE ROW LEVEL SECURITY;
ALTER TABLE document_chunks FORCE ROW LEVEL SECURITY;
ALTER TABLE keyword_totals FORCE ROW LEVEL SECURITY;

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['chunk_keywords', 'chunk_terms', 'chunk_bits', 'keyword_removals']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO rag_app', t);
    END LOOP;
END
$$;
