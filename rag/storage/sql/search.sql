-- What the search reads and the keyword index writes. Row-level security holds beside every tenant_id here.
-- The tenant is a parameter in place of rag_tenant(), which other files use: that checks the seal of the transaction once
-- more for each scan, and a hybrid search took 1.06 times as long with 200 tenants and 1.11 times with one of 100,000
-- chunks ((SELECT rag_tenant()): 1.02 and 1.06).
-- Large tables are in parts by tenant (document_chunks, chunk_terms, chunk_bits, keyword_documents, keyword_blocks,
-- meaning_bits): a statement names the tenant of each of them, so that one part is read. Found by a parameter or by
-- rag_tenant(), the others are left out as the statement starts; by (SELECT rag_tenant()) or by a join, only as it runs.

-- tenant_changes --
-- Count the changes of what the tenant's people can find; a standby compares it with its own.
SELECT changes FROM tenant_changes WHERE tenant_id = %(tenant_id)s

-- lock_keywords --
-- Lock the keyword index of a collection: one at a time changes it.
SELECT lock_keywords(%(tenant_id)s, %(collection_id)s)

-- delete_keywords --
-- Take documents out of the keyword index; counts and tombstones follow by trigger.
DELETE FROM keyword_documents WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s::uuid[])

-- delete_terms --
-- Take away the terms in order of documents' passages.
DELETE FROM chunk_terms WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s::uuid[])

-- delete_bits --
-- Take documents out of what large collections are scanned by.
DELETE FROM chunk_bits WHERE tenant_id = %(tenant_id)s AND document_id = ANY (%(document_ids)s::uuid[])

-- chunks_to_index --
-- List documents' chunks, document by document, with the text before each and the language of their analyser.
SELECT c.document_id, c.id, CASE WHEN l.overrides ->> 'index_titles' = 'false' THEN '' ELSE d.title END,
       CASE WHEN l.overrides ->> 'index_titles' = 'false' THEN '' ELSE d.folder END,
       CASE WHEN l.overrides ->> 'index_titles' = 'false' THEN '' ELSE c.section END, c.content,
       o.language || CASE WHEN l.overrides ->> 'tokenizer' = 'plain' THEN '+plain'
           WHEN o.language LIKE 'ko%%' AND l.overrides ->> 'korean_analyser' = 'kiwi' THEN '+kiwi' ELSE '' END
FROM document_chunks c
JOIN documents d ON d.id = c.document_id
JOIN collections l ON l.id = c.collection_id
CROSS JOIN LATERAL (SELECT coalesce(nullif(d.language, ''), l.language)) AS o (language)
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s
  AND c.document_id = ANY (%(document_ids)s::uuid[])
ORDER BY array_position(%(document_ids)s::uuid[], c.document_id), c.chunk_index

-- documents_in_folders --
-- List some of a collection's documents that are in a folder, in the order of their ids, and keep their states.
SELECT id FROM documents
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND folder <> '' AND status = 'completed'
  AND (%(after)s::uuid IS NULL OR id > %(after)s::uuid)
ORDER BY id LIMIT %(limit)s
FOR SHARE

-- keyword_total --
-- Count the chunks in a collection's keyword index.
SELECT coalesce(sum(chunks), 0)::bigint
FROM keyword_totals WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- number_passages --
-- Reserve numbers for a document's chunks, and return the first.
INSERT INTO keyword_numbers AS n (tenant_id, collection_id, next_passage)
VALUES (%(tenant_id)s, %(collection_id)s, %(passages)s)
ON CONFLICT (collection_id) DO UPDATE SET next_passage = n.next_passage + excluded.next_passage
RETURNING next_passage - %(passages)s

-- insert_keywords --
-- Add documents to the keyword index; the ids of their chunks come as one list, in the order of the numbers.
INSERT INTO keyword_documents (document_id, tenant_id, collection_id, language, first_passage, tokens, chunk_ids)
SELECT document_id, %(tenant_id)s, %(collection_id)s, language, first_passage, tokens,
       (%(chunk_ids)s::uuid[])[first_passage - %(first_passage)s + 1 : first_passage - %(first_passage)s + passages]
