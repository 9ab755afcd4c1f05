-- Data for the order of passages and the text around them. Row-level security applies to every statement.

-- document_signals --
-- Read the facts that raise a document's passages: its metadata, without the processor's own, and the day it was added.
SELECT id AS document_id, metadata - '{sections,chunk_spans}'::text[] AS metadata, created_at
FROM documents
WHERE tenant_id = (SELECT rag_tenant()) AND id = ANY (%(document_ids)s::uuid[])

-- source_documents --
-- Read the details of documents that callers of the API get with their passages.
SELECT id, title, metadata, chunk_count, created_at, updated_at
FROM documents
WHERE id = ANY (%(document_ids)s::uuid[])

-- documents_saying --
-- Find which of the names each document says in its title, its folder or its text, and in how many chunks; names by their place in the
-- list, from 1.
SELECT d.id, name.place::integer, said.chunks::integer
FROM documents d CROSS JOIN unnest(%(names)s::text[]) WITH ORDINALITY AS name (words, place)
CROSS JOIN LATERAL (
    SELECT count(*) AS chunks FROM document_chunks c
    WHERE c.tenant_id = rag_tenant() AND c.document_id = d.id AND strpos(lower(c.content), lower(name.words)) > 0
) AS said
WHERE d.tenant_id = rag_tenant() AND d.id = ANY (%(document_ids)s::uuid[])
  AND (said.chunks > 0 OR strpos(lower(d.title || ' ' || d.folder), lower(name.words)) > 0)

-- place_facts --
-- Read what tells for which place documents hold, with the beginning of their first chunk.
SELECT d.id AS document_id, d.title, d.file_name, d.folder, d.upload_folder, d.tags, c.name AS collection, c.groups,
       coalesce((SELECT left(k.content, 240) FROM document_chunks k
                 WHERE k.tenant_id = rag_tenant() AND k.document_id = d.id AND k.chunk_index = 0), '') AS opening
FROM documents d JOIN collections c ON c.id = d.collection_id AND c.tenant_id = d.tenant_id
WHERE d.tenant_id = rag_tenant() AND d.id = ANY (%(document_ids)s::uuid[])

-- documents_of_place --
-- Find documents that may be for a place: one of its names is in what they are called or where they are kept.
SELECT d.id FROM documents d JOIN collections c ON c.id = d.collection_id AND c.tenant_id = d.tenant_id
WHERE d.tenant_id = rag_tenant() AND d.collection_id = ANY (%(collection_ids)s::uuid[]) AND d.status = 'completed'
  AND EXISTS (
      SELECT FROM unnest(%(names)s::text[]) AS name
      WHERE strpos(lower(concat_ws(' ', d.title, d.file_name, d.folder, d.upload_folder, array_to_string(d.tags, ' '),
                                   c.name, array_to_string(c.groups, ' '))), name) > 0)
ORDER BY d.id LIMIT 500

-- chunk_places --
-- Find the collection of chunks, and their places in their documents.
SELECT id AS chunk_id, collection_id, chunk_index
FROM document_chunks
WHERE tenant_id = rag_tenant() AND id = ANY (%(chunk_ids)s::uuid[])

-- neighbouring_passages --
-- Read the passages right before and after each given one, with the spans of both.
SELECT hit.id AS hit_id, hit.start_character AS hit_start, hit.end_character AS hit_end,
       c.id AS chunk_id, c.chunk_index - hit.chunk_index AS step, c.content, c.section, c.first_page, c.last_page,
       c.start_character AS start, c.end_character AS end
FROM document_chunks hit
JOIN document_chunks c ON c.tenant_id = hit.tenant_id AND c.document_id = hit.document_id
                      AND c.chunk_index IN (hit.chunk_index - 1, hit.chunk_index + 1)
WHERE hit.tenant_id = rag_tenant() AND hit.id = ANY (%(chunk_ids)s::uuid[])

-- passages_of_section --
-- Read the first passages of a document's section: those filed under a heading of that number, else those with such a
-- heading in them. `heading` is a regular expression for the end of a path and `line` one for a line.
SELECT c.id AS chunk_id, c.document_id, d.title, d.file_name, c.first_page, c.last_page, c.section,
       CASE WHEN l.overrides ->> 'index_titles' = 'false' THEN '' ELSE d.folder END AS folder,
       c.content AS passage, c.metadata ? 'corrected_pages' AS is_corrected
