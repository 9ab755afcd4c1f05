-- What the search reads and the keyword index writes. Row-level security stands above every tenant_id here.

-- delete_keywords --
-- Take a document out of the keyword index; its counts follow by trigger.
DELETE FROM chunk_keywords WHERE tenant_id = %(tenant_id)s AND document_id = %(document_id)s

-- delete_terms --
-- Take away the terms in order of a document's passages.
DELETE FROM chunk_terms WHERE tenant_id = %(tenant_id)s AND document_id = %(document_id)s

-- delete_bits --
-- Take a document out of what large collections are scanned by.
DELETE FROM chunk_bits WHERE tenant_id = %(tenant_id)s AND document_id = %(document_id)s

-- chunks_to_index --
-- A document's passages with what stands in front of them, and the language of their analyser.
SELECT c.id, d.title, c.section, c.content, coalesce(nullif(d.language, ''), l.language)
FROM document_chunks c
JOIN documents d ON d.id = c.document_id
JOIN collections l ON l.id = c.collection_id
WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = %(collection_id)s AND c.document_id = %(document_id)s
ORDER BY c.chunk_index

-- keyword_total --
-- How many passages and terms a collection's keyword index holds.
SELECT coalesce(sum(chunks), 0)::bigint, coalesce(sum(tokens), 0)::bigint
FROM keyword_totals WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- insert_keywords --
-- A document's passages into the keyword index, in one statement: the counts follow once.
INSERT INTO chunk_keywords (chunk_id, tenant_id, collection_id, document_id, language, length, average_length, weights)
SELECT chunk_id, %(tenant_id)s, %(collection_id)s, %(document_id)s, %(language)s, length, %(average_length)s, weights
FROM unnest(%(chunk_ids)s::uuid[], %(lengths)s::integer[], %(weights)s::sparsevec[])
    AS passages (chunk_id, length, weights)

-- insert_terms --
-- The terms of a document's passages in their order.
INSERT INTO chunk_terms (chunk_id, tenant_id, collection_id, document_id, terms)
SELECT chunk_id, %(tenant_id)s, %(collection_id)s, %(document_id)s, terms
FROM unnest(%(chunk_ids)s::uuid[], %(terms)s::bytea[]) AS passages (chunk_id, terms)

-- insert_bits --
-- The signs of a document's vectors, those of embedders that are not dense left out.
INSERT INTO chunk_bits (chunk_id, tenant_id, collection_id, document_id, embedding_model, bits)
SELECT id, tenant_id, collection_id, document_id, embedding_model, binary_quantize(embedding)
FROM document_chunks
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND document_id = %(document_id)s
  AND embedding IS NOT NULL AND embedding_model NOT LIKE 'builtin/%%'

-- search_scope --
-- How many passages and terms the scope's keyword index holds, by the language they were analysed in.
SELECT language, sum(chunks)::float8, sum(tokens)::float8 FROM keyword_totals
WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[])
GROUP BY language

-- search_hidden --
-- Documents of the scope that must not be found yet, or no more; the latter are in the keyword index.
SELECT d.id, EXISTS (
    SELECT FROM chunk_keywords k
    WHERE k.tenant_id = d.tenant_id AND k.document_id = d.id)
FROM documents d
WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[]) AND d.status <> 'completed'

-- search_wanted --
-- Documents of the scope that meet the conditions. The day of a document is that written in it, else of its making.
SELECT d.id, count(*) OVER () AS met, total.documents
FROM documents d CROSS JOIN (
    SELECT count(*) AS documents FROM documents
    WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[]) AND status = 'completed'
) AS total
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
      WHERE c.document_id = d.id AND NOT EXISTS (
          SELECT FROM jsonb_each(%(metadata)s) AS wanted
          WHERE NOT c.metadata @> jsonb_build_object(wanted.key, wanted.value)
            AND NOT d.metadata @> jsonb_build_object(wanted.key, wanted.value))))

