-- What is searched: keywords, vectors, and what they mean.

-- Keywords

-- The terms of a passage in their order, four bytes each: they refine the order of the best hits without analysing
-- their texts again.
CREATE TABLE chunk_terms (
    chunk_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    terms bytea NOT NULL,
    PRIMARY KEY (chunk_id, tenant_id),
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
ALTER TABLE chunk_terms ALTER COLUMN terms SET STORAGE EXTERNAL;
CREATE INDEX chunk_terms_document ON chunk_terms (tenant_id, document_id);

-- Postings are packed: a search reads the postings of its own terms instead of every passage, and counts the passages of a
-- term by reading them, so that no counter changes when a document comes or goes.

-- A document in the keyword index. Its passages have consecutive numbers, given out by the collection.
CREATE TABLE keyword_documents (
    document_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    -- Of the analyser: ISO 639-1.
    language text NOT NULL,
    first_passage integer NOT NULL,
    -- Terms in all its passages.
    tokens bigint NOT NULL,
    -- In the order of their numbers.
    chunk_ids uuid[] NOT NULL,
    PRIMARY KEY (document_id, tenant_id),
    CONSTRAINT keyword_documents_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
CREATE UNIQUE INDEX keyword_documents_passages ON keyword_documents (collection_id, first_passage, tenant_id);

-- How many passages and terms a collection's index holds, by the language they were analysed in.
CREATE TABLE keyword_totals (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    chunks bigint NOT NULL,
    tokens bigint NOT NULL,
    -- Which analysers a collection's documents were indexed with is part of the totals.
    language text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, collection_id, language),
    CONSTRAINT keyword_totals_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);

-- The next number of a passage. Numbers are never used twice.
CREATE TABLE keyword_numbers (
    collection_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    next_passage integer NOT NULL,
    CONSTRAINT keyword_numbers_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);

-- A segment holds all postings of one or more documents and never changes: segments of like size are written together
-- into a larger one. Its passages lie between the two numbers.
CREATE TABLE keyword_segments (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    first_passage integer NOT NULL,
    last_passage integer NOT NULL,
    postings bigint NOT NULL,
    CONSTRAINT keyword_segments_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT keyword_segments_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX keyword_segments_scope ON keyword_segments (tenant_id, collection_id);

-- The terms of a segment in their order, as many to a block as fill about a quarter of a page; a term is in one block
-- only, whatever its size. Integers of four bytes, highest byte first: how many terms; the terms; where each one's
-- postings end; the postings, each the number of a passage and its length * 65536 + the term's frequency in it.
CREATE TABLE keyword_blocks (
    segment_id bigint NOT NULL,
    first_term integer NOT NULL,
    collection_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    data bytea NOT NULL,
    PRIMARY KEY (segment_id, first_term, tenant_id),
    CONSTRAINT keyword_blocks_segment_id_fkey FOREIGN KEY (segment_id, tenant_id)
        REFERENCES keyword_segments (id, tenant_id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
ALTER TABLE keyword_blocks ALTER COLUMN data SET STORAGE EXTERNAL;

-- Passages of removed documents whose postings are still in a segment. Rewriting the segment leaves them out and
-- removes the row.
CREATE TABLE keyword_tombstones (
    collection_id uuid NOT NULL,
    first_passage integer NOT NULL,
    passages integer NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    PRIMARY KEY (collection_id, first_passage),
    CONSTRAINT keyword_tombstones_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);

-- Transactions that change a collection's counts wait for each other; nobody deadlocks.
CREATE FUNCTION public.lock_keywords(p_tenant_id text, p_collection_id uuid) RETURNS void LANGUAGE sql
    RETURN pg_catalog.pg_advisory_xact_lock(
        pg_catalog.hashtextextended('keywords ' || p_tenant_id || ' ' || p_collection_id::text, 0));

CREATE FUNCTION public.keywords_added() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;
    INSERT INTO public.keyword_totals AS k (tenant_id, collection_id, language, chunks, tokens)
    SELECT tenant_id, collection_id, language, sum(cardinality(chunk_ids)), sum(tokens)
    FROM changed GROUP BY tenant_id, collection_id, language
    ON CONFLICT (tenant_id, collection_id, language)
        DO UPDATE SET chunks = k.chunks + excluded.chunks, tokens = k.tokens + excluded.tokens;
    RETURN NULL;
END
$$;
CREATE TRIGGER keywords_added AFTER INSERT ON keyword_documents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keywords_added();

-- A collection that is deleted takes its counts with it: where it is gone already, nothing is noted.
CREATE FUNCTION public.keywords_removed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;
    UPDATE public.keyword_totals AS k SET chunks = k.chunks - gone.chunks, tokens = k.tokens - gone.tokens
    FROM (SELECT tenant_id, collection_id, language, sum(cardinality(chunk_ids)) AS chunks, sum(tokens) AS tokens
          FROM changed GROUP BY tenant_id, collection_id, language) AS gone
    WHERE (k.tenant_id, k.collection_id, k.language) = (gone.tenant_id, gone.collection_id, gone.language)
      AND EXISTS (SELECT FROM public.collections c WHERE c.id = gone.collection_id);
    INSERT INTO public.keyword_tombstones (tenant_id, collection_id, first_passage, passages)
    SELECT tenant_id, collection_id, first_passage, cardinality(chunk_ids)
    FROM changed
    WHERE tokens > 0 AND EXISTS (SELECT FROM public.collections c WHERE c.id = changed.collection_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER keywords_removed AFTER DELETE ON keyword_documents
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keywords_removed();

-- Vectors

-- The sign of each dimension, of published passages and of embedders whose vectors are dense: 16 times smaller than the
-- vectors, so that a collection too large for an exact scan is scanned here, and the nearest 400 are compared exactly.
CREATE TABLE chunk_bits (
    chunk_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    embedding_model text NOT NULL,
    bits bit varying NOT NULL,
    PRIMARY KEY (chunk_id, tenant_id),
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
-- With every text short and in the row, no second table is needed for what does not fit.
ALTER TABLE chunk_bits ALTER tenant_id SET STORAGE PLAIN, ALTER embedding_model SET STORAGE PLAIN, ALTER bits SET STORAGE PLAIN;
CREATE INDEX chunk_bits_scope ON chunk_bits (tenant_id, collection_id);
CREATE INDEX chunk_bits_document ON chunk_bits (document_id);

-- A chunk embedded again must not keep the bits of its old vector.
CREATE FUNCTION public.renew_bits() RETURNS trigger
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
CREATE TRIGGER renew_bits AFTER UPDATE OF embedding, embedding_model ON document_chunks
    FOR EACH ROW EXECUTE FUNCTION renew_bits();

-- How far a passage may be from a question by its bits to be among the nearest so many: as far as the last of so many
-- among the first few thousand that the scope has, for the nearest of all are no further. Infinitely far where there are
-- not so many. It is a function because a limit within a search's own statement would keep it from parallel workers.
-- Row-level security holds: it runs as its caller.
CREATE FUNCTION public.rag_furthest_bits(
    tenant text, collections uuid[], model text, asked bit, wanted integer, looked_at integer)
    RETURNS double precision
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = public, extensions, pg_temp AS $$
BEGIN
    RETURN coalesce((
        SELECT distance
        FROM (
            SELECT b.bits <~> asked AS distance FROM chunk_bits b
            WHERE b.tenant_id = tenant AND b.collection_id = ANY (collections) AND b.embedding_model = model
              AND b.document_id NOT IN (
                  SELECT d.id FROM documents d
                  WHERE d.tenant_id = tenant AND d.collection_id = ANY (collections) AND d.status <> 'completed')
            LIMIT looked_at
        ) AS first
        ORDER BY distance OFFSET wanted - 1 LIMIT 1
    ), 'Infinity');
END
$$;

-- What is searched of a document goes with it, each kind in one statement.
CREATE FUNCTION public.forget_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.keyword_documents WHERE tenant_id = OLD.tenant_id AND document_id = OLD.id;
    DELETE FROM public.chunk_terms WHERE tenant_id = OLD.tenant_id AND document_id = OLD.id;
    DELETE FROM public.chunk_bits WHERE tenant_id = OLD.tenant_id AND document_id = OLD.id;
    RETURN OLD;
END
$$;
CREATE TRIGGER forget_document BEFORE DELETE ON documents FOR EACH ROW EXECUTE FUNCTION forget_document();

-- Vectors of a model that is not, or no longer, the collection's. Searches never look here.
CREATE TABLE spare_vectors (
    chunk_id uuid NOT NULL,
    embedding_model text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    embedding extensions.halfvec NOT NULL,
    PRIMARY KEY (chunk_id, embedding_model),
    CONSTRAINT spare_vectors_chunk_id_fkey FOREIGN KEY (chunk_id, tenant_id)
        REFERENCES document_chunks (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT spare_vectors_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE spare_vectors ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX ON spare_vectors (tenant_id, collection_id, embedding_model);

-- An approximate index of one collection's vectors, made by command for collections too large to be scanned. Its row says
-- what it was measured at; the search uses it only where that says so. The index itself is
-- document_chunks_near_<the collection's id>, a partial one on the part of document_chunks that holds the tenant: on all
-- sixteen at once it could not be made while people ask.
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

-- Whether a collection's index is there and finished: one whose making was interrupted is neither read nor complete.
CREATE FUNCTION public.rag_has_vector_index(collection uuid) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = public.rag_vector_index(collection) AND indisvalid)
$$;

-- The nearest passages of one collection by its index, as far as `breadth` looks, and at no fewer than `neighbours` where
-- that is a number of passages. The statement is put together because a partial index is found by constants only: two ids,
-- and the model's name from the row. Row-level security holds: it runs as whoever calls. Sorting is off, so that the planner
-- takes the index, which was measured to be better; iterative scans go on where passages of unpublished documents are in the
-- way.
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

-- Vector search for callers of the database itself (PostgREST, RPC). Row-level security is above p_tenant_id: another
-- tenant's id finds nothing.
CREATE FUNCTION public.match_document_chunks(
    query_embedding extensions.vector(1536),
    p_tenant_id text,
    match_threshold float DEFAULT 0.7,
    match_count int DEFAULT 5
)
RETURNS TABLE (id uuid, document_id uuid, content text, metadata jsonb, similarity float)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT found.id, found.document_id, found.content, found.metadata, 1 - found.distance
    FROM (
        SELECT dc.id, dc.document_id, dc.content, dc.metadata,
               dc.embedding OPERATOR(extensions.<=>) query_embedding::extensions.halfvec AS distance
        FROM public.document_chunks dc
        JOIN public.documents d ON d.id = dc.document_id AND d.status = 'completed'
        WHERE dc.tenant_id = p_tenant_id
          AND extensions.vector_dims(dc.embedding) = extensions.vector_dims(query_embedding)
        ORDER BY distance
        LIMIT match_count
    ) AS found
    WHERE 1 - found.distance > match_threshold
    ORDER BY found.distance
$$;

-- Meaning

-- Vectors of meaning, made in the background for passages of collections on the built-in embedder, beside its vectors
-- of words. A search uses the ones that exist.
CREATE TABLE meaning_vectors (
    chunk_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    -- Of the document: similarities are compared within one language.
    language text NOT NULL,
    -- Null: the model cannot read this text, and is not asked again.
    embedding extensions.halfvec(384),
    UNIQUE (chunk_id, tenant_id),
    FOREIGN KEY (chunk_id, tenant_id) REFERENCES document_chunks (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
-- In the row and not beside it: reading a scope is reading its pages, ten rows each.
ALTER TABLE meaning_vectors ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX meaning_vectors_scope ON meaning_vectors (tenant_id, collection_id);
CREATE INDEX meaning_vectors_document ON meaning_vectors (document_id);

-- A chunk whose text changes has another meaning.
CREATE FUNCTION public.forget_meaning() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.meaning_vectors WHERE chunk_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_meaning AFTER UPDATE OF content ON document_chunks
    FOR EACH ROW WHEN (OLD.content IS DISTINCT FROM NEW.content) EXECUTE FUNCTION forget_meaning();

-- A chunk holds several things: the meaning of each part is compared where the chunk is a candidate. The chunk's own
-- vector, which finds candidates, is the mean of its parts' vectors.
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

-- Large collections compare passages by meaning in two steps, as chunk_bits does for the vectors of providers: a few bits for
-- each dimension are scanned, and the nearest are compared exactly.

-- Three bits for each of 384 dimensions: whether it is above what is usual of the model, and above that by a little less
-- and a little more. All of the model's vectors point the same way (length of their mean 0.88), so that bare signs say
-- little: among 1,144 English passages the ten nearest are within the first 80 by signs for 0.70, by signs after taking
-- the mean away for 0.85, and so for 0.96. The mean is that of passages in six languages; it need not be anybody's own.
CREATE FUNCTION public.rag_meaning_bits(embedding extensions.halfvec) RETURNS bit(1152)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT extensions.binary_quantize(usual.above OPERATOR(extensions.||) (usual.above OPERATOR(extensions.-) usual.step)
               OPERATOR(extensions.||) (usual.above OPERATOR(extensions.+) usual.step))::bit(1152)
    FROM (SELECT embedding OPERATOR(extensions.-) (
        '[.046,-.024,-.042,-.056,.067,-.058,.014,.042,.056,.008,.046,.014,.057,-.019,-.062,.041,.057,-.031,-.031,-.047,'
        '.022,-.002,-.045,.049,.054,.052,-.029,.028,.048,-.053,-.054,-.053,.033,-.062,.066,.028,-.052,-.045,.046,-.055,'
        '-.008,.026,.036,.062,.031,.055,-.032,.037,-.035,-.030,-.017,.055,.021,.040,.032,-.060,-.055,-.054,-.061,.052,'
        '.045,-.004,.019,.025,.070,.050,.040,.042,-.037,-.029,-.045,.055,.004,-.029,.014,.021,.034,-.038,.027,-.038,'
        '-.056,-.040,-.032,.030,-.051,.064,.054,-.056,.059,-.009,.054,.035,-.054,-.046,-.060,-.058,-.027,.047,.053,-.036,'
        '.061,-.054,.030,-.055,-.044,.036,.019,-.061,.051,-.057,-.048,.039,.047,.048,-.053,-.031,.003,-.047,.033,-.040,'
        '.051,-.030,-.052,-.058,-.047,-.040,.039,.030,.017,.002,.039,.027,.009,.040,.041,.069,-.066,.007,-.023,-.020,'
        '-.052,.030,-.045,.056,.040,.053,.066,-.034,.065,-.050,.028,-.020,.056,.033,.045,-.025,-.040,-.040,.051,.055,'
        '-.038,-.059,-.054,-.039,-.056,-.030,.035,.055,-.048,-.040,-.026,.054,-.032,.041,-.003,.069,-.047,.020,.077,.041,'
        '-.024,-.026,-.061,-.046,-.062,-.036,-.044,.022,.016,-.024,.007,.039,-.044,-.062,-.038,.022,-.051,.038,.044,.040,'
        '.004,-.032,.044,.032,.036,-.002,-.053,.047,-.048,.043,.044,-.067,-.045,.053,-.040,-.020,-.009,.047,-.056,.032,'
        '.033,-.023,.045,-.097,-.035,.043,.040,-.028,-.041,.045,-.055,-.032,-.049,-.068,-.047,-.071,-.017,.047,.028,'
        '-.065,-.028,-.043,.031,-.072,.053,-.035,-.026,.036,-.019,.035,.043,-.063,-.048,-.062,-.041,.045,.061,.073,-.051,'
        '.030,.013,-.029,.097,.044,.046,.020,-.039,-.019,-.057,-.013,-.055,.015,.045,-.031,-.036,-.038,.027,.073,-.038,'
        '-.038,.049,.033,.049,.050,.036,-.019,-.029,.048,-.037,-.028,-.022,-.040,.054,-.052,.068,.024,.002,.074,-.044,'
        '.035,-.007,-.047,.025,.030,-.076,.030,-.001,.006,.025,.038,.057,.036,-.044,-.022,.042,.054,-.002,.049,-.060,'
        '-.062,-.047,-.051,-.020,-.053,.041,.054,-.046,-.032,.046,.013,.029,-.040,-.043,.051,-.051,-.040,-.039,.052,'
        '-.045,-.050,.037,.064,-.048,.048,-.025,-.064,.040,-.036,-.050,.022,.041,-.089,.018,.045,-.034,.038,-.027,-.031,'
        '.059,.039,-.062,-.035,.042,.046,.055,.032,-.012,-.016,.031,-.062,.053,.047,-.049,.015,-.004,-.043,-.042,.063,'
        '-.047,-.065,.060,.067,.040,.048]'
        )::extensions.halfvec AS above,
        pg_catalog.array_fill(0.0275::real, ARRAY[384])::extensions.halfvec AS step) AS usual
$$;
COMMENT ON FUNCTION rag_meaning_bits(extensions.halfvec) IS 'What is scanned of a vector of meaning in large collections.';

CREATE TABLE meaning_bits (
    chunk_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    language text NOT NULL,
    bits bit(1152) NOT NULL,
    PRIMARY KEY (chunk_id, tenant_id),
    FOREIGN KEY (chunk_id, tenant_id) REFERENCES meaning_vectors (chunk_id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
ALTER TABLE meaning_bits ALTER tenant_id SET STORAGE PLAIN, ALTER language SET STORAGE PLAIN, ALTER bits SET STORAGE PLAIN;
-- Ids are drawn at random, so that the first of a language are a sample of its passages.
CREATE INDEX meaning_bits_scope ON meaning_bits (tenant_id, collection_id, language, chunk_id);
CREATE INDEX meaning_bits_document ON meaning_bits (document_id);

-- The sixteen parts of what a search reads
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'document_chunks', 'chunk_terms', 'chunk_bits', 'keyword_documents', 'keyword_blocks', 'meaning_bits'
    ] LOOP
        FOR part IN 0..15 LOOP
            EXECUTE format('CREATE TABLE rag_partitions.%I PARTITION OF %I FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
                           format('%s_%s', t, lpad(part::text, 2, '0')), t, part);
        END LOOP;
    END LOOP;
END
$$;
