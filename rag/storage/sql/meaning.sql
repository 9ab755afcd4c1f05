-- Vectors of meaning of passages whose own embedder compares words.
-- The searches take the tenant as those in search.sql do.

-- enqueue_meaning --
-- Queue one waiting job at most for a collection on the built-in embedder.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at)
SELECT 'meaning', 'embed_meaning', 'meaning ' || id, 'meaning ' || id,
       jsonb_build_object('tenant_id', tenant_id, 'collection_id', id),
       CASE WHEN %(wait_seconds)s > 0 THEN now() + make_interval(secs => %(wait_seconds)s) END
FROM collections
WHERE tenant_id = %(tenant_id)s AND id = %(collection_id)s AND embedding_model = 'builtin/lexical@1536'
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- forget_meaning --
-- Remove a document's vectors of meaning before they are made again.
DELETE FROM meaning_vectors WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- without_meaning --
-- List the next chunks of a collection that have no vector of meaning, in the order in which their documents came.
SELECT c.id, c.document_id, d.title, c.section, c.content, coalesce(nullif(d.language, ''), l.language) AS language
FROM (
    SELECT c.id FROM documents d JOIN document_chunks c ON c.document_id = d.id
    WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = %(collection_id)s AND d.status = 'completed'
      AND c.tenant_id = %(tenant_id)s
      AND NOT EXISTS (SELECT FROM meaning_vectors m WHERE m.chunk_id = c.id)
    ORDER BY d.published_at, d.id, c.chunk_index LIMIT %(limit)s
) AS next
JOIN document_chunks c ON c.tenant_id = %(tenant_id)s AND c.id = next.id
JOIN documents d ON d.id = c.document_id
JOIN collections l ON l.id = d.collection_id
WHERE l.embedding_model = 'builtin/lexical@1536'
ORDER BY d.published_at, d.id, c.chunk_index

-- add_meaning --
-- Add vectors of chunks that still exist, and of their parts.
WITH added AS (
    INSERT INTO meaning_vectors (chunk_id, tenant_id, collection_id, document_id, language, embedding)
    SELECT c.id, c.tenant_id, c.collection_id, c.document_id, made.language, made.embedding
    FROM unnest(%(chunk_ids)s::uuid[], %(languages)s::text[], %(embeddings)s::halfvec[])
        AS made (chunk_id, language, embedding)
    JOIN document_chunks c ON c.id = made.chunk_id
    WHERE c.tenant_id = rag_tenant()
    FOR KEY SHARE OF c
    ON CONFLICT (chunk_id) DO NOTHING
    RETURNING chunk_id, tenant_id, collection_id, document_id, language, embedding
), scanned AS (
    INSERT INTO meaning_bits (chunk_id, tenant_id, collection_id, document_id, language, bits)
    SELECT chunk_id, tenant_id, collection_id, document_id, language, rag_meaning_bits(embedding)
    FROM added WHERE embedding IS NOT NULL
)
INSERT INTO meaning_parts (chunk_id, part, tenant_id, collection_id, embedding)
SELECT added.chunk_id, made.part, added.tenant_id, added.collection_id, made.embedding
FROM unnest(%(part_of)s::uuid[], %(parts)s::smallint[], %(part_embeddings)s::halfvec[])
    AS made (chunk_id, part, embedding)
JOIN added ON added.chunk_id = made.chunk_id

-- meaning_progress --
-- Count the chunks of each document, those that have a vector of meaning, and those that cannot have one.
SELECT d.id AS document_id, d.collection_id, count(c.id) AS passages, count(m.chunk_id) AS done,
       count(m.chunk_id) FILTER (WHERE m.embedding IS NULL) AS unreadable
FROM documents d
JOIN collections l ON l.id = d.collection_id
JOIN document_chunks c ON c.tenant_id = d.tenant_id AND c.document_id = d.id
LEFT JOIN meaning_vectors m ON m.chunk_id = c.id
WHERE d.tenant_id = rag_tenant() AND d.status = 'completed' AND l.embedding_model = 'builtin/lexical@1536'
  AND (%(collection_id)s::uuid IS NULL OR d.collection_id = %(collection_id)s)
  AND (%(document_id)s::uuid IS NULL OR d.id = %(document_id)s)
GROUP BY d.id, d.collection_id
ORDER BY d.id

-- meaning_totals --
-- Count the same for all documents of a tenant while such work waits or is under way; otherwise skip the count.
SELECT count(c.id) AS passages, count(m.chunk_id) AS done
FROM documents d
JOIN collections l ON l.id = d.collection_id
JOIN document_chunks c ON c.tenant_id = d.tenant_id AND c.document_id = d.id
LEFT JOIN meaning_vectors m ON m.chunk_id = c.id
WHERE d.tenant_id = rag_tenant() AND d.status = 'completed' AND l.embedding_model = 'builtin/lexical@1536'
  AND EXISTS (SELECT FROM procrastinate_jobs
              WHERE queue_name = 'meaning' AND args ->> 'tenant_id' = rag_tenant() AND status IN ('todo', 'doing'))