FROM document_chunks c JOIN documents d ON d.id = c.document_id JOIN collections l ON l.id = c.collection_id
WHERE c.tenant_id = rag_tenant() AND c.document_id = %(document_id)s AND d.status = 'completed'
  AND (c.section ~* %(heading)s OR c.content ~* %(line)s)
ORDER BY c.section ~* %(heading)s DESC, c.chunk_index
LIMIT %(wanted)s

-- passages_to_calibrate --
-- Choose passages that are long enough to ask about, spread evenly over a collection.
SELECT content, section, title
FROM (
    SELECT c.content, c.section, d.title, row_number() OVER (ORDER BY d.id, c.chunk_index) AS number,
           count(*) OVER () AS total
    FROM document_chunks c JOIN documents d ON d.id = c.document_id
    WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND d.status = 'completed'
      AND length(c.content) >= %(least_characters)s
) AS long
WHERE number %% greatest(1, total / %(wanted)s) = 0
LIMIT %(wanted)s

-- search_meeting --
-- Choose the hits that have all the wanted metadata, each field in the chunk's own or in its document's. Returns the
-- ranks of the vector hits and, below 0, of the keyword hits, whose numbers identify them as in search_fused.
SELECT asked.rank
FROM (
    SELECT * FROM unnest(%(near)s::uuid[]) WITH ORDINALITY AS near (id, rank)
    UNION ALL
    SELECT k.chunk_id, -matching.rank
    FROM unnest(%(positions)s::integer[], %(passages)s::integer[]) WITH ORDINALITY AS matching (position, passage, rank)
    CROSS JOIN LATERAL (
        SELECT d.collection_id, d.chunk_ids[matching.passage - d.first_passage + 1] AS chunk_id FROM keyword_documents d
        WHERE d.tenant_id = %(tenant_id)s
          AND (d.collection_id, d.first_passage)
              <= ((%(collection_ids)s::uuid[])[matching.position + 1], matching.passage)
        ORDER BY d.collection_id DESC, d.first_passage DESC LIMIT 1
    ) AS k
    WHERE k.collection_id = (%(collection_ids)s::uuid[])[matching.position + 1]
) AS asked
JOIN document_chunks c ON c.id = asked.id
JOIN documents d ON d.id = c.document_id
WHERE c.tenant_id = %(tenant_id)s
  AND NOT EXISTS (
      SELECT FROM jsonb_each(%(metadata)s::jsonb) AS wanted
      WHERE NOT (c.metadata || jsonb_build_object('chunkIndex', c.chunk_index))
                @> jsonb_build_object(wanted.key, wanted.value)
        AND NOT d.metadata @> jsonb_build_object(wanted.key, wanted.value))

-- metadata_values --
-- List the values of a metadata field in a collection's searchable documents and their passages.
SELECT value FROM (
    SELECT d.metadata ->> %(field)s AS value FROM documents d
    WHERE d.tenant_id = (SELECT rag_tenant()) AND d.collection_id = %(collection_id)s AND d.status = 'completed'
    UNION
    SELECT c.metadata ->> %(field)s FROM document_chunks c JOIN documents d ON d.id = c.document_id
    WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND d.status = 'completed'
) AS found
WHERE value <> ''
ORDER BY value
LIMIT 200

-- whole_documents --
-- List searchable documents, newest first, for questions about whole documents. With words given, only those that have
-- each word in their title, their folder or a heading; with `has_versions`, only those with an earlier version.
SELECT d.id, d.original_id, d.version, d.title, d.file_name, d.language, d.page_count, d.created_at, d.published_at,
       d.valid_from, d.folder, d.metadata - '{sections,chunk_spans}'::text[] AS metadata
FROM documents d
WHERE d.tenant_id = (SELECT rag_tenant()) AND d.collection_id = %(collection_id)s AND d.status = 'completed'
  AND (%(document_ids)s::uuid[] IS NULL OR d.id = ANY (%(document_ids)s))
  AND (%(words)s::text[] IS NULL OR NOT EXISTS (
      SELECT FROM unnest(%(words)s::text[]) AS word
      WHERE strpos(lower(d.title || ' ' || d.folder), word) = 0
        AND strpos(lower(coalesce(d.metadata ->> 'sections', '')), word) = 0))
  AND (NOT %(has_versions)s OR EXISTS (
      SELECT FROM documents v
      WHERE v.tenant_id = d.tenant_id AND v.original_id = d.original_id AND v.status = 'superseded'))
