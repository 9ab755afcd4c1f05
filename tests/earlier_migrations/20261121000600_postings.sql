-- Keywords as packed postings: a search reads the postings of its own terms instead of every passage, and counts in how
-- many passages a term stands by reading them, so that nothing is counted when a document comes or goes.

-- A document in the keyword index. Its passages have consecutive numbers, given out by the collection.
CREATE TABLE keyword_documents (
    document_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    -- Of the analyser: ISO 639-1.
    language text NOT NULL,
    first_passage integer NOT NULL,
    -- Terms in all its passages.
    tokens bigint NOT NULL,
    -- In the order of their numbers.
    chunk_ids uuid[] NOT NULL
);
CREATE UNIQUE INDEX keyword_documents_passages ON keyword_documents (collection_id, first_passage);

-- The next number of a passage. Numbers are never used twice.
CREATE TABLE keyword_numbers (
    collection_id uuid PRIMARY KEY REFERENCES collections ON DELETE CASCADE,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    next_passage integer NOT NULL
);

-- A segment holds all postings of one or more documents and never changes: segments of like size are written together
-- into a larger one. Its passages lie between the two numbers.
CREATE TABLE keyword_segments (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    first_passage integer NOT NULL,
    last_passage integer NOT NULL,
    postings bigint NOT NULL
);
CREATE INDEX keyword_segments_scope ON keyword_segments (tenant_id, collection_id);

-- The terms of a segment in their order, as many to a block as fill about a quarter of a page; a term is in one block
-- only, whatever its size. Integers of four bytes, highest byte first: how many terms; the terms; where each one's
-- postings end; the postings, each the number of a passage and its length * 65536 + the term's frequency in it.
CREATE TABLE keyword_blocks (
    segment_id bigint NOT NULL REFERENCES keyword_segments ON DELETE CASCADE,
    first_term integer NOT NULL,
    collection_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    data bytea NOT NULL,
    PRIMARY KEY (segment_id, first_term)
);
ALTER TABLE keyword_blocks ALTER COLUMN data SET STORAGE EXTERNAL;

-- Passages of documents taken away whose postings are still in a segment. Whoever writes that segment anew leaves them
-- out and removes the row.
CREATE TABLE keyword_tombstones (
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    first_passage integer NOT NULL,
    passages integer NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    PRIMARY KEY (collection_id, first_passage)
);

DROP TRIGGER count_keywords_added ON chunk_keywords;
DROP TRIGGER count_keywords_removed ON chunk_keywords;
DROP FUNCTION count_keywords();
DROP FUNCTION uncount_keywords();
DROP FUNCTION fold_keyword_removals(text, uuid, integer);

CREATE FUNCTION keywords_added() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    PERFORM lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;
    INSERT INTO keyword_totals AS k (tenant_id, collection_id, language, chunks, tokens)
    SELECT tenant_id, collection_id, language, sum(cardinality(chunk_ids)), sum(tokens)
    FROM changed GROUP BY tenant_id, collection_id, language
    ON CONFLICT (tenant_id, collection_id, language)
        DO UPDATE SET chunks = k.chunks + excluded.chunks, tokens = k.tokens + excluded.tokens;
    RETURN NULL;
END
$$;

-- A collection that is deleted takes its counts with it: where it is gone already, nothing is noted.
CREATE FUNCTION keywords_removed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    PERFORM lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;
    UPDATE keyword_totals AS k SET chunks = k.chunks - gone.chunks, tokens = k.tokens - gone.tokens
    FROM (SELECT tenant_id, collection_id, language, sum(cardinality(chunk_ids)) AS chunks, sum(tokens) AS tokens
          FROM changed GROUP BY tenant_id, collection_id, language) AS gone
    WHERE (k.tenant_id, k.collection_id, k.language) = (gone.tenant_id, gone.collection_id, gone.language)
      AND EXISTS (SELECT FROM collections c WHERE c.id = gone.collection_id);
    INSERT INTO keyword_tombstones (tenant_id, collection_id, first_passage, passages)
    SELECT tenant_id, collection_id, first_passage, cardinality(chunk_ids)
    FROM changed
    WHERE tokens > 0 AND EXISTS (SELECT FROM collections c WHERE c.id = changed.collection_id);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION forget_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    DELETE FROM keyword_documents WHERE document_id = OLD.id;
    DELETE FROM chunk_terms WHERE document_id = OLD.id;
    DELETE FROM chunk_bits WHERE document_id = OLD.id;
    RETURN OLD;
END
$$;

CREATE OR REPLACE FUNCTION renew_bits() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    DELETE FROM chunk_bits WHERE chunk_id = NEW.id;
    IF NEW.embedding IS NOT NULL AND NEW.embedding_model NOT LIKE 'builtin/%'
       AND EXISTS (SELECT FROM keyword_documents k WHERE k.document_id = NEW.document_id) THEN
        INSERT INTO chunk_bits (chunk_id, tenant_id, collection_id, document_id, embedding_model, bits)
        VALUES (NEW.id, NEW.tenant_id, NEW.collection_id, NEW.document_id, NEW.embedding_model,
                binary_quantize(NEW.embedding));
    END IF;
    RETURN NULL;
