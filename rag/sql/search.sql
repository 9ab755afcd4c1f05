-- What the search reads and the keyword index writes. Row-level security stands above every tenant_id here.

-- delete_keywords --
-- Take a document out of the keyword index; its counts follow by trigger.
DELETE FROM chunk_keywords
WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s AND document_id = %(document_id)s

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
SELECT chunks, tokens FROM keyword_totals WHERE tenant_id = %(tenant_id)s AND collection_id = %(collection_id)s

-- insert_keywords --
-- One passage of the keyword index.
INSERT INTO chunk_keywords (chunk_id, tenant_id, collection_id, document_id, length, average_length, weights)
VALUES (%(chunk_id)s, %(tenant_id)s, %(collection_id)s, %(document_id)s, %(length)s, %(average_length)s,
        %(weights)s::sparsevec)

-- search_by_keyword --
-- The best passages by BM25: an exact scan by inner product with the question's idf fetches more than wanted, which are
-- then scored again with today's average length (the frequency of a term is recovered from its weight). Beside the score:
-- the terms found, their statistics, and the similarity to the question's vector for the fusion.
WITH present AS (
    SELECT DISTINCT lower(split_part(coalesce(nullif(d.language, ''), l.language), '-', 1)) AS language
    FROM documents d JOIN collections l ON l.id = d.collection_id
    WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[]) AND d.status = 'completed'
),
wanted AS (
    SELECT DISTINCT given.term
    FROM unnest(%(languages)s::text[], %(terms)s::integer[]) AS given (language, term)
    WHERE given.language IN (SELECT language FROM present)
       OR given.language = '' AND EXISTS (SELECT FROM present WHERE language <> ALL (%(known_languages)s::text[]))
),
total AS MATERIALIZED (
    SELECT sum(chunks)::float8 AS chunks, greatest(sum(tokens)::float8 / nullif(sum(chunks), 0), 1) AS average_length
    FROM keyword_totals
    WHERE tenant_id = %(tenant_id)s AND collection_id = ANY (%(collection_ids)s::uuid[])
),
counted AS MATERIALIZED (
    SELECT wanted.term, (
        SELECT sum(k.chunks)::float8 FROM keyword_terms k
        WHERE k.tenant_id = %(tenant_id)s AND k.collection_id = ANY (%(collection_ids)s::uuid[])
          AND k.term = wanted.term) AS chunks
    FROM wanted
),
asked AS MATERIALIZED (
    SELECT counted.term, counted.chunks,
           ln(1 + (total.chunks - counted.chunks + 0.5) / (counted.chunks + 0.5)) AS idf,
           format('{%%s:1}/1000000000', counted.term)::sparsevec AS unit
    FROM counted CROSS JOIN total
    WHERE counted.chunks > 0
),
question AS MATERIALIZED (
    SELECT format('{%%s}/1000000000', string_agg(term || ':' || idf, ',' ORDER BY term))::sparsevec AS weights,
           array_agg(term ORDER BY term) AS terms, array_agg(chunks ORDER BY term) AS chunks
    FROM asked HAVING count(*) > 0
),
found AS MATERIALIZED (
    SELECT k.chunk_id, k.length, k.average_length, k.weights, (k.weights <#> (SELECT weights FROM question)) + 0 AS score
    FROM chunk_keywords k
    WHERE k.tenant_id = %(tenant_id)s AND k.collection_id = ANY (%(collection_ids)s::uuid[])
      AND EXISTS (SELECT FROM question)
      AND k.document_id NOT IN (
          SELECT d.id FROM documents d
          WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[])
            AND (d.status <> 'completed'
                 OR d.id <> ALL (%(document_ids)s::uuid[])
                 OR NOT coalesce(d.metadata -> 'categories' ?| %(categories)s::text[], %(categories)s::text[] IS NULL)
                 OR (%(years)s::integer[] IS NOT NULL AND NOT EXISTS (
                     SELECT FROM unnest(%(years)s::integer[]) AS year WHERE d.metadata -> 'years' @> to_jsonb(year)))))
    ORDER BY score
    LIMIT %(candidates)s
),
scored AS (
    SELECT found.chunk_id,
           sum(hit.idf * hit.frequency * 2.5
               / (hit.frequency + 1.5 * (0.25 + 0.75 * found.length / (SELECT average_length FROM total)))) AS score,
           array_agg(hit.term) AS terms
    FROM found CROSS JOIN LATERAL (
        SELECT term, idf, round(weight * 1.5 * (0.25 + 0.75 * found.length / found.average_length) / (2.5 - weight))
               AS frequency
        FROM (SELECT asked.term, asked.idf, -(found.weights <#> asked.unit) AS weight FROM asked) AS weighed
        WHERE weight > 0
    ) AS hit
    GROUP BY found.chunk_id
)
SELECT scored.chunk_id, scored.score, scored.terms, question.terms, question.chunks, total.chunks,
       CASE WHEN c.embedding_model = %(embedding_model)s THEN 1 - (c.embedding <=> %(vector)s::halfvec) END
FROM scored JOIN document_chunks c ON c.id = scored.chunk_id CROSS JOIN question CROSS JOIN total
ORDER BY scored.score DESC, scored.chunk_id
LIMIT %(limit)s

-- search_by_vector --
-- The nearest passages by cosine, exactly. The distance is computed once, in the subquery; "+ 0" keeps the planner from
-- an approximate index, and the threshold comes after the limit.
SELECT chunk_id, 1 - distance
FROM (
    SELECT c.id AS chunk_id, (c.embedding <=> %(vector)s::halfvec) + 0 AS distance
    FROM document_chunks c
    WHERE c.tenant_id = %(tenant_id)s AND c.collection_id = ANY (%(collection_ids)s::uuid[])
      AND c.embedding_model = %(embedding_model)s
      AND c.document_id NOT IN (
          SELECT d.id FROM documents d
          WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY (%(collection_ids)s::uuid[])
            AND (d.status <> 'completed'
                 OR d.id <> ALL (%(document_ids)s::uuid[])
                 OR NOT coalesce(d.metadata -> 'categories' ?| %(categories)s::text[], %(categories)s::text[] IS NULL)
                 OR (%(years)s::integer[] IS NOT NULL AND NOT EXISTS (
                     SELECT FROM unnest(%(years)s::integer[]) AS year WHERE d.metadata -> 'years' @> to_jsonb(year)))))
    ORDER BY distance, c.id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(threshold)s AND distance <> 'NaN'
ORDER BY distance, chunk_id

-- search_passages --
-- The passages behind ids, with their documents.
SELECT c.id AS chunk_id, c.document_id, c.collection_id, d.title, d.file_name, c.content, c.first_page, c.last_page,
       c.section, c.chunk_index, c.metadata, coalesce(nullif(d.language, ''), l.language) AS language
FROM document_chunks c
JOIN documents d ON d.id = c.document_id AND d.status = 'completed'
JOIN collections l ON l.id = c.collection_id
WHERE c.tenant_id = %(tenant_id)s AND c.id = ANY (%(chunk_ids)s::uuid[])