-- search_terms --
-- In how many of the scope's passages each term stands.
SELECT term, sum(chunks)::float8 FROM (
    SELECT k.term, k.chunks FROM keyword_terms k
    WHERE k.tenant_id = %(tenant_id)s AND k.collection_id = ANY (%(collection_ids)s::uuid[])
      AND k.term = ANY (%(terms)s::integer[])
    UNION ALL
    SELECT asked.term, -r.chunks[array_position(r.terms, asked.term)]
    FROM keyword_removals r CROSS JOIN unnest(%(terms)s::integer[]) AS asked (term)
    WHERE r.tenant_id = %(tenant_id)s AND r.collection_id = ANY (%(collection_ids)s::uuid[])
) AS counted
GROUP BY term HAVING sum(chunks) > 0

-- search_by_keyword --
-- The best passages by BM25: an exact scan by inner product with the question's idf fetches more than wanted, which are
-- then scored again with today's average length (the frequency of a term is recovered from its weight). Beside the
-- score, the similarity to the question's vector for the fusion.
WITH found AS MATERIALIZED (
    SELECT k.chunk_id, k.length, k.average_length, k.weights, (%(question)s::sparsevec <#> k.weights) + 0 AS score
    FROM chunk_keywords k
    WHERE k.tenant_id = %(tenant_id)s AND k.collection_id = ANY (%(collection_ids)s::uuid[])
    ORDER BY score
    LIMIT %(candidates)s
),
asked AS MATERIALIZED (
    SELECT * FROM unnest(%(units)s::sparsevec[], %(idfs)s::float8[]) AS asked (unit, idf)
),
scored AS (
    SELECT found.chunk_id, sum(hit.idf * hit.frequency * 2.5 / (
        hit.frequency + 1.5 * (0.25 + 0.75 * found.length / %(average_length)s::float8))) AS score
    FROM found CROSS JOIN LATERAL (
        SELECT idf, round(weight * 1.5 * (0.25 + 0.75 * found.length / found.average_length) / (2.5 - weight))
               AS frequency
        FROM (SELECT asked.idf, -(asked.unit <#> found.weights) AS weight FROM asked OFFSET 0) AS weighed
        WHERE weight > 0
    ) AS hit
    WHERE found.score < 0
    GROUP BY found.chunk_id
    ORDER BY score DESC, found.chunk_id
    LIMIT %(limit)s
)
SELECT scored.chunk_id, scored.score, c.similarity
FROM scored CROSS JOIN LATERAL (
    SELECT CASE WHEN embedding_model = %(embedding_model)s THEN 1 - (embedding <=> %(vector)s::halfvec) END AS similarity
    FROM document_chunks WHERE id = scored.chunk_id OFFSET 0
) AS c
ORDER BY scored.score DESC, scored.chunk_id

-- search_documents_by_keyword --
-- `search_by_keyword` in the documents wanted only, by their index.
WITH found AS MATERIALIZED (
    SELECT k.chunk_id, k.length, k.average_length, k.weights, (%(question)s::sparsevec <#> k.weights) + 0 AS score
    FROM chunk_keywords k
    WHERE k.tenant_id = %(tenant_id)s AND k.collection_id = ANY (%(collection_ids)s::uuid[])
      AND k.document_id IN (SELECT unnest(%(wanted)s::uuid[]))
    ORDER BY score
    LIMIT %(candidates)s
),
asked AS MATERIALIZED (
    SELECT * FROM unnest(%(units)s::sparsevec[], %(idfs)s::float8[]) AS asked (unit, idf)
),
scored AS (
    SELECT found.chunk_id, sum(hit.idf * hit.frequency * 2.5 / (
        hit.frequency + 1.5 * (0.25 + 0.75 * found.length / %(average_length)s::float8))) AS score
    FROM found CROSS JOIN LATERAL (
        SELECT idf, round(weight * 1.5 * (0.25 + 0.75 * found.length / found.average_length) / (2.5 - weight))
               AS frequency
        FROM (SELECT asked.idf, -(asked.unit <#> found.weights) AS weight FROM asked OFFSET 0) AS weighed
        WHERE weight > 0
    ) AS hit
    WHERE found.score < 0
    GROUP BY found.chunk_id
    ORDER BY score DESC, found.chunk_id
    LIMIT %(limit)s
)
SELECT scored.chunk_id, scored.score, c.similarity
FROM scored CROSS JOIN LATERAL (
    SELECT CASE WHEN embedding_model = %(embedding_model)s THEN 1 - (embedding <=> %(vector)s::halfvec) END AS similarity
    FROM document_chunks WHERE id = scored.chunk_id OFFSET 0
) AS c
ORDER BY scored.score DESC, scored.chunk_id

-- search_by_vector --
-- The nearest passages by cosine, exactly. The distance is computed once, in the subquery; "+ 0" keeps the planner from
-- an approximate index, and the threshold comes after the limit.
SELECT chunk_id, 1 - distance
FROM (
    SELECT c.id AS chunk_id, (c.embedding <=> %(vector)s::halfvec) + 0 AS distance
    FROM document_chunks c
    WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = ANY (%(collection_ids)s::uuid[])
      AND c.embedding_model = %(embedding_model)s
      AND c.document_id NOT IN (SELECT unnest(%(hidden)s::uuid[]))
    ORDER BY distance, c.id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_documents_by_vector --
-- `search_by_vector` in the documents wanted only, by their index.
SELECT chunk_id, 1 - distance
FROM (
    SELECT c.id AS chunk_id, (c.embedding <=> %(vector)s::halfvec) + 0 AS distance
    FROM document_chunks c
    WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = ANY (%(collection_ids)s::uuid[])
      AND c.embedding_model = %(embedding_model)s
      AND c.document_id IN (SELECT unnest(%(wanted)s::uuid[]))
    ORDER BY distance, c.id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_by_bits --
-- The nearest passages of a large collection: the nearest by the signs of their dimensions, compared exactly. The
-- question's bits come from a subquery of their own, or a generic plan computes them anew for every row.
WITH near AS MATERIALIZED (
    SELECT b.chunk_id
    FROM chunk_bits b
    WHERE b.tenant_id = %(tenant_id)s AND b.collection_id = ANY (%(collection_ids)s::uuid[])
      AND b.embedding_model = %(embedding_model)s
    ORDER BY b.bits <~> (SELECT binary_quantize(%(vector)s::halfvec))
    LIMIT %(reranked)s
)
SELECT chunk_id, 1 - distance
FROM (
    SELECT near.chunk_id, c.distance
    FROM near CROSS JOIN LATERAL (
        SELECT embedding <=> %(vector)s::halfvec AS distance FROM document_chunks WHERE id = near.chunk_id OFFSET 0
    ) AS c
    ORDER BY distance, near.chunk_id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_documents_by_bits --
-- `search_by_bits` in the documents wanted only.
WITH near AS MATERIALIZED (
    SELECT b.chunk_id
    FROM chunk_bits b
    WHERE b.tenant_id = %(tenant_id)s AND b.collection_id = ANY (%(collection_ids)s::uuid[])
      AND b.embedding_model = %(embedding_model)s
      AND b.document_id IN (SELECT unnest(%(wanted)s::uuid[]))
    ORDER BY b.bits <~> (SELECT binary_quantize(%(vector)s::halfvec))
    LIMIT %(reranked)s
)
SELECT chunk_id, 1 - distance
FROM (
    SELECT near.chunk_id, c.distance
    FROM near CROSS JOIN LATERAL (
        SELECT embedding <=> %(vector)s::halfvec AS distance FROM document_chunks WHERE id = near.chunk_id OFFSET 0
    ) AS c
    ORDER BY distance, near.chunk_id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_passages --
-- The passages behind ids, with their documents and their terms in order. Each is looked up by its key: OFFSET 0 keeps
-- the planner from reading the tenant's whole index beside that of the ids.
SELECT c.*, d.*, t.terms
FROM unnest(%(chunk_ids)s::uuid[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT c.id AS chunk_id, c.document_id, c.collection_id, c.content, c.first_page, c.last_page, c.section,
           c.chunk_index, c.metadata
    FROM document_chunks c WHERE c.id = asked.id OFFSET 0
) AS c
CROSS JOIN LATERAL (
    SELECT d.title, d.file_name, coalesce(nullif(d.language, ''), (
        SELECT l.language FROM collections l WHERE l.id = d.collection_id)) AS language
    FROM documents d WHERE d.id = c.document_id AND d.tenant_id = %(tenant_id)s AND d.status = 'completed' OFFSET 0
) AS d
LEFT JOIN LATERAL (SELECT terms FROM chunk_terms WHERE chunk_id = asked.id OFFSET 0) AS t ON true
