-- Versions of documents, embedding again beside the old vectors, paid calls that survive a kill, files removed for sure.

-- A version is a row of `documents` with its own pages, chunks and keywords; at most one of a document's versions is
-- completed, and only completed rows are searched. Publishing the next one is a change of two states in one transaction.
ALTER TABLE documents
    -- The first version's id: what all versions of one document share.
    ADD COLUMN original_id uuid,
    ADD COLUMN version integer NOT NULL DEFAULT 1 CHECK (version > 0),
    -- When it was last asked for, by upload, by hand or by being restored: of two at work the later one wins.
    ADD COLUMN requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN published_at timestamptz,
    ADD COLUMN superseded_at timestamptz,
    -- Steps asked for by hand that are done while the document goes on answering: tag.
    ADD COLUMN pending_steps text[] NOT NULL DEFAULT '{}',
    -- How often work began without an orderly end since it last came further; too often, and it is quarantined.
    ADD COLUMN starts integer NOT NULL DEFAULT 0,
    -- Paid calls sent again after a kill: a provider without idempotency keys may have billed each of them twice.
    ADD COLUMN repeated_calls integer NOT NULL DEFAULT 0;

-- The owner is under row-level security as well.
ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;
UPDATE documents
SET original_id = id, requested_at = created_at, published_at = CASE WHEN status = 'completed' THEN updated_at END;
ALTER TABLE documents FORCE ROW LEVEL SECURITY;
ALTER TABLE documents ALTER COLUMN original_id SET NOT NULL;

CREATE FUNCTION name_first_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.original_id := coalesce(NEW.original_id, NEW.id);
    RETURN NEW;
END
$$;
CREATE TRIGGER name_first_version BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION name_first_version();

ALTER TABLE documents DROP CONSTRAINT documents_status_check;
ALTER TABLE documents ADD CONSTRAINT documents_status_check
    CHECK (status IN ('reading', 'estimated', 'processing', 'completed', 'needs_ocr', 'failed', 'superseded'));
-- The same bytes again are a version only when they are processed in another way.
ALTER TABLE documents DROP CONSTRAINT documents_tenant_id_collection_id_sha256_key;
CREATE UNIQUE INDEX documents_content ON documents (tenant_id, collection_id, sha256, version);
CREATE UNIQUE INDEX documents_current ON documents (original_id) WHERE status = 'completed';
CREATE INDEX documents_versions ON documents (original_id, version);
CREATE INDEX documents_file_path ON documents (tenant_id, file_path);

CREATE VIEW document_versions WITH (security_invoker = true) AS
SELECT original_id, version, id AS document_id, tenant_id, collection_id, title, file_name, sha256, status,
       chunking_method, chunk_count, page_count, created_at, published_at, superseded_at
FROM documents;
GRANT SELECT ON document_versions TO rag_app;

-- Written before a paid call, removed with its result: what is left after a kill was perhaps answered and not stored.
-- The id goes to the provider as the call's idempotency key. Documents are named without a reference: a call outlives them.
CREATE TABLE paid_calls (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- The document, or the embedding-again, that the call is made for.
    owner_id uuid NOT NULL,
    operation text NOT NULL CHECK (operation IN ('embedding', 'tagging', 'ocr')),
    digest text NOT NULL,
    sent integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, owner_id, operation, digest)
);

-- Originals of documents that are gone: removed by a job that tries until it works.
CREATE TABLE file_removals (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    file_path text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    last_error text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, file_path)
);

-- Embedding a collection again with another model: estimated, running beside the old vectors, switched.
CREATE TABLE reembeddings (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    from_model text NOT NULL,
    to_model text NOT NULL,
    status text NOT NULL DEFAULT 'estimated'
        CHECK (status IN ('estimated', 'running', 'failed', 'switched', 'cancelled')),
    chunks_done integer NOT NULL DEFAULT 0,
    chunks_total integer NOT NULL DEFAULT 0,
    estimated_tokens bigint NOT NULL DEFAULT 0,
    -- Null: no price is known.
    estimated_cost numeric(14, 8),
    message text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    switched_at timestamptz,
    -- When the vectors of from_model were removed; until then it can be undone.
    cleaned_at timestamptz
);
CREATE UNIQUE INDEX reembeddings_one_at_a_time ON reembeddings (collection_id)
    WHERE status IN ('estimated', 'running', 'failed');
CREATE INDEX ON reembeddings (tenant_id, collection_id);

-- Vectors of a model that is not, or no longer, the collection's. Searches never look here.
CREATE TABLE spare_vectors (
    chunk_id uuid NOT NULL REFERENCES document_chunks ON DELETE CASCADE,
    embedding_model text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    embedding extensions.halfvec NOT NULL,
    PRIMARY KEY (chunk_id, embedding_model)
);
ALTER TABLE spare_vectors ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX ON spare_vectors (tenant_id, collection_id, embedding_model);

-- A collection that is deleted takes its counts with it: where it is gone already, nothing is subtracted. (Changing a row
-- of its totals for a second document would be refused, for the row would name a collection that is not there.)
CREATE OR REPLACE FUNCTION uncount_keywords() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    PERFORM lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;

    UPDATE keyword_totals AS k SET chunks = k.chunks - gone.chunks, tokens = k.tokens - gone.tokens
    FROM (SELECT tenant_id, collection_id, language, count(*) AS chunks, sum(length) AS tokens
          FROM changed GROUP BY tenant_id, collection_id, language) AS gone
    WHERE (k.tenant_id, k.collection_id, k.language) = (gone.tenant_id, gone.collection_id, gone.language)
      AND EXISTS (SELECT FROM collections c WHERE c.id = gone.collection_id);

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

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['paid_calls', 'file_removals', 'reembeddings', 'spare_vectors']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO rag_app', t);
    END LOOP;
END
$$;
