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

-- search_query_terms --
-- The terms of the question in the languages that the scope holds, with what their idf needs.
WITH present AS (
    SELECT DISTINCT lower(split_part(coalesce(nullif(d.language, ''), l.language), '-', 1)) AS language
    FROM documents d JOIN collections l ON l.id = d.collection_id
    WHERE d.tenant_id = %(tenant_id)s AND d.collection_id = ANY(%(collection_ids)s::uuid[]) AND d.status = 'completed'
),
wanted AS (
    SELECT DISTINCT asked.term
    FROM unnest(%(languages)s::text[], %(terms)s::integer[]) AS asked (language, term)
    WHERE asked.language IN (SELECT language FROM present)
       OR (asked.language = '' AND EXISTS (
               SELECT FROM present p WHERE p.language <> ALL (%(known_languages)s::text[])))
),
total AS (
    SELECT sum(chunks)::float8 AS chunks
    FROM keyword_totals WHERE tenant_id = %(tenant_id)s AND collection_id = ANY(%(collection_ids)s::uuid[])
)
SELECT w.term, coalesce(sum(k.chunks), 0)::float8, coalesce((SELECT chunks FROM total), 0)
FROM wanted w
LEFT JOIN keyword_terms k
    ON k.tenant_id = %(tenant_id)s AND k.collection_id = ANY(%(collection_ids)s::uuid[]) AND k.term = w.term
GROUP BY w.term