FROM unnest(%(indexed_ids)s::uuid[], %(languages)s::text[], %(first_passages)s::integer[], %(tokens)s::bigint[],
            %(passages)s::integer[]) AS document (document_id, language, first_passage, tokens, passages)

-- insert_segment --
-- Add a segment with its blocks.
WITH segment AS (
    INSERT INTO keyword_segments (tenant_id, collection_id, first_passage, last_passage, postings)
    VALUES (%(tenant_id)s, %(collection_id)s, %(first_passage)s, %(last_passage)s, %(postings)s)
    RETURNING id
)
INSERT INTO keyword_blocks (segment_id, first_term, tenant_id, collection_id, data)
SELECT segment.id, first_term, %(tenant_id)s, %(collection_id)s, data
FROM segment CROSS JOIN unnest(%(first_terms)s::integer[], %(data)s::bytea[]) AS block (first_term, data)

-- segments --
-- List a collection's segments, the oldest chunks first.
SELECT id, first_passage, last_passage, postings FROM keyword_segments
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
ORDER BY first_passage, id

-- take_blocks --
-- Read the blocks of segments that are merged into a new one.
DELETE FROM keyword_blocks WHERE tenant_id = %(tenant_id)s AND segment_id = ANY (%(segment_ids)s::bigint[])
RETURNING data

-- delete_segments --
-- Delete segments whose postings are in another one now.
DELETE FROM keyword_segments WHERE tenant_id = %(tenant_id)s AND id = ANY (%(segment_ids)s::bigint[])

-- removed_passages --
-- List chunks of a collection whose document is gone but whose postings are still there.
SELECT first_passage, passages FROM keyword_tombstones
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- delete_tombstones --
-- Delete the tombstones of chunks whose postings are gone as well.
DELETE FROM keyword_tombstones
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s
  AND first_passage = ANY (%(first_passages)s::integer[])

-- insert_terms --
-- Add the terms of chunks in their order.
INSERT INTO chunk_terms (chunk_id, tenant_id, collection_id, document_id, terms)
SELECT chunk_id, %(tenant_id)s, %(collection_id)s, document_id, terms
FROM unnest(%(chunk_ids)s::uuid[], %(owner_ids)s::uuid[], %(terms)s::bytea[]) AS passages (chunk_id, document_id, terms)

-- insert_bits --
-- Add the signs of documents' vectors, except for embedders that are not dense.
INSERT INTO chunk_bits (chunk_id, tenant_id, collection_id, document_id, embedding_model, bits)
SELECT id, tenant_id, collection_id, document_id, embedding_model, binary_quantize(embedding)
FROM document_chunks
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND document_id = ANY (%(document_ids)s::uuid[])
  AND embedding IS NOT NULL AND embedding_model NOT LIKE 'builtin/%%'

-- search_scope --
-- Count the chunks and terms of each collection of the scope, by the language they were analysed in.
SELECT language, chunks::float8, tokens::float8 FROM keyword_totals
WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[])

