-- What administrators corrected in the text of pages.

-- page_corrections --
-- List the corrections of a document in all its versions, the latest first; or those alone that no other one follows.
SELECT c.id, c.page, c.read_hash, c.text_before, c.text_after, c.corrected_by, coalesce(a.name, '') AS corrected_by_name,
       c.created_at, NOT EXISTS (SELECT FROM page_corrections n WHERE n.follows = c.id) AS is_latest
FROM page_corrections c
LEFT JOIN accounts a ON a.id = c.corrected_by
WHERE c.tenant_id = rag_tenant() AND c.original_id = %(original_id)s
  AND NOT (%(only_latest)s AND EXISTS (SELECT FROM page_corrections n WHERE n.follows = c.id))
ORDER BY c.created_at DESC, c.id

-- add_page_correction --
-- Keep what a page says from now on, or that it says again what was read.
INSERT INTO page_corrections (tenant_id, collection_id, original_id, page, place, read_hash, text_before, text_after,
                              follows, corrected_by)
VALUES (rag_tenant(), %(collection_id)s, %(original_id)s, %(page)s, %(place)s, %(read_hash)s, %(text_before)s,
        %(text_after)s, %(follows)s,
        (SELECT id FROM accounts WHERE tenant_id = rag_tenant() AND id = rag_account()))

-- add_corrected_version --
-- Add a version with other texts of pages, to be processed at once: passages that stay keep their vectors and tags.
INSERT INTO documents (tenant_id, collection_id, title, file_name, file_path, file_size, mime_type, sha256, status,
                       step, page_count, empty_pages, character_count, language, chunking_method, generate_metadata,
                       pdf_type, metadata, estimate, sync_key, added_by, upload_folder, original_id, is_correction, version)
SELECT tenant_id, collection_id, title, file_name, file_path, file_size, mime_type, sha256, 'processing',
       'chunk', page_count, empty_pages, character_count, language, chunking_method, generate_metadata,
       pdf_type, metadata - 'chunk_spans', %(estimate)s, sync_key, added_by, upload_folder, original_id, true,
       (SELECT max(v.version) + 1 FROM documents v WHERE v.original_id = d.original_id)
FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s
RETURNING id

-- correct_page --
-- Store the text of a page, and what was read where that is another one; many are sent in one pipeline.
UPDATE document_pages SET text = %(text)s, characters = %(characters)s, language = %(language)s, read_text = %(read_text)s
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s AND number = %(number)s

-- version_to_correct --
-- Find the latest version that answers, or that will with corrections made before; and whether another one is made.
SELECT (SELECT d.id FROM documents d
        WHERE d.tenant_id = rag_tenant() AND d.original_id = %(original_id)s
          AND (d.status = 'completed' OR d.status = 'processing' AND d.is_correction)
        ORDER BY d.version DESC LIMIT 1) AS id,
       EXISTS (SELECT FROM documents d
               WHERE d.tenant_id = rag_tenant() AND d.original_id = %(original_id)s AND NOT d.is_correction
                 AND d.status IN ('reading', 'estimated', 'processing')) AS is_other_made

-- embedded_texts --
-- List the chunks of all versions of a document that have a vector of this model, by what a vector is made from.
SELECT DISTINCT md5(k.content), k.section
FROM documents d JOIN document_chunks k ON k.tenant_id = d.tenant_id AND k.document_id = d.id
WHERE d.tenant_id = rag_tenant() AND d.original_id = %(original_id)s
  AND k.embedding_model = %(embedding_model)s AND k.embedding IS NOT NULL

-- take_over_chunks --
-- Add the chunks of a version with corrected pages whose text another version has, with their vectors and tags; list
-- which these are.
INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, embedding, chunk_index, metadata,
                             embedding_model, first_page, last_page, start_character, end_character, section, tokens)
SELECT DISTINCT ON (c.chunk_index)
       d.id, d.tenant_id, d.collection_id, k.content, k.embedding, c.chunk_index,
       k.metadata - 'corrected_pages' || c.metadata::jsonb, k.embedding_model, c.first_page, c.last_page,
       c.start_character, c.end_character, k.section, k.tokens
FROM documents d
JOIN documents v ON v.tenant_id = d.tenant_id AND v.original_id = d.original_id AND v.id <> d.id
JOIN document_chunks k ON k.tenant_id = v.tenant_id AND k.document_id = v.id
JOIN unnest(%(contents)s::text[], %(sections)s::text[], %(indexes)s::integer[], %(metadata)s::text[],
            %(first_pages)s::integer[], %(last_pages)s::integer[], %(starts)s::integer[], %(ends)s::integer[])
    AS c (content, section, chunk_index, metadata, first_page, last_page, start_character, end_character)
    ON k.content = c.content AND k.section = c.section
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s AND d.is_correction
  AND k.embedding_model = %(embedding_model)s AND k.embedding IS NOT NULL
ORDER BY c.chunk_index, v.version DESC
RETURNING chunk_index