END
$$;

-- What was there before: frequencies recovered from the weights, at most 512 documents to a segment. The owner is bound
-- by row-level security too, and no tenant is set here: lifted for the moment.

ALTER TABLE collections NO FORCE ROW LEVEL SECURITY;
ALTER TABLE document_chunks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chunk_keywords NO FORCE ROW LEVEL SECURITY;

CREATE TEMPORARY TABLE numbered ON COMMIT DROP AS
SELECT k.chunk_id, k.tenant_id, k.collection_id, k.document_id, k.language, k.length, k.average_length, k.weights,
       (row_number() OVER (PARTITION BY k.collection_id ORDER BY k.document_id, c.chunk_index) - 1)::integer AS passage,
       dense_rank() OVER (ORDER BY k.collection_id, k.document_id) AS document
FROM chunk_keywords k JOIN document_chunks c ON c.id = k.chunk_id;

INSERT INTO keyword_documents (document_id, tenant_id, collection_id, language, first_passage, tokens, chunk_ids)
SELECT document_id, min(tenant_id), collection_id, min(language), min(passage), sum(length),
       array_agg(chunk_id ORDER BY passage)
FROM numbered GROUP BY collection_id, document_id;

INSERT INTO keyword_numbers (collection_id, tenant_id, next_passage)
SELECT collection_id, min(tenant_id), max(passage) + 1 FROM numbered GROUP BY collection_id;

CREATE TEMPORARY TABLE unpacked ON COMMIT DROP AS
SELECT n.tenant_id, n.collection_id, n.document / 512 AS part, n.passage, entry.term,
       least(n.length, 32767) * 65536 + least(32767, greatest(1, round(
           entry.weight * 1.5 * (0.25 + 0.75 * n.length / n.average_length) / greatest(2.5 - entry.weight, 1e-4)
       )))::integer AS counts
FROM numbered n CROSS JOIN LATERAL (
    SELECT split_part(pair, ':', 1)::integer AS term, split_part(pair, ':', 2)::float8 AS weight
    FROM string_to_table(substring(n.weights::text FROM '\{(.+)\}'), ',') AS pair
) AS entry;

ALTER TABLE keyword_segments ADD COLUMN part bigint;
INSERT INTO keyword_segments (tenant_id, collection_id, first_passage, last_passage, postings, part)
SELECT tenant_id, collection_id, min(passage), max(passage), count(*), part
FROM unpacked GROUP BY tenant_id, collection_id, part;

WITH terms AS (
    SELECT tenant_id, collection_id, part, term, count(*)::integer AS postings,
           string_agg(int4send(passage) || int4send(counts), ''::bytea ORDER BY passage) AS records
    FROM unpacked GROUP BY tenant_id, collection_id, part, term
), placed AS (
    SELECT *, (sum(8 + 8 * postings) OVER w - (8 + 8 * postings)) / 1800 AS block
    FROM terms WINDOW w AS (PARTITION BY collection_id, part ORDER BY term)
), ended AS (
    SELECT *, sum(postings) OVER (PARTITION BY collection_id, part, block ORDER BY term)::integer AS until FROM placed
)
INSERT INTO keyword_blocks (segment_id, first_term, collection_id, tenant_id, data)
SELECT s.id, min(e.term), s.collection_id, s.tenant_id,
       int4send(count(*)::integer) || string_agg(int4send(e.term), ''::bytea ORDER BY e.term)
       || string_agg(int4send(e.until), ''::bytea ORDER BY e.term) || string_agg(e.records, ''::bytea ORDER BY e.term)
FROM ended e JOIN keyword_segments s ON s.collection_id = e.collection_id AND s.part = e.part
GROUP BY s.id, s.collection_id, s.tenant_id, e.block;

ALTER TABLE keyword_segments DROP COLUMN part;
ALTER TABLE collections FORCE ROW LEVEL SECURITY;
ALTER TABLE document_chunks FORCE ROW LEVEL SECURITY;
DROP TABLE numbered, unpacked, chunk_keywords, keyword_terms, keyword_removals;
DROP FUNCTION sparse_indices(extensions.sparsevec);

CREATE TRIGGER keywords_added AFTER INSERT ON keyword_documents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keywords_added();
CREATE TRIGGER keywords_removed AFTER DELETE ON keyword_documents
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keywords_removed();

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['keyword_documents', 'keyword_numbers', 'keyword_segments', 'keyword_blocks',
                             'keyword_tombstones']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO rag_app', t);
        -- Where a later migration is there already: it limits readers to their collections, in the tables it found.
        IF to_regproc('rag_reads_all') IS NOT NULL THEN
            EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                           'OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
        END IF;
    END LOOP;
END
$$;
