-- Reference documents (source 002): registered, chunked, tagged and embedded step by step, under row-level security.

-- find_references --
-- List documents of collections that hold reference documents, newest first, with the progress of each and the number
-- of all.
SELECT d.id, d.collection_id, d.title, coalesce(d.metadata ->> 'source_description', '') AS source_description,
       coalesce(d.metadata ->> 'category', '') AS category, coalesce(d.metadata ->> 'file_url', '') AS file_url, d.file_name, d.status, d.message, d.page_count,
       d.created_at, counted.chunks, counted.embedded, counted.tagged, count(*) OVER () AS total
FROM documents d
JOIN collections l ON l.id = d.collection_id AND l.profile = ANY (%(profiles)s)
CROSS JOIN LATERAL (
    SELECT count(*) AS chunks, count(c.embedding) AS embedded, count(*) FILTER (WHERE c.metadata ? 'summary') AS tagged
    FROM document_chunks c WHERE c.tenant_id = d.tenant_id AND c.document_id = d.id
) AS counted
WHERE d.tenant_id = rag_tenant() AND d.status NOT IN ('superseded', 'binned')
  AND (%(document_id)s::uuid IS NULL OR d.id = %(document_id)s)
ORDER BY d.created_at DESC, d.id
LIMIT %(limit)s OFFSET %(offset)s

-- count_references --
-- Count the documents that `find_references` finds.
SELECT count(*) FROM documents d JOIN collections l ON l.id = d.collection_id AND l.profile = ANY (%(profiles)s)
WHERE d.tenant_id = rag_tenant() AND d.status NOT IN ('superseded', 'binned')

-- register_document --
-- Add a document without a file or text.
INSERT INTO documents (tenant_id, collection_id, title, file_name, mime_type, sha256, status, step, chunking_method,
                       metadata, added_by)
SELECT rag_tenant(), %(collection_id)s, %(title)s, %(file_name)s, 'text/plain', 'registered ' || gen_random_uuid(),
       'registered', 'chunk', %(chunking_method)s, %(metadata)s, (SELECT id FROM accounts WHERE id = %(added_by)s)
RETURNING id

-- name_document --
-- Store the title an administrator gave it, which no title within the file replaces.
UPDATE documents SET title = %(title)s, metadata = metadata || %(metadata)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- await_steps --
-- Store new text and remove the chunks of the old one; the document can be searched again once it is embedded.
UPDATE documents
SET status = 'registered', step = 'chunk', message = '', page_count = %(page_count)s,
    character_count = %(character_count)s, chunk_count = %(chunk_count)s, language = %(language)s,
    empty_pages = '{}', estimate = NULL, updated_at = now(),
    metadata = metadata - '{sections,summary,topics,questions,suggested_questions,suggested_elsewhere,
                            untagged_chunks}'::text[]
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- remove_chunks --
-- Remove a document's chunks before it is split again.
DELETE FROM document_chunks WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- add_bare_chunk --
-- Add a chunk without a vector; many are sent in one pipeline.
INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, chunk_index, metadata, first_page,
                             last_page, start_character, end_character, section, tokens)
VALUES (%(document_id)s, rag_tenant(), %(collection_id)s, %(content)s, %(chunk_index)s, %(metadata)s, %(first_page)s,
        %(last_page)s, %(start)s, %(end)s, %(section)s, %(tokens)s)

-- set_chunk_tags --
-- Store tags that somebody set by hand, beside the others.
UPDATE document_chunks SET metadata = metadata || %(tags)s
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s AND chunk_index = %(chunk_index)s

-- bare_chunks --
-- List the chunks without a vector of this model, in their order.
SELECT chunk_index, content, first_page, last_page, start_character, end_character, section
FROM document_chunks
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s
  AND (embedding IS NULL OR embedding_model <> %(embedding_model)s)
ORDER BY chunk_index

-- set_vectors --
-- Store the vectors of a whole batch of chunks in one statement.
UPDATE document_chunks c SET embedding = made.embedding, embedding_model = %(embedding_model)s
FROM unnest(%(embeddings)b::halfvec[], %(indexes)b::integer[]) AS made (embedding, chunk_index)
WHERE c.tenant_id = rag_tenant() AND c.document_id = %(document_id)s AND c.chunk_index = made.chunk_index