-- search_wanted --
-- List documents of the scope that meet the conditions, with the numbers of their chunks. The day of a document is the
-- one written in it, else the day it was added.
SELECT d.id, array_position(%(collection_ids)s::uuid[], d.collection_id) - 1, k.first_passage, cardinality(k.chunk_ids)
FROM documents d JOIN keyword_documents k ON k.document_id = d.id AND k.tenant_id = %(tenant_id)s
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[]) AND d.status = 'completed'
  AND (%(document_ids)s::uuid[] IS NULL OR d.id = ANY (%(document_ids)s))
  AND (%(categories)s::text[] IS NULL OR d.metadata -> 'categories' ?| %(categories)s
       OR d.metadata ->> 'categorySlug' = ANY (%(categories)s))
  AND (%(document_types)s::text[] IS NULL OR d.metadata ->> 'documentType' = ANY (%(document_types)s))
  AND (%(years)s::integer[] IS NULL OR EXISTS (
      SELECT FROM unnest(%(years)s) AS year
      WHERE d.metadata -> 'years' @> to_jsonb(year) OR d.metadata -> 'year' = to_jsonb(year)))
  AND (%(date_from)s::date IS NULL AND %(date_to)s::date IS NULL
       OR coalesce(metadata_day(d.metadata -> 'backdatedAt'), metadata_day(d.metadata -> 'createdAt'),
                   to_char(d.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'))
          BETWEEN coalesce(%(date_from)s::date::text, '') AND coalesce(%(date_to)s::date::text, '9999-12-31'))
  AND (NOT %(important_only)s OR d.metadata -> 'isImportant' = 'true')
  AND (%(metadata)s::jsonb IS NULL OR d.metadata @> %(metadata)s OR EXISTS (
      SELECT FROM document_chunks c
      WHERE c.tenant_id = %(tenant_id)s AND c.document_id = d.id AND NOT EXISTS (
          SELECT FROM jsonb_each(%(metadata)s) AS wanted
          WHERE NOT (c.metadata || jsonb_build_object('chunkIndex', c.chunk_index))
                    @> jsonb_build_object(wanted.key, wanted.value)
            AND NOT d.metadata @> jsonb_build_object(wanted.key, wanted.value))))

-- search_postings --
-- Read the blocks that hold the postings of terms.
SELECT array_position(%(collection_ids)s::uuid[], s.collection_id) - 1, asked.term, block.data
FROM keyword_segments s CROSS JOIN unnest(%(terms)s::integer[]) AS asked (term) CROSS JOIN LATERAL (
    SELECT b.data FROM keyword_blocks b
    WHERE b.tenant_id = %(tenant_id)s AND b.segment_id = s.id AND b.first_term <= asked.term
    ORDER BY b.first_term DESC LIMIT 1
) AS block
WHERE s.tenant_id = %(tenant_id)s AND s.collection_id = ANY (%(collection_ids)s::uuid[])

-- search_removed --
-- List chunks whose postings do not count: their documents are gone or must not be found now.
SELECT array_position(%(collection_ids)s::uuid[], collection_id) - 1, first_passage, passages
FROM keyword_tombstones
WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[])
UNION ALL
SELECT array_position(%(collection_ids)s::uuid[], k.collection_id) - 1, k.first_passage, cardinality(k.chunk_ids)
FROM documents d JOIN keyword_documents k ON k.document_id = d.id AND k.tenant_id = %(tenant_id)s
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[]) AND d.status <> 'completed'

-- search_by_vector --
-- Find the nearest chunks by cosine, exactly: of the whole scope, or of the wanted documents, by their index. The
-- distance is computed once, in the subquery; "+ 0" keeps the planner from an approximate index, and the threshold
-- comes after the limit.
SELECT chunk_id, 1 - distance
FROM (
    SELECT c.id AS chunk_id, (c.embedding <=> %(vector)s::halfvec) + 0 AS distance
    FROM (
        SELECT id, embedding, embedding_model FROM document_chunks
        WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[])
          AND %(wanted)s::uuid[] IS NULL AND document_id NOT IN (
              SELECT d.id FROM documents d
              WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[])
                AND d.status <> 'completed')
        UNION ALL
        SELECT id, embedding, embedding_model FROM document_chunks
        WHERE tenant_id = %(tenant_id)s AND document_id IN (SELECT unnest(%(wanted)s::uuid[]))
    ) AS c
    WHERE c.embedding_model = %(embedding_model)s
    ORDER BY distance, c.id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_by_bits --