-- search_by_meaning --
-- Find the chunks nearest by meaning, exactly, so many of each language of the scope, with the usual similarities of
-- that language. All chunks are compared once; the nearest of each language are taken from the result.
WITH compared AS MATERIALIZED (
    SELECT m.chunk_id, m.language, -(m.embedding <#> %(vector)s::halfvec) AS similarity
    FROM (
        SELECT chunk_id, language, embedding FROM meaning_vectors
        WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[])
          AND %(wanted)s::uuid[] IS NULL AND document_id NOT IN (
              SELECT d.id FROM documents d
              WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[])
                AND d.status <> 'completed')
        UNION ALL
        SELECT chunk_id, language, embedding FROM meaning_vectors
        WHERE tenant_id = %(tenant_id)s AND document_id IN (SELECT unnest(%(wanted)s::uuid[]))
    ) AS m
    WHERE m.embedding IS NOT NULL
), usual AS MATERIALIZED (
    SELECT language, count(*) AS passages, avg(similarity) AS mean, stddev_pop(similarity) AS deviation
    FROM compared GROUP BY language
)
SELECT nearest.chunk_id, nearest.similarity, usual.language, usual.passages, usual.mean, usual.deviation
FROM usual CROSS JOIN LATERAL (
    SELECT chunk_id, similarity FROM compared WHERE compared.language = usual.language
    ORDER BY similarity DESC, chunk_id LIMIT %(limit)s
) AS nearest
ORDER BY nearest.similarity DESC, nearest.chunk_id

-- search_by_meaning_bits --
-- Find the same in a large scope: the nearest of each language by their bits, then compared exactly, with the usual
-- similarities from a sample of the language's chunks. Bits of unfinished documents are scanned too, but not compared
-- exactly.
WITH spoken AS MATERIALIZED (
    -- One look at the index for each language, in place of a scan.
    SELECT DISTINCT l.language FROM unnest(%(collection_ids)s::uuid[]) AS scope (id) CROSS JOIN LATERAL (
        WITH RECURSIVE following (language) AS (
            (SELECT language FROM meaning_bits
             WHERE tenant_id = %(tenant_id)s AND collection_id = scope.id ORDER BY language LIMIT 1)
            UNION ALL
            SELECT (SELECT b.language FROM meaning_bits b
                    WHERE b.tenant_id = %(tenant_id)s AND b.collection_id = scope.id
                      AND b.language > following.language ORDER BY b.language LIMIT 1)
            FROM following WHERE following.language IS NOT NULL
        )
        SELECT language FROM following WHERE language IS NOT NULL
    ) AS l
), near AS MATERIALIZED (
    SELECT spoken.language, nearest.chunk_id, false AS is_drawn
    FROM spoken CROSS JOIN LATERAL (
        SELECT b.chunk_id FROM (
            SELECT chunk_id, bits FROM meaning_bits
            WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[])
              AND language = spoken.language AND %(wanted)s::uuid[] IS NULL
            UNION ALL
            SELECT chunk_id, bits FROM meaning_bits
            WHERE tenant_id = %(tenant_id)s AND language = spoken.language
              AND document_id IN (SELECT unnest(%(wanted)s::uuid[]))
        ) AS b
        ORDER BY b.bits <~> (SELECT rag_meaning_bits(%(vector)s::halfvec))
        LIMIT %(reranked)s
    ) AS nearest
    UNION ALL
    SELECT spoken.language, drawn.chunk_id, true
    FROM spoken CROSS JOIN unnest(%(collection_ids)s::uuid[]) AS scope (id) CROSS JOIN LATERAL (
        SELECT chunk_id FROM meaning_bits
        WHERE tenant_id = %(tenant_id)s AND collection_id = scope.id AND language = spoken.language
          AND (%(wanted)s::uuid[] IS NULL OR document_id = ANY (%(wanted)s))
        ORDER BY chunk_id LIMIT %(drawn)s
    ) AS drawn
), compared AS MATERIALIZED (
    SELECT near.chunk_id, near.language, near.is_drawn, exactly.similarity
    FROM near CROSS JOIN LATERAL (
        SELECT -(m.embedding <#> %(vector)s::halfvec) AS similarity FROM meaning_vectors m
        WHERE m.chunk_id = near.chunk_id AND m.document_id NOT IN (
            SELECT d.id FROM documents d
            WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[])
              AND d.status <> 'completed')
        OFFSET 0
    ) AS exactly
), usual AS MATERIALIZED (
    SELECT language, count(*) AS passages, avg(similarity) AS mean, stddev_pop(similarity) AS deviation
    FROM compared WHERE is_drawn GROUP BY language
)
SELECT nearest.chunk_id, nearest.similarity, usual.language, usual.passages, usual.mean, usual.deviation
FROM usual CROSS JOIN LATERAL (
    SELECT chunk_id, similarity FROM compared WHERE compared.language = usual.language AND NOT is_drawn
    ORDER BY similarity DESC, chunk_id LIMIT %(limit)s
) AS nearest
ORDER BY nearest.similarity DESC, nearest.chunk_id

-- meaning_of_chunks --
-- Compare some chunks with a question put in the words of their language, and as it was asked: of each the nearest
-- part, or the whole where it has one part only.
SELECT v.chunk_id, coalesce(parts.switched, -(v.embedding <#> %(switched)s::halfvec)) AS switched,
       coalesce(parts.asked, -(v.embedding <#> %(vector)s::halfvec)) AS asked
FROM meaning_vectors v CROSS JOIN LATERAL (
    SELECT max(-(p.embedding <#> %(switched)s::halfvec)) AS switched, max(-(p.embedding <#> %(vector)s::halfvec)) AS asked
    FROM meaning_parts p WHERE p.chunk_id = v.chunk_id
) AS parts
WHERE v.chunk_id = ANY (%(chunk_ids)s::uuid[]) AND v.embedding IS NOT NULL