ORDER BY d.created_at DESC, d.id
LIMIT %(limit)s

-- whole_documents_naming --
-- List documents with a passage that has all of these words, those with most such passages first.
SELECT c.document_id
FROM document_chunks c JOIN documents d ON d.id = c.document_id
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND d.status = 'completed'
  AND (%(document_ids)s::uuid[] IS NULL OR d.id = ANY (%(document_ids)s))
  AND NOT EXISTS (SELECT FROM unnest(%(words)s::text[]) AS word WHERE strpos(lower(c.content), word) = 0)
GROUP BY c.document_id
ORDER BY count(*) DESC, c.document_id
LIMIT %(limit)s

-- passages_in_collection --
-- Count a collection's passages, up to a limit.
SELECT count(*) FROM (
    SELECT FROM document_chunks WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s LIMIT %(limit)s
) AS passages

-- document_sections --
-- List a document's headings with their positions in its text.
SELECT metadata -> 'sections' FROM documents WHERE tenant_id = (SELECT rag_tenant()) AND id = %(document_id)s

-- kept_versions --
-- List the published version of a document and the earlier ones that are kept, oldest first.
SELECT d.id, d.original_id, d.version, d.title, d.file_name, d.language, d.page_count, d.created_at, d.published_at,
       d.valid_from, d.folder, d.metadata - '{sections,chunk_spans}'::text[] AS metadata
FROM documents d
WHERE d.tenant_id = (SELECT rag_tenant()) AND d.original_id = %(original_id)s AND d.status IN ('completed', 'superseded')
ORDER BY d.version

-- versions_on_day --
-- Find the version of each published document that is known to have been valid on a day, the same or an earlier one.
-- A version's first day is the one set for it, else the day it was published. Before a first day that was set for the
-- published version, the latest version without one is taken. Versions of the same file are one. The same day for two
-- versions is the published one's: days once held for all versions of a document.
WITH kept AS (
    SELECT p.id AS published_id, p.valid_from AS published_from, p.sha256 AS published_file, v.id, v.version, v.title,
           v.file_name, v.language, v.sha256, own.valid_until,
           coalesce(own.valid_from, (v.published_at AT TIME ZONE 'UTC')::date) AS first_day,
           own.valid_from IS NULL AND p.valid_from > %(day)s::date AS may_be
    FROM documents p
    JOIN documents v ON v.tenant_id = p.tenant_id AND v.original_id = p.original_id
                     AND v.status IN ('completed', 'superseded')
    CROSS JOIN LATERAL (
        SELECT CASE WHEN v.id = p.id OR v.valid_from <> p.valid_from THEN v.valid_from END,
               CASE WHEN v.id = p.id OR v.valid_until <> p.valid_until THEN v.valid_until END
    ) AS own (valid_from, valid_until)
    WHERE p.tenant_id = (SELECT rag_tenant()) AND p.id = ANY (%(document_ids)s::uuid[]) AND p.status = 'completed'
),
valid AS (
    SELECT DISTINCT ON (published_id) *
    FROM kept
    WHERE (first_day <= %(day)s::date OR may_be AND id <> published_id)
      AND (valid_until IS NULL OR valid_until >= %(day)s::date)
    ORDER BY published_id, id = published_id DESC, first_day <= %(day)s::date DESC,
             CASE WHEN first_day <= %(day)s::date THEN first_day END DESC NULLS LAST, version DESC
)
SELECT %(day)s::date AS day, published_id, CASE WHEN sha256 = published_file THEN published_id ELSE id END AS document_id, version, title,
       file_name, language, published_from AS valid_from
FROM valid

-- passages_of_documents --
-- Read the passages of documents in their order.
SELECT id AS chunk_id, document_id, content, section, first_page, last_page, chunk_index
FROM document_chunks
WHERE tenant_id = rag_tenant() AND document_id = ANY (%(document_ids)s::uuid[])
ORDER BY document_id, chunk_index