-- Find the nearest chunks of a large scope: by the signs of their dimensions first, then compared exactly. A sort copies
-- each row before it drops it, which costs twice what comparing its bits does; so only those are sorted that can be kept,
-- by what the first few thousand are like. The question's bits come from a subquery of their own, or a generic plan
-- computes them again for every row.
WITH near AS MATERIALIZED (
    SELECT chunk_id FROM chunk_bits
    WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[])
      AND embedding_model = %(embedding_model)s
      AND bits <~> (SELECT binary_quantize(%(vector)s::halfvec)) <= (
          SELECT rag_furthest_bits(%(tenant_id)s, %(collection_ids)s::uuid[], %(embedding_model)s,
                                   binary_quantize(%(vector)s::halfvec), %(reranked)s, %(first)s))
      AND document_id NOT IN (
          SELECT d.id FROM documents d
          WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[])
            AND d.status <> 'completed')
    ORDER BY bits <~> (SELECT binary_quantize(%(vector)s::halfvec))
    LIMIT %(reranked)s
)
SELECT chunk_id, 1 - distance
FROM (
    SELECT near.chunk_id, c.distance
    FROM near CROSS JOIN LATERAL (
        SELECT embedding <=> %(vector)s::halfvec AS distance FROM document_chunks
        WHERE tenant_id = %(tenant_id)s AND id = near.chunk_id OFFSET 0
    ) AS c
    ORDER BY distance, near.chunk_id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_wanted_by_bits --
-- Find the nearest chunks of many wanted documents, the same way.
WITH near AS MATERIALIZED (
    SELECT chunk_id FROM chunk_bits
    WHERE tenant_id = %(tenant_id)s AND document_id IN (SELECT unnest(%(wanted)s::uuid[]))
      AND embedding_model = %(embedding_model)s
    ORDER BY bits <~> (SELECT binary_quantize(%(vector)s::halfvec))
    LIMIT %(reranked)s
)
SELECT chunk_id, 1 - distance
FROM (
    SELECT near.chunk_id, c.distance
    FROM near CROSS JOIN LATERAL (
        SELECT embedding <=> %(vector)s::halfvec AS distance FROM document_chunks
        WHERE tenant_id = %(tenant_id)s AND id = near.chunk_id OFFSET 0
    ) AS c
    ORDER BY distance, near.chunk_id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_index --
-- Find the index for a collection's nearest chunks, where it was measured to be good enough.
SELECT breadth, passages FROM vector_indexes
WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[]) AND is_used
  AND rag_has_vector_index(collection_id)

-- search_by_index --
-- Find the nearest chunks of a collection by its index; those it visits are compared exactly.
SELECT chunk_id, 1 - distance
FROM rag_nearest_by_index(%(tenant_id)s, (%(collection_ids)s::uuid[])[1], %(vector)s::halfvec, %(breadth)s::integer,
                          %(neighbours)s::integer, %(limit)s::integer)
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_fused --
-- Find the chunks with the best sum of all searches, and the best by meaning, with their documents and their terms in
-- order. Those found by keywords alone are compared with the question's vector here. Each is looked up by its key:
-- OFFSET 0 keeps the planner from reading the tenant's whole index beside the ids. The document of a number is the
-- last one before it in the index; with two conditions for it the planner collects and sorts the whole collection
-- first.
WITH near AS (
    SELECT * FROM unnest(%(near)s::uuid[], %(similarities)s::float8[], %(near_shares)s::float8[])
    WITH ORDINALITY AS asked (id, similarity, share, rank)
), matching AS (
    SELECT k.chunk_id AS id, asked.share, asked.rank
    FROM unnest(%(positions)s::integer[], %(passages)s::integer[], %(matching_shares)s::float8[])
    WITH ORDINALITY AS asked (position, passage, share, rank)
    CROSS JOIN LATERAL (
        SELECT d.collection_id, d.chunk_ids[asked.passage - d.first_passage + 1] AS chunk_id FROM keyword_documents d
        WHERE d.tenant_id = %(tenant_id)s
          AND (d.collection_id, d.first_passage) <= ((%(collection_ids)s::uuid[])[asked.position + 1], asked.passage)
        ORDER BY d.collection_id DESC, d.first_passage DESC LIMIT 1
    ) AS k
    WHERE k.collection_id = (%(collection_ids)s::uuid[])[asked.position + 1]
), meant AS (
    SELECT * FROM unnest(%(meant)s::uuid[]) WITH ORDINALITY AS asked (id, rank)
), joined AS MATERIALIZED (
    -- By itself: looked up by an expression over several lists, a passage costs a scan of all there are.
    SELECT id, near.similarity, near.rank AS vector_rank, matching.rank AS keyword_rank, meant.rank AS meaning_rank,
           coalesce(near.share, 0) + coalesce(matching.share, 0) AS share
    FROM near FULL JOIN matching USING (id) FULL JOIN meant USING (id)
), fused AS (
    SELECT joined.id, compared.similarity, vector_rank, keyword_rank, meaning_rank,
           joined.share + CASE WHEN vector_rank IS NULL AND compared.similarity >= greatest(%(threshold)s::float8, 0)
                               THEN %(similarity_share)s::float8 * compared.similarity ELSE 0 END AS score
    FROM joined CROSS JOIN LATERAL (
        SELECT CASE WHEN joined.vector_rank IS NOT NULL THEN joined.similarity ELSE (
            SELECT nullif(1 - (embedding <=> %(vector)s::halfvec), 'NaN') FROM document_chunks
            WHERE tenant_id = %(tenant_id)s AND document_chunks.id = joined.id AND embedding_model = %(embedding_model)s
        ) END OFFSET 0
    ) AS compared (similarity)
), best AS (
    (SELECT * FROM fused ORDER BY score DESC, vector_rank, keyword_rank LIMIT %(limit)s)
    UNION
    SELECT * FROM fused WHERE meaning_rank IS NOT NULL
)
SELECT c.*, d.*, t.terms, fused.similarity, fused.vector_rank, fused.keyword_rank, fused.meaning_rank, fused.score,
       m.meaning, m.meanings
FROM best AS fused
CROSS JOIN LATERAL (
    SELECT c.id AS chunk_id, c.document_id, c.collection_id, c.content, c.first_page, c.last_page, c.section,
           c.chunk_index, c.metadata::text
    FROM document_chunks c WHERE c.tenant_id = %(tenant_id)s AND c.id = fused.id OFFSET 0
) AS c
CROSS JOIN LATERAL (
    SELECT d.title, d.file_name, d.folder, (
        SELECT k.language FROM keyword_documents k WHERE k.tenant_id = %(tenant_id)s AND k.document_id = d.id) AS language
    FROM documents d WHERE d.id = c.document_id AND d.tenant_id = %(tenant_id)s AND d.status = 'completed' OFFSET 0
) AS d
LEFT JOIN LATERAL (
    SELECT terms FROM chunk_terms WHERE tenant_id = %(tenant_id)s AND chunk_id = fused.id OFFSET 0
) AS t ON true
LEFT JOIN LATERAL (
    SELECT coalesce(parts.nearest, -(v.embedding <#> %(meaning)s::halfvec)) AS meaning, parts.meanings
    FROM meaning_vectors v CROSS JOIN LATERAL (
        SELECT max(part.similarity) AS nearest, array_agg(part.similarity ORDER BY part.part) AS meanings
        FROM (SELECT p.part, -(p.embedding <#> %(meaning)s::halfvec) AS similarity
              FROM meaning_parts p WHERE p.chunk_id = v.chunk_id) AS part
    ) AS parts
    WHERE v.chunk_id = fused.id AND %(meaning)s::halfvec IS NOT NULL OFFSET 0
) AS m ON true
ORDER BY fused.score DESC, fused.vector_rank, fused.keyword_rank

-- tables_in_parts_have_grown --
-- Tell whether a table in parts by tenant has a fifth more rows than when it was analysed as a whole. Postgres looks
-- at each part by itself, and never at the whole. Ask at most once an hour, as its row counts are estimates.
SELECT coalesce(bool_or(parts.rows > 1000 + 1.2 * greatest(whole.reltuples, 0)
                        AND coalesce(seen.last_analyze, '-infinity') < now() - interval '1 hour'), false)
FROM pg_class whole
JOIN pg_stat_all_tables seen ON seen.relid = whole.oid
CROSS JOIN LATERAL (
    SELECT sum(part.n_live_tup) AS rows
    FROM pg_inherits i JOIN pg_stat_all_tables part ON part.relid = i.inhrelid WHERE i.inhparent = whole.oid) parts
WHERE whole.relkind = 'p' AND whole.relnamespace = 'public'::regnamespace

-- analyse_tables_in_parts --
-- Have the planner know the rows of whole tables. Nobody who reads or writes waits for it.
ANALYZE public.document_chunks, public.chunk_terms, public.chunk_bits, public.keyword_documents, public.keyword_blocks,
    public.meaning_bits
