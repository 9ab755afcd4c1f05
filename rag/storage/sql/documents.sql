-- Documents from upload to deletion, their pages and chunks, and the jobs that work on them.

-- find_documents --
-- List documents of the tenant, newest first; fields that only the pipeline needs stay out of the metadata.
SELECT d.id, d.tenant_id, d.collection_id, d.title, d.file_name, d.file_path, d.file_size, d.mime_type, d.sha256,
       d.status, d.step, d.steps_done, d.steps_total, d.message, d.page_count, d.empty_pages, d.character_count,
       d.chunk_count, d.language, d.chunking_method, d.generate_metadata, d.estimate, d.costs, d.processing_ms,
       d.metadata - '{sections,chunk_spans}'::text[] AS metadata,
       d.added_by, coalesce(rag_name_of(d.added_by), '') AS added_by_name, d.created_at, d.updated_at,
       d.original_id, d.version, d.published_at, d.superseded_at, d.pending_steps, d.repeated_calls,
       d.sync_key IS NOT NULL AS is_synced, d.pdf_type, d.ocr_pages, d.is_waiting, d.folder, d.tags, d.owner_id,
       coalesce(rag_name_of(d.owner_id), '') AS owner_name, d.valid_from, d.valid_until, d.review_on, d.corrected_language,
       d.confirmed_up_to, d.binned_at, d.upload_folder
FROM documents d
WHERE d.tenant_id = rag_tenant()
  AND (%(document_id)s::uuid IS NULL OR d.id = %(document_id)s)
  AND (%(collection_id)s::uuid IS NULL OR d.collection_id = %(collection_id)s)
  AND (%(sha256)s::text IS NULL OR d.sha256 = %(sha256)s)
  AND (%(original_id)s::uuid IS NULL OR d.original_id = %(original_id)s)
  AND (%(with_superseded)s OR d.status <> 'superseded')
  AND (d.status <> 'binned' OR %(status)s::text = 'binned')
  AND (%(status)s::text IS NULL OR d.status = %(status)s)
ORDER BY d.created_at DESC, d.version DESC, d.id
LIMIT %(limit)s OFFSET %(offset)s

-- library_page --
-- List one page of the documents that meet the filters, in the order asked for; posts of notice boards come last. The
-- page is chosen by ids, so that large columns are read for its rows only.
SELECT d.id, d.tenant_id, d.collection_id, d.title, d.file_name, d.file_path, d.file_size, d.mime_type, d.sha256,
       d.status, d.step, d.steps_done, d.steps_total, d.message, d.page_count, d.empty_pages, d.character_count,
       d.chunk_count, d.language, d.chunking_method, d.generate_metadata, d.estimate, d.costs, d.processing_ms,
       d.metadata - '{sections,chunk_spans}'::text[] AS metadata,
       d.added_by, coalesce(rag_name_of(d.added_by), '') AS added_by_name, d.created_at, d.updated_at,
       d.original_id, d.version, d.published_at, d.superseded_at, d.pending_steps, d.repeated_calls,
       d.sync_key IS NOT NULL AS is_synced, d.pdf_type, d.ocr_pages, d.is_waiting, d.folder, d.tags, d.owner_id,
       coalesce(rag_name_of(d.owner_id), '') AS owner_name, d.valid_from, d.valid_until, d.review_on, d.corrected_language,
       d.confirmed_up_to, d.binned_at
FROM unnest(ARRAY(
    SELECT d.id
    FROM documents d JOIN collections c ON c.id = d.collection_id
    WHERE d.tenant_id = (SELECT rag_tenant()) AND rag_is_listed(
        d, %(document_ids)s, %(collection_id)s, %(statuses)s, %(language)s, %(method)s, %(mime_type)s, %(text)s,
    %(found_ids)s, %(folder)s, %(tag)s, %(owner_id)s, %(due)s)
    ORDER BY c.profile = ANY (%(board_profiles)s),
             CASE %(sort)s::text WHEN 'title' THEN lower(d.title) WHEN 'language' THEN d.language END,
             CASE %(sort)s::text WHEN 'pages' THEN d.page_count WHEN 'chunks' THEN d.chunk_count WHEN 'size' THEN d.file_size
                 WHEN 'cost' THEN coalesce((d.costs ->> 'total')::numeric, 0) END DESC,
             CASE WHEN %(sort)s::text = 'oldest' THEN d.created_at END, d.created_at DESC, d.version DESC, d.id
    LIMIT %(limit)s OFFSET %(offset)s
)) WITH ORDINALITY AS page (id, place)
JOIN documents d ON d.id = page.id
ORDER BY page.place

-- library_count --
-- Count the documents that meet the filters, and find when the newest of them was added.
SELECT count(*), max(d.created_at)
FROM documents d
WHERE d.tenant_id = (SELECT rag_tenant()) AND rag_is_listed(
    d, %(document_ids)s, %(collection_id)s, %(statuses)s, %(language)s, %(method)s, %(mime_type)s, %(text)s,
    %(found_ids)s, %(folder)s, %(tag)s, %(owner_id)s, %(due)s)

-- library_shares --
-- Count, of the documents that meet the filters, those that can be tried again, and those with metadata whose tags are
-- incomplete.
SELECT count(*) FILTER (WHERE d.status IN ('failed', 'needs_ocr')),
       count(*) FILTER (WHERE d.status = 'completed' AND d.generate_metadata AND (
           coalesce(d.metadata ->> 'summary', '') = '' OR coalesce(d.metadata ->> 'untagged_chunks', '0') <> '0'))
FROM documents d
WHERE d.tenant_id = (SELECT rag_tenant()) AND rag_is_listed(
    d, %(document_ids)s, %(collection_id)s, %(statuses)s, %(language)s, %(method)s, %(mime_type)s, %(text)s,
    %(found_ids)s, %(folder)s, %(tag)s, %(owner_id)s, %(due)s)

-- library_names --
-- List the names of documents that meet the filters, newest first; `until` leaves out documents added after that time.
SELECT d.id, d.title, d.file_name, d.created_at
FROM documents d
WHERE d.tenant_id = (SELECT rag_tenant()) AND rag_is_listed(
    d, %(document_ids)s, %(collection_id)s, %(statuses)s, %(language)s, %(method)s, %(mime_type)s, %(text)s,
    %(found_ids)s, %(folder)s, %(tag)s, %(owner_id)s, %(due)s)
  AND (%(until)s::timestamptz IS NULL OR d.created_at <= %(until)s)
  AND (NOT %(is_untagged)s OR d.status = 'completed' AND d.generate_metadata AND (
       coalesce(d.metadata ->> 'summary', '') = '' OR coalesce(d.metadata ->> 'untagged_chunks', '0') <> '0'))
ORDER BY d.created_at DESC, d.id
LIMIT %(limit)s

-- library_figures --
-- Count the library's documents by everything it can be filtered by; unknown costs are counted separately. Of earlier
-- versions and of what is in the bin only the costs count: what was spent stays spent. So do requests that several
-- documents shared, which are in a row of their own.
SELECT collection_id, status, language, chunking_method, mime_type,
       count(*) FILTER (WHERE status NOT IN ('superseded', 'binned')) AS documents,
       coalesce(sum(page_count) FILTER (WHERE status NOT IN ('superseded', 'binned')), 0) AS pages,
       coalesce(sum(chunk_count) FILTER (WHERE status NOT IN ('superseded', 'binned')), 0) AS chunks,
       coalesce(sum((costs ->> 'total')::numeric), 0) AS cost,
       count(*) FILTER (WHERE costs ? 'total') - count(costs ->> 'total') AS unpriced,
       coalesce(sum((estimate ->> 'total')::numeric), 0) AS estimated,
       coalesce(sum(coalesce(estimate ->> 'low', estimate ->> 'total')::numeric), 0) AS low,
       coalesce(sum(coalesce(estimate ->> 'high', estimate ->> 'total')::numeric), 0) AS high,
       count(*) FILTER (WHERE estimate ? 'total') - count(estimate ->> 'total') AS unpriced_estimates,
       max(created_at) AS created_at, max(updated_at) AS updated_at
FROM documents
WHERE tenant_id = (SELECT rag_tenant())
GROUP BY collection_id, status, language, chunking_method, mime_type
UNION ALL
SELECT collection_id, 'superseded', '', 'smart', '', 0, 0, 0, coalesce(sum(cost), 0), count(*) - count(cost),
       0, 0, 0, 0, max(created_at), max(created_at)
FROM cost_ledger
WHERE tenant_id = (SELECT rag_tenant()) AND operation = 'embedding' AND collection_id IS NOT NULL
  AND document_id IS NULL AND chat_log_id IS NULL
GROUP BY collection_id

-- sample_documents --
-- List the documents and posts that the product added as samples, except in the bin and where a person added a version.
SELECT coalesce(array_agg(d.id), '{}') FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.status NOT IN ('superseded', 'binned')
  AND d.collection_id = ANY(ARRAY(SELECT c.id FROM collections c WHERE c.tenant_id = rag_tenant()))
  AND (d.is_sample OR EXISTS (
      SELECT FROM collection_sources s
      WHERE s.tenant_id = rag_tenant() AND s.collection_id = d.collection_id AND s.kind = %(kind)s))
  AND NOT EXISTS (
      SELECT FROM documents v
      WHERE v.tenant_id = rag_tenant() AND v.original_id = d.original_id AND v.status <> 'binned'
        AND (v.is_correction OR NOT v.is_sample AND v.sync_key IS NULL))

-- documents_at_work --
-- List documents that are being read, processed or tagged, in the order in which the worker takes them.
SELECT id, status FROM documents
WHERE tenant_id = (SELECT rag_tenant())
  AND (status IN ('reading', 'processing') OR pending_steps <> '{}' AND status <> 'binned')
ORDER BY steps_total > 0 DESC, created_at, id
LIMIT %(limit)s

-- count_documents_at_work --
-- Count the documents that are being read, processed or tagged.
SELECT count(*) FROM documents
WHERE tenant_id = (SELECT rag_tenant())
  AND (status IN ('reading', 'processing') OR pending_steps <> '{}' AND status <> 'binned')

-- confirmable_documents --
-- List documents that wait for confirmation, with the estimate that somebody has seen.
SELECT id FROM documents
WHERE tenant_id = (SELECT rag_tenant()) AND status = 'estimated' AND updated_at <= %(until)s
ORDER BY created_at, id

-- searchable_collections --
-- List collections with a published document.
SELECT c.id FROM collections c
WHERE c.tenant_id = (SELECT rag_tenant())
  AND EXISTS (SELECT FROM documents d
              WHERE d.tenant_id = (SELECT rag_tenant()) AND d.collection_id = c.id AND d.status = 'completed')

-- board_categories --
-- List the categories of a notice board's posts by their slugs.
SELECT DISTINCT post."categorySlug" AS slug,
       coalesce(nullif(post."categoryName", ''), nullif(post.category, ''), post."categorySlug") AS name
FROM documents d
CROSS JOIN LATERAL jsonb_to_record(d.metadata) AS post ("categorySlug" text, "categoryName" text, category text)
WHERE d.tenant_id = (SELECT rag_tenant()) AND d.collection_id = %(collection_id)s AND d.status NOT IN ('superseded', 'binned')
  AND post."categorySlug" <> ''

-- document_years --
-- List the years that the searchable documents of a collection are about, the latest first.
SELECT DISTINCT (said.year #>> '{}')::numeric::integer AS year
FROM documents d
CROSS JOIN LATERAL jsonb_array_elements(
    jsonb_build_array(d.metadata -> 'year')
    || CASE jsonb_typeof(d.metadata -> 'years') WHEN 'array' THEN d.metadata -> 'years' ELSE '[]' END
) AS said (year)
WHERE d.tenant_id = (SELECT rag_tenant()) AND d.collection_id = %(collection_id)s AND d.status = 'completed'
  AND CASE jsonb_typeof(said.year) WHEN 'number' THEN (said.year #>> '{}')::numeric BETWEEN 1 AND 9999 ELSE false END
ORDER BY year DESC
LIMIT 100

-- board_figures --
-- Count a notice board's posts by category, with their marks and the unfinished ones.
SELECT coalesce(nullif(post."categoryName", ''), nullif(post.category, ''), post."categorySlug", '') AS category,
       count(*) AS posts, count(*) FILTER (WHERE post."isPinned" = 'true') AS pinned,
       count(*) FILTER (WHERE post."isImportant" = 'true') AS important,
       count(*) FILTER (WHERE coalesce(post."attachmentCount", '0') <> '0') AS with_attachments,
       count(*) FILTER (WHERE d.status IN ('reading', 'processing')) AS at_work
FROM documents d
CROSS JOIN LATERAL jsonb_to_record(d.metadata) AS post (
    "postId" text, "categorySlug" text, "categoryName" text, category text, "isPinned" jsonb, "isImportant" jsonb,
    "attachmentCount" text)
WHERE d.tenant_id = (SELECT rag_tenant()) AND d.collection_id = %(collection_id)s AND d.status NOT IN ('superseded', 'binned')
  AND post."postId" IS NOT NULL AND (d.status = 'completed' OR NOT %(only_ready)s)
GROUP BY 1
ORDER BY 1

-- board_page --
-- List one page of a board's posts that meet the filters: pinned first, then important, then the latest by the post's
-- own day, as ISO text or in milliseconds since 1970, in Korea.
SELECT d.id, d.tenant_id, d.collection_id, d.title, d.file_name, d.file_path, d.file_size, d.mime_type, d.sha256,
       d.status, d.step, d.steps_done, d.steps_total, d.message, d.page_count, d.empty_pages, d.character_count,
       d.chunk_count, d.language, d.chunking_method, d.generate_metadata, d.estimate, d.costs, d.processing_ms,
       d.metadata - '{sections,chunk_spans}'::text[] AS metadata,
       d.added_by, '' AS added_by_name, d.created_at, d.updated_at,
       d.original_id, d.version, d.published_at, d.superseded_at, d.pending_steps, d.repeated_calls,
       d.sync_key IS NOT NULL AS is_synced, d.pdf_type, d.ocr_pages, d.is_waiting
FROM unnest(ARRAY(
    SELECT d.id
    FROM documents d
    CROSS JOIN LATERAL jsonb_to_record(d.metadata) AS post (
        "postId" text, "categorySlug" text, "categoryName" text, category text, "isPinned" jsonb, "isImportant" jsonb,
        "attachmentCount" text, "backdatedAt" jsonb, backdated_at jsonb, "createdAt" jsonb, created_at jsonb)
    CROSS JOIN LATERAL (
        SELECT CASE jsonb_typeof(given.moment)
            WHEN 'number' THEN
                to_char(to_timestamp((given.moment #>> '{}')::numeric / 1000) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD')
            ELSE left(given.moment #>> '{}', 10) END AS day
        FROM (VALUES (1, post."backdatedAt"), (2, post.backdated_at), (3, post."createdAt"), (4, post.created_at),
                     (5, to_jsonb(to_char(d.created_at, 'YYYY-MM-DD')))) AS given (place, moment)
        WHERE given.moment #>> '{}' ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}'
           OR jsonb_typeof(given.moment) = 'number' AND (given.moment #>> '{}')::numeric > 0
        ORDER BY given.place
        LIMIT 1
    ) AS written
    WHERE d.tenant_id = (SELECT rag_tenant()) AND d.collection_id = %(collection_id)s AND d.status NOT IN ('superseded', 'binned')
      AND post."postId" IS NOT NULL AND (d.status = 'completed' OR NOT %(only_ready)s)
      AND (%(text)s::text IS NULL OR strpos(lower(d.title), %(text)s) > 0)
      AND (%(categories)s::text[] IS NULL OR
           coalesce(nullif(post."categoryName", ''), nullif(post.category, ''), post."categorySlug", '')
               = ANY (%(categories)s))
      AND (NOT %(is_pinned)s OR post."isPinned" = 'true')
      AND (NOT %(is_important)s OR post."isImportant" = 'true')
      AND (NOT %(has_attachments)s OR coalesce(post."attachmentCount", '0') <> '0')
    ORDER BY (post."isPinned" = 'true') IS TRUE DESC, (post."isImportant" = 'true') IS TRUE DESC,
             written.day DESC, d.created_at DESC, d.id
    LIMIT %(limit)s OFFSET %(offset)s
)) WITH ORDINALITY AS page (id, place)
JOIN documents d ON d.id = page.id
ORDER BY page.place

-- board_count --
-- Count the posts of a board that meet the filters.
SELECT count(*)
FROM documents d
CROSS JOIN LATERAL jsonb_to_record(d.metadata) AS post (
    "postId" text, "categorySlug" text, "categoryName" text, category text, "isPinned" jsonb, "isImportant" jsonb,
    "attachmentCount" text)
WHERE d.tenant_id = (SELECT rag_tenant()) AND d.collection_id = %(collection_id)s AND d.status NOT IN ('superseded', 'binned')
  AND post."postId" IS NOT NULL AND (d.status = 'completed' OR NOT %(only_ready)s)
  AND (%(text)s::text IS NULL OR strpos(lower(d.title), %(text)s) > 0)
  AND (%(categories)s::text[] IS NULL OR
       coalesce(nullif(post."categoryName", ''), nullif(post.category, ''), post."categorySlug", '')
           = ANY (%(categories)s))
  AND (NOT %(is_pinned)s OR post."isPinned" = 'true')
  AND (NOT %(is_important)s OR post."isImportant" = 'true')
  AND (NOT %(has_attachments)s OR coalesce(post."attachmentCount", '0') <> '0')

-- count_documents --
-- Count the documents of a list.
SELECT count(*) FROM documents
WHERE tenant_id = rag_tenant() AND status NOT IN ('superseded', 'binned')
  AND (%(collection_id)s::uuid IS NULL OR collection_id = %(collection_id)s)
  AND (%(status)s::text IS NULL OR status = %(status)s)

-- lock_name --
-- Make uploads of the same name into one collection wait for each other until their transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('name ' || %(collection_id)s::text || ' ' || %(file_name)s, 0))

-- add_document --
-- Add a document, or the next version of the one with that name and upload folder; no row when a document of the
-- collection has its content already. The content of an earlier version of it becomes the next version like any other.
-- Who adds the first version owns it; the later ones keep the owner.
INSERT INTO documents (tenant_id, collection_id, title, file_name, file_path, file_size, mime_type, sha256, status,
                       step, steps_total, page_count, chunking_method, generate_metadata, pdf_type, added_by,
                       owner_id, confirmed_up_to, is_sample, upload_folder, folder, original_id, version)
SELECT rag_tenant(), %(collection_id)s, %(title)s, %(file_name)s, %(file_path)s, %(file_size)s, %(mime_type)s,
       %(sha256)s, 'reading', 'extract', %(page_count)s, %(page_count)s, %(chunking_method)s, %(generate_metadata)s,
       %(pdf_type)s,
       (SELECT id FROM accounts WHERE id = %(added_by)s), (SELECT id FROM accounts WHERE id = %(added_by)s),
       %(confirmed_up_to)s, %(is_sample)s, %(upload_folder)s,
       CASE WHEN known.original_id IS NULL THEN %(upload_folder)s ELSE '' END, known.original_id,
       coalesce(known.version, 0) + 1
FROM (SELECT) AS one
LEFT JOIN LATERAL (
    SELECT d.original_id, (SELECT max(v.version) FROM documents v WHERE v.original_id = d.original_id) AS version
    FROM documents d
    WHERE d.tenant_id = rag_tenant() AND d.collection_id = %(collection_id)s AND d.status <> 'binned'
      AND (d.id = %(replaces)s
           OR %(replaces)s::uuid IS NULL AND d.file_name = %(file_name)s AND d.upload_folder = %(upload_folder)s
              AND %(is_version)s)
    ORDER BY d.status = 'completed' DESC, d.created_at DESC
    LIMIT 1
) AS known ON true
WHERE NOT EXISTS (
    SELECT FROM documents d
    WHERE d.tenant_id = rag_tenant() AND d.collection_id = %(collection_id)s AND d.sha256 = %(sha256)s
      AND d.status <> 'binned'
      AND (d.status <> 'superseded' OR d.original_id IS DISTINCT FROM known.original_id))
ON CONFLICT (tenant_id, collection_id, sha256, version) WHERE status <> 'binned' DO NOTHING
RETURNING id

-- add_version --
-- Add a version that processes the same file differently: pages are copied, nothing is read again.
INSERT INTO documents (tenant_id, collection_id, title, file_name, file_path, file_size, mime_type, sha256, status,
                       step, page_count, empty_pages, character_count, language, chunking_method, generate_metadata,
                       pdf_type, metadata, added_by, is_sample, upload_folder, original_id, version)
SELECT tenant_id, collection_id, title, file_name, file_path, file_size, mime_type, sha256, 'estimated',
       'chunk', page_count, empty_pages, character_count, language, %(chunking_method)s, generate_metadata,
       pdf_type, metadata - 'chunk_spans', added_by, is_sample, upload_folder, original_id,
       (SELECT max(v.version) + 1 FROM documents v WHERE v.original_id = d.original_id)
FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s
RETURNING id

-- add_version_to_read --
-- Add a version that reads the same file differently.
INSERT INTO documents (tenant_id, collection_id, title, file_name, file_path, file_size, mime_type, sha256, status,
                       step, steps_total, page_count, chunking_method, generate_metadata, pdf_type, added_by,
                       confirmed_up_to, is_sample, upload_folder, original_id, version)
SELECT tenant_id, collection_id, title, file_name, file_path, file_size, mime_type, sha256, 'reading',
       'extract', page_count, page_count, chunking_method, generate_metadata, %(pdf_type)s, added_by,
       %(confirmed_up_to)s, is_sample, upload_folder, original_id,
       (SELECT max(v.version) + 1 FROM documents v WHERE v.original_id = d.original_id)
FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s
RETURNING id

-- read_again --
-- Read an unpublished document again and overwrite its pages.
UPDATE documents
SET status = 'reading', step = 'extract', pdf_type = %(pdf_type)s, ocr_pages = '{}', steps_done = 0, message = '',
    starts = 0, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status IN ('failed', 'needs_ocr', 'estimated')

-- copy_pages --
-- Copy the pages of one version to another one of the same file.
INSERT INTO document_pages
    (document_id, number, tenant_id, text, characters, method, language, label, warnings, marks, read_text)
SELECT %(new_id)s, number, tenant_id, text, characters, method, language, label, warnings, marks, read_text
FROM document_pages WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- note_estimate --
-- Store the estimated cost of processing.
UPDATE documents SET estimate = %(estimate)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- lock_versions --
-- Make publishing, restoring and deleting versions of one document wait for each other until their transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('versions ' || %(original_id)s::text, 0))

-- hold_embedding_model --
-- Read the model of the collection's vectors and keep it unchanged until this transaction ends.
SELECT embedding_model FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s FOR SHARE

-- later_version_answers --
-- Tell whether a later version is published already.
SELECT other.id
FROM documents own JOIN documents other ON other.original_id = own.original_id AND other.id <> own.id
WHERE own.tenant_id = rag_tenant() AND own.id = %(document_id)s
  AND other.status = 'completed' AND other.requested_at > own.requested_at

-- supersede_versions --
-- Supersede the published version; it stays listed and can be restored.
UPDATE documents SET status = 'superseded', superseded_at = now(), updated_at = now()
WHERE tenant_id = rag_tenant() AND original_id = %(original_id)s AND id <> %(document_id)s AND status = 'completed'
RETURNING id

-- ask_again --
-- Make this version later than any other.
UPDATE documents SET requested_at = clock_timestamp() WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- ask_again_after_published --
-- Make this version later than the published one.
UPDATE documents d SET requested_at = clock_timestamp()
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s
  AND EXISTS (SELECT FROM documents other WHERE other.tenant_id = d.tenant_id AND other.original_id = d.original_id
              AND other.status = 'completed' AND other.requested_at > d.requested_at)

-- models_of_document --
-- List the models of a document's vectors.
SELECT DISTINCT embedding_model FROM document_chunks
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- restore_version --
-- Publish an earlier version again.
UPDATE documents
SET status = 'completed', step = 'publish', superseded_at = NULL, published_at = now(), updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status = 'superseded'

-- await_confirmation --
-- Let an earlier version whose vectors have to be made again wait for confirmation of their cost.
UPDATE documents
SET status = 'estimated', step = 'chunk', steps_done = 0, steps_total = 0, estimate = %(estimate)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status = 'superseded'

-- ask_for_step --
-- Ask for a single step of a published document.
UPDATE documents
SET pending_steps = array_append(array_remove(pending_steps, %(step)s), %(step)s), updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status = 'completed'

-- finish_step --
-- Note that a single step is finished.
UPDATE documents
SET pending_steps = array_remove(pending_steps, %(step)s), message = %(message)s, is_waiting = false,
    costs = %(costs)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- forget_tags --
-- Remove a document's tags before it is tagged again.
UPDATE documents SET metadata = metadata - '{summary,topics,questions,untagged_chunks}'::text[]
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- forget_chunk_tags --
-- Remove the tags of all chunks before they are tagged again.
UPDATE document_chunks SET metadata = metadata - %(fields)s::text[]
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- untagged_chunks --
-- List chunks without tags.
SELECT id, content FROM document_chunks
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s AND NOT metadata ? 'summary'
ORDER BY chunk_index

-- tag_chunk --
-- Store the tags of a chunk.
UPDATE document_chunks SET metadata = metadata || %(tags)s
WHERE tenant_id = rag_tenant() AND id = %(chunk_id)s

-- commit_without_waiting --
-- Let this transaction become durable a moment after its commit, as a whole; for work that can be done again.
SELECT set_config('synchronous_commit', 'off', true)

-- count_repeated_call --
-- Count how often a call was sent again after a kill.
UPDATE documents SET repeated_calls = repeated_calls + %(times)s
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- note_start --
-- Note that work begins, and count the starts since the last progress.
UPDATE documents SET starts = starts + 1 WHERE tenant_id = rag_tenant() AND id = %(document_id)s RETURNING starts

-- note_orderly_end --
-- Note that work ended without taking its process with it.
UPDATE documents SET starts = 0 WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND starts > 0

-- lock_stored_file --
-- Make uploading and deleting the same content wait for each other until their transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('file ' || rag_tenant() || ' ' || %(file_path)s, 0))

-- file_is_used --
-- Tell whether a document of the tenant still needs a stored file.
SELECT EXISTS (SELECT FROM documents WHERE tenant_id = rag_tenant() AND file_path = %(file_path)s)

-- bin_documents --
-- Move documents into the bin: all versions of a published one, else the one version. Each keeps the status it had.
UPDATE documents d
SET status = 'binned', status_before = d.status, binned_at = now(), updated_at = now(),
    binned_by = (SELECT id FROM accounts WHERE id = rag_account())
FROM documents wanted
WHERE wanted.tenant_id = rag_tenant() AND wanted.id = ANY (%(document_ids)s::uuid[]) AND wanted.status <> 'binned'
  AND (NOT %(is_unconfirmed)s OR wanted.status IN ('reading', 'estimated'))
  AND d.tenant_id = rag_tenant() AND d.status <> 'binned'
  AND (d.id = wanted.id OR wanted.status = 'completed' AND d.original_id = wanted.original_id)
RETURNING d.id, d.collection_id, d.status_before

-- bin_documents_of --
-- Move all documents of a collection into the bin. Each keeps the status it had.
UPDATE documents
SET status = 'binned', status_before = status, binned_at = now(), updated_at = now(),
    binned_by = (SELECT id FROM accounts WHERE id = rag_account())
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND status <> 'binned'
RETURNING id, status_before

-- binned_documents --
-- List the bin, the latest first; of a document with several versions the published one, else the latest.
SELECT * FROM (
    SELECT DISTINCT ON (d.original_id, d.binned_at) d.id, d.title, d.file_name, d.version, d.page_count, d.collection_id,
           d.binned_at, coalesce(a.name, '') AS binned_by_name
    FROM documents d LEFT JOIN accounts a ON a.id = d.binned_by
    WHERE d.tenant_id = (SELECT rag_tenant()) AND d.status = 'binned'
    ORDER BY d.original_id, d.binned_at, d.status_before = 'completed' DESC, d.version DESC
) AS binned
ORDER BY binned_at DESC, title, id
LIMIT %(limit)s

-- count_binned --
-- Count the documents in the bin.
SELECT count(DISTINCT (original_id, binned_at)) FROM documents
WHERE tenant_id = (SELECT rag_tenant()) AND status = 'binned'

-- take_from_bin --
-- Restore documents to the status they had, with the versions that went into the bin with them. The published one
-- counts as an earlier version until it is indexed again.
UPDATE documents d
SET status = CASE d.status_before WHEN 'completed' THEN 'superseded' ELSE d.status_before END,
    status_before = NULL, binned_at = NULL, binned_by = NULL, starts = 0, updated_at = now()
FROM documents wanted, documents before
WHERE wanted.tenant_id = rag_tenant() AND wanted.id = ANY (%(document_ids)s::uuid[]) AND wanted.status = 'binned'
  AND d.tenant_id = rag_tenant() AND d.status = 'binned'
  AND d.original_id = wanted.original_id AND d.binned_at = wanted.binned_at AND before.id = d.id
RETURNING d.id, before.status_before

-- lock_versions_of_all --
-- Make publishing, restoring and deleting versions of these documents wait until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('versions ' || original_id::text, 0))
FROM (
    SELECT DISTINCT original_id FROM documents
    WHERE tenant_id = rag_tenant() AND id = ANY (%(document_ids)s::uuid[]) ORDER BY original_id
) AS originals

-- hold_embedding_models --
-- Keep the models of these documents' collections unchanged until this transaction ends.
SELECT id FROM collections
WHERE tenant_id = rag_tenant()
  AND id IN (SELECT collection_id FROM documents WHERE tenant_id = rag_tenant() AND id = ANY (%(document_ids)s::uuid[]))
ORDER BY id FOR SHARE

-- restore_versions --
-- Publish documents again whose vectors are of their collection's model and have no other version in their place.
-- With the collection of each; the others need a look at each.
UPDATE documents d
SET status = 'completed', step = 'publish', superseded_at = NULL, published_at = now(), updated_at = now(),
    requested_at = clock_timestamp()
FROM collections c
WHERE d.tenant_id = rag_tenant() AND d.id = ANY (%(document_ids)s::uuid[]) AND d.status = 'superseded'
  AND c.tenant_id = rag_tenant() AND c.id = d.collection_id
  AND c.embedding_model = ALL (SELECT k.embedding_model FROM document_chunks k
                               WHERE k.tenant_id = rag_tenant() AND k.document_id = d.id)
  AND EXISTS (SELECT FROM document_chunks k WHERE k.tenant_id = rag_tenant() AND k.document_id = d.id)
  AND NOT EXISTS (
      SELECT FROM documents other
      WHERE other.tenant_id = rag_tenant() AND other.original_id = d.original_id AND other.id <> d.id
        AND (other.status = 'completed' OR other.id = ANY (%(document_ids)s::uuid[]))
  )
RETURNING d.id, d.collection_id

-- take_out_of_bin_for_good --
-- Delete documents that have been in the bin for so long, or these documents with their versions.
DELETE FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.status = 'binned'
  AND (d.binned_at <= now() - make_interval(days => %(days)s)
       OR (d.original_id, d.binned_at) IN (
           SELECT w.original_id, w.binned_at FROM documents w
           WHERE w.tenant_id = rag_tenant() AND w.id = ANY (%(document_ids)s::uuid[])))
RETURNING d.id, d.file_path

-- enqueue_empty_bin --
-- Queue one waiting job per tenant at most, due when the first thing has been in the bin for so long.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at)
SELECT 'documents', 'empty_bin', 'bin ' || rag_tenant(), 'bin ' || rag_tenant(),
       jsonb_build_object('tenant_id', rag_tenant()), min(binned_at) + make_interval(days => %(days)s)
FROM (
    SELECT binned_at FROM documents WHERE tenant_id = rag_tenant() AND status = 'binned'
    UNION ALL SELECT binned_at FROM collections WHERE tenant_id = rag_tenant() AND binned_at IS NOT NULL
) AS binned
HAVING count(*) > 0
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- change_metadata --
-- Store what people write about documents, the first and the last day for the given version and the rest for all
-- versions; null leaves a field as it is.
UPDATE documents d
SET title = coalesce(%(title)s, d.title),
    metadata = CASE WHEN %(title)s::text IS NULL THEN d.metadata ELSE d.metadata || '{"is_named": true}' END,
    folder = coalesce(%(folder)s, d.folder),
    tags = ARRAY(SELECT DISTINCT tag FROM unnest(coalesce(%(tags)s::text[], d.tags) || coalesce(%(add_tags)s::text[], '{}'))
                 AS tag WHERE tag <> ALL (coalesce(%(remove_tags)s::text[], '{}')) ORDER BY tag),
    owner_id = CASE WHEN %(with_owner)s THEN (SELECT id FROM accounts WHERE id = %(owner_id)s) ELSE d.owner_id END,
    valid_from = CASE WHEN %(with_dates)s AND d.id = wanted.id THEN %(valid_from)s::date ELSE d.valid_from END,
    valid_until = CASE WHEN %(with_dates)s AND d.id = wanted.id THEN %(valid_until)s::date ELSE d.valid_until END,
    review_on = CASE WHEN %(with_dates)s THEN %(review_on)s::date ELSE d.review_on END,
    language = coalesce(%(language)s, d.language),
    corrected_language = coalesce(%(language)s, d.corrected_language),
    updated_at = now()
FROM documents wanted
WHERE wanted.tenant_id = rag_tenant() AND wanted.id = ANY (%(document_ids)s::uuid[]) AND wanted.status <> 'binned'
  AND d.tenant_id = rag_tenant() AND d.original_id = wanted.original_id
RETURNING d.id, d.collection_id, d.status

-- folders_and_tags --
-- List the folders and tags of the library with the number of documents in each.
SELECT 'folder' AS kind, folder AS name, count(*) AS documents FROM documents
WHERE tenant_id = (SELECT rag_tenant()) AND status NOT IN ('superseded', 'binned') AND folder <> ''
GROUP BY folder
UNION ALL
SELECT 'tag', tag, count(*) FROM documents CROSS JOIN unnest(tags) AS tag
WHERE tenant_id = (SELECT rag_tenant()) AND status NOT IN ('superseded', 'binned')
GROUP BY tag
ORDER BY kind, name

-- library_rows --
-- List the documents that meet the filters as rows of the table, with only the columns it shows, so that thousands are
-- read at once.
SELECT d.id, d.title, d.file_name, d.version, d.status, d.is_waiting, d.language, d.folder, d.tags, d.collection_id,
       coalesce(o.name, '') AS owner_name, d.updated_at, (d.costs ->> 'total')::numeric AS cost,
       d.costs ? 'total' AS has_cost, d.valid_until, d.review_on,
       jsonb_strip_nulls(jsonb_build_object(
           'repository', d.metadata -> 'repository', 'department', d.metadata -> 'department')) AS metadata
FROM documents d
JOIN collections c ON c.id = d.collection_id
LEFT JOIN accounts o ON o.id = d.owner_id
WHERE d.tenant_id = (SELECT rag_tenant()) AND rag_is_listed(
    d, %(document_ids)s, %(collection_id)s, %(statuses)s, %(language)s, %(method)s, %(mime_type)s, %(text)s,
    %(found_ids)s, %(folder)s, %(tag)s, %(owner_id)s, %(due)s)
ORDER BY c.profile = ANY (%(board_profiles)s),
         CASE %(sort)s::text WHEN 'title' THEN lower(d.title) WHEN 'language' THEN d.language END,
         CASE %(sort)s::text WHEN 'pages' THEN d.page_count WHEN 'chunks' THEN d.chunk_count WHEN 'size' THEN d.file_size
             WHEN 'cost' THEN coalesce((d.costs ->> 'total')::numeric, 0) END DESC,
         CASE WHEN %(sort)s::text = 'oldest' THEN d.created_at END, d.created_at DESC, d.version DESC, d.id
LIMIT %(limit)s

-- questions_of_document --
-- List questions that were answered from any version of a document, the latest first.
SELECT l.id, l.question, l.outcome, l.created_at
FROM chat_logs l
WHERE l.tenant_id = (SELECT rag_tenant()) AND l.kind = 'question' AND l.outcome IS NOT NULL
  AND l.document_ids && ARRAY(SELECT id FROM documents
                              WHERE tenant_id = (SELECT rag_tenant()) AND original_id = %(original_id)s)
ORDER BY l.created_at DESC
LIMIT %(limit)s

-- keyword_documents_of --
-- Find where the chunks of each document of these collections are in the keyword index.
SELECT k.document_id, array_position(%(collection_ids)s::uuid[], k.collection_id) - 1, k.first_passage,
       cardinality(k.chunk_ids)
FROM keyword_documents k
WHERE k.tenant_id = rag_tenant() AND k.collection_id = ANY (%(collection_ids)s::uuid[])

-- library_reminders --
-- List documents of an owner, or without one of everybody, that are due for review or no longer valid.
SELECT count(*) FILTER (WHERE d.valid_until < current_date) AS expired,
       count(*) FILTER (WHERE d.review_on <= current_date) AS to_review
FROM documents d
WHERE d.tenant_id = (SELECT rag_tenant()) AND d.status = 'completed'
  AND (%(owner_id)s::uuid IS NULL OR d.owner_id = %(owner_id)s)

-- expired_documents --
-- List the given documents that are not valid today: whether they were before, and their last or first day.
SELECT id, valid_until IS NOT NULL AND valid_until < current_date AS is_over,
       CASE WHEN valid_until < current_date THEN valid_until ELSE valid_from END AS day
FROM documents
WHERE tenant_id = (SELECT rag_tenant()) AND id = ANY (%(document_ids)s::uuid[]) AND (valid_until < current_date OR valid_from > current_date)

-- find_views --
-- List a person's saved views of the library.
SELECT id, name, filters FROM saved_views WHERE tenant_id = rag_tenant() AND account_id = %(account_id)s ORDER BY name

-- save_view --
-- Save filters under a name; the same name again takes the new filters.
INSERT INTO saved_views (tenant_id, account_id, name, filters)
VALUES (rag_tenant(), %(account_id)s, %(name)s, %(filters)s)
ON CONFLICT (account_id, name) DO UPDATE SET filters = excluded.filters

-- drop_view --
-- Remove a saved view.
DELETE FROM saved_views WHERE tenant_id = rag_tenant() AND account_id = %(account_id)s AND id = %(view_id)s

-- note_refused_file --
-- Note a file that was not accepted, and why.
INSERT INTO refused_files (tenant_id, account_id, file_name, file_size, reason)
VALUES (rag_tenant(), %(account_id)s, %(file_name)s, %(file_size)s, %(reason)s)

-- find_refused_files --
-- List a person's files that were not accepted, the latest first.
SELECT id, file_name, file_size, reason, created_at FROM refused_files
WHERE tenant_id = rag_tenant() AND account_id = %(account_id)s
ORDER BY created_at DESC, id
LIMIT 200

-- drop_refused_files --
-- Remove refused files that their owner has seen; all of them without an id.
DELETE FROM refused_files
WHERE tenant_id = rag_tenant() AND account_id = %(account_id)s AND (%(file_id)s::uuid IS NULL OR id = %(file_id)s)

-- replaced_document --
-- Find the version that this one would replace: the published one, else the latest that was added before it and waits or
-- is processed.
SELECT other.id FROM documents d JOIN documents other ON other.original_id = d.original_id AND other.id <> d.id
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s AND other.tenant_id = rag_tenant()
  AND (other.status = 'completed'
       OR other.status IN ('estimated', 'processing') AND other.requested_at < d.requested_at)
ORDER BY other.status = 'completed' DESC, other.requested_at DESC
LIMIT 1

-- keep_both --
-- Make a version that waits a document of its own. The others keep what they share, also when it was the first of them.
UPDATE documents d
SET original_id = gen_random_uuid(), version = 1, title = %(title)s, metadata = metadata || '{"is_named": true}',
    updated_at = now()
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s AND d.status = 'estimated'
  AND EXISTS (SELECT FROM documents v WHERE v.tenant_id = rag_tenant() AND v.original_id = d.original_id AND v.id <> d.id)

-- tenant_settings --
-- Read the settings that administrators chose for the whole tenant.
SELECT settings FROM tenants WHERE id = rag_tenant()

-- change_tenant_settings --
-- Change some of the settings of the whole tenant.
UPDATE tenants SET settings = settings || %(settings)s WHERE id = rag_tenant()

-- delete_document --
-- Delete a document with its pages, chunks, vectors and keywords: all versions of a published one. With states given,
-- delete that one version if it is in one of them.
WITH wanted AS (
    SELECT id, original_id, status FROM documents WHERE tenant_id = rag_tenant() AND id = %(document_id)s
)
DELETE FROM documents d USING wanted
WHERE d.tenant_id = rag_tenant()
  AND (d.id = wanted.id
       OR %(statuses)s::text[] IS NULL AND wanted.status IN ('completed', 'binned')
          AND d.original_id = wanted.original_id)
  AND (%(statuses)s::text[] IS NULL OR d.status = ANY (%(statuses)s))
RETURNING d.id, d.file_path

-- await_file_removal --
-- List files that no document needs any more for removal.
INSERT INTO file_removals (tenant_id, file_path)
SELECT DISTINCT rag_tenant(), gone.file_path
FROM unnest(%(file_paths)s::text[]) AS gone (file_path)
WHERE gone.file_path <> ''
ON CONFLICT DO NOTHING

-- enqueue_file_removal --
-- Queue the removal of files, one waiting job per tenant at most.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
VALUES ('documents', 'remove_files', 'files ' || %(tenant_id)s, 'files ' || %(tenant_id)s,
        jsonb_build_object('tenant_id', %(tenant_id)s::text))
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- waiting_file_removals --
-- List the files to be removed.
SELECT file_path FROM file_removals WHERE tenant_id = rag_tenant() ORDER BY attempts, created_at LIMIT 500

-- note_file_removal_failed --
-- Note why a file could not be removed; it is tried again.
UPDATE file_removals SET attempts = attempts + 1, last_error = %(error)s
WHERE tenant_id = rag_tenant() AND file_path = %(file_path)s

-- finish_file_removal --
-- Forget a file that is removed, or needed again.
DELETE FROM file_removals WHERE tenant_id = rag_tenant() AND file_path = %(file_path)s

-- confirm_document --
-- Confirm the estimate of a document, for an administrator.
UPDATE documents
SET status = 'processing', step = CASE WHEN ocr_pages = '{}' THEN 'chunk' ELSE 'recognise' END,
    steps_done = 0, steps_total = 0, message = '', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status = 'estimated'

-- hold_estimate --
-- Say why somebody is asked about an estimate that needs no confirmation otherwise.
UPDATE documents SET message = %(message)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status = 'estimated'

-- confirm_within_limit --
-- Confirm a document whose estimate is within its limit, unless it would replace another file.
UPDATE documents d
SET status = 'processing', step = CASE WHEN d.ocr_pages = '{}' THEN 'chunk' ELSE 'recognise' END,
    steps_done = 0, steps_total = 0, message = '', updated_at = now()
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s AND d.status = 'estimated'
  AND (d.estimate ->> 'total')::numeric <= d.confirmed_up_to
  AND NOT EXISTS (SELECT FROM documents other WHERE other.tenant_id = d.tenant_id AND other.original_id = d.original_id
                  AND other.id <> d.id AND other.sha256 <> d.sha256
                  AND (other.status = 'completed' OR other.status IN ('reading', 'estimated', 'processing')
                       AND other.requested_at < d.requested_at))

-- retry_document --
-- Resume a document: read it again when it had not been read, or when text recognition found nothing in it, else continue
-- with the step that failed.
UPDATE documents
SET status = CASE WHEN step = 'extract' OR (step = 'recognise' AND ocr_pages = '{}') THEN 'reading'
                  ELSE 'processing' END,
    step = CASE WHEN step = 'recognise' AND ocr_pages = '{}' THEN 'extract' ELSE step END,
    -- A scan declared as digital has to be recognised now.
    pdf_type = CASE WHEN status = 'needs_ocr' AND pdf_type = 'digital' THEN 'auto' ELSE pdf_type END,
    steps_done = 0, message = '', starts = 0, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status IN ('failed', 'needs_ocr')

-- find_pages --
-- List the pages of a document in their order.
SELECT document_id, number, text, characters, method, language, label, warnings, marks, read_text
FROM document_pages
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s
ORDER BY number
LIMIT %(limit)s OFFSET %(offset)s

-- count_pages --
-- Count the pages of a document.
SELECT count(*) FROM document_pages WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- find_chunks --
-- List the chunks of a document in their order, without their vectors.
SELECT id, document_id, chunk_index, content, first_page, last_page, start_character, end_character, section, tokens,
       embedding_model, embedding IS NOT NULL AS has_embedding, metadata
FROM document_chunks
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s
  AND (%(chunk_id)s::uuid IS NULL OR id = %(chunk_id)s)
ORDER BY chunk_index
LIMIT %(limit)s OFFSET %(offset)s

-- count_chunks --
-- Count the chunks of a document.
SELECT count(*) FROM document_chunks WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- suggestions --
-- List suggested questions from the metadata of searchable documents, newest document first: those known to be answered,
-- until they are chosen those a model wrote. With those in other languages than the document's, by language.
SELECT coalesce(metadata -> 'suggested_questions', metadata -> 'questions') AS questions, language,
       coalesce(metadata -> 'suggested_elsewhere', '{}') AS elsewhere, id
FROM documents
WHERE tenant_id = rag_tenant() AND collection_id = ANY (%(collection_ids)s) AND status = 'completed'
  AND metadata ?| '{questions,suggested_questions}'
  AND (%(document_ids)s::uuid[] IS NULL OR id = ANY (%(document_ids)s))
ORDER BY created_at DESC, id
LIMIT 50

-- Processing

-- claim_document --
-- Claim a document; true for one worker at a time, until its transaction ends or its connection dies.
SELECT pg_try_advisory_xact_lock(hashtextextended('document ' || %(document_id)s, 0))

-- sections_of_document --
-- Read the sections of a document's text.
SELECT metadata -> 'sections' FROM documents WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- chunk_spans --
-- Read the spans of a chunker that costs money; null before they are stored.
SELECT metadata -> 'chunk_spans' FROM documents WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- hold_document --
-- Keep the document from being deleted until this transaction ends; no row when it is gone or in the bin.
SELECT status FROM documents
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status <> 'binned' FOR NO KEY UPDATE

-- note_progress --
-- Store the progress of the current step.
UPDATE documents
SET step = %(step)s, steps_done = %(steps_done)s, steps_total = %(steps_total)s,
    starts = CASE WHEN %(elapsed_ms)s > 0 THEN 0 ELSE starts END,
    -- A finished step ends the wait.
    message = CASE WHEN is_waiting AND %(elapsed_ms)s > 0 THEN '' ELSE coalesce(%(message)s, message) END,
    is_waiting = is_waiting AND %(elapsed_ms)s = 0,
    processing_ms = processing_ms + %(elapsed_ms)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status IN ('reading', 'processing')

-- note_message --
-- Store a sentence for the administrator while the work continues or waits.
UPDATE documents SET message = %(message)s, is_waiting = %(is_waiting)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s
  AND (status IN ('reading', 'processing') OR pending_steps <> '{}' AND status <> 'binned')

-- mark_failed --
-- End the work on a document with a reason; other documents continue.
UPDATE documents SET status = 'failed', message = %(message)s, is_waiting = false, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s AND status IN ('reading', 'processing')

-- remove_pages --
-- Remove the pages before they are written again.
DELETE FROM document_pages WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- add_page --
-- Add a page of a document; many are sent in one pipeline.
INSERT INTO document_pages
    (document_id, number, tenant_id, text, characters, method, language, label, warnings, marks)
VALUES (%(document_id)s, %(number)s, rag_tenant(), %(text)s, %(characters)s, %(method)s, %(language)s, %(label)s,
        %(warnings)s, %(marks)s)

-- finish_reading --
-- Store the results of reading and the estimated cost.
UPDATE documents
SET status = %(status)s, steps_done = %(page_count)s, steps_total = %(page_count)s, message = %(message)s,
    is_waiting = false,
    title = coalesce(%(title)s, title), page_count = %(page_count)s, empty_pages = %(empty_pages)s,
    character_count = %(character_count)s, language = %(language)s, estimate = %(estimate)s,
    ocr_pages = %(ocr_pages)s,
    metadata = metadata || %(metadata)s, processing_ms = processing_ms + %(elapsed_ms)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- change_page --
-- Store the recognised text of a page; many are sent in one pipeline.
UPDATE document_pages
SET text = %(text)s, characters = %(characters)s, method = %(method)s, language = %(language)s, warnings = %(warnings)s,
    marks = %(marks)s
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s AND number = %(number)s

-- note_recognised --
-- Store which pages still need text recognition, and what the new text changes in the document.
UPDATE documents
SET ocr_pages = %(ocr_pages)s, empty_pages = %(empty_pages)s, character_count = %(character_count)s,
    language = coalesce(%(language)s, language),
    metadata = metadata || jsonb_build_object('sections', %(sections)s::jsonb), updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- note_chunk_spans --
-- Store the spans of a chunker that costs money, so that they are never paid for twice.
UPDATE documents SET metadata = metadata || jsonb_build_object('chunk_spans', %(spans)s::jsonb), updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- embedded_chunks --
-- List chunks that have been embedded with a model already.
SELECT chunk_index, start_character, end_character FROM document_chunks
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s
  AND embedding_model = %(embedding_model)s AND embedding IS NOT NULL

-- chunks_asked_for --
-- List the stored chunks of a document: for which model vectors were asked, "" before that, and whether one came.
SELECT chunk_index, start_character, end_character, embedding_model, embedding IS NOT NULL AS has_vector
FROM document_chunks
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- chunks_to_share --
-- List the passages that wait for a request of several documents, document by document.
SELECT c.id, c.document_id, d.title, c.section, c.content
FROM document_chunks c
JOIN documents d ON d.id = c.document_id AND d.tenant_id = c.tenant_id
WHERE c.tenant_id = rag_tenant() AND d.collection_id = %(collection_id)s AND d.sync_key IS NOT NULL
  AND d.status = 'processing' AND c.embedding_model <> %(embedding_model)s
ORDER BY d.created_at, c.document_id, c.chunk_index

-- collection_that_shares --
-- Find the document's collection, if passages in it wait for a request of several documents.
SELECT d.collection_id FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.id = %(document_id)s AND EXISTS (
    SELECT FROM documents o JOIN document_chunks c ON c.document_id = o.id AND c.embedding_model = ''
    WHERE o.tenant_id = rag_tenant() AND o.collection_id = d.collection_id AND o.sync_key IS NOT NULL
      AND o.status = 'processing'
)

-- passages_still_come --
-- Tell whether more passages come: a source is being compared, or one of its documents has no passages yet.
SELECT EXISTS (
    SELECT FROM sync_runs r
    WHERE r.tenant_id = rag_tenant() AND r.collection_id = %(collection_id)s AND r.status = 'running'
) OR EXISTS (
    SELECT FROM documents d
    JOIN procrastinate_jobs j ON j.lock = d.id::text AND j.status IN ('todo', 'doing')
        AND (j.scheduled_at IS NULL OR j.scheduled_at <= now())
    WHERE d.tenant_id = rag_tenant() AND d.collection_id = %(collection_id)s AND d.sync_key IS NOT NULL
      AND d.status IN ('reading', 'estimated', 'processing')
      AND NOT EXISTS (SELECT FROM document_chunks c WHERE c.document_id = d.id)
)

-- set_shared_vectors --
-- Store the vectors of a request of several documents.
UPDATE document_chunks c SET embedding = made.embedding, embedding_model = %(embedding_model)s
FROM unnest(%(embeddings)b::halfvec[], %(ids)s::uuid[]) AS made (embedding, id)
WHERE c.tenant_id = rag_tenant() AND c.id = made.id

-- enqueue_whole_documents --
-- Queue those of the documents whose passages were all asked for.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
SELECT 'documents', 'process_document', d.id::text, d.id::text,
       jsonb_build_object('tenant_id', rag_tenant(), 'document_id', d.id::text)
FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.id = ANY (%(document_ids)s) AND d.status = 'processing'
  AND NOT EXISTS (
      SELECT FROM document_chunks c WHERE c.document_id = d.id AND c.embedding_model <> %(embedding_model)s
  )
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- enqueue_one_that_shares --
-- Queue one document whose passages wait for a request of several documents, whose job then looks whether it is due.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
SELECT 'documents', 'process_document', d.id::text, d.id::text,
       jsonb_build_object('tenant_id', rag_tenant(), 'document_id', d.id::text)
FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.collection_id = %(collection_id)s AND d.sync_key IS NOT NULL
  AND d.status = 'processing'
  AND EXISTS (SELECT FROM document_chunks c WHERE c.document_id = d.id AND c.embedding_model = '')
ORDER BY d.created_at
LIMIT 1
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- remove_other_chunks --
-- Remove chunks of earlier spans or of another model before the missing ones are written.
DELETE FROM document_chunks
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s AND chunk_index <> ALL (%(kept)s::integer[])

-- add_chunks --
-- Add chunks with their vectors: a whole batch as binary arrays in one statement.
INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, embedding, chunk_index, metadata,
                             embedding_model, first_page, last_page, start_character, end_character, section, tokens)
SELECT %(document_id)s, rag_tenant(), %(collection_id)s, c.content, c.embedding, c.chunk_index, c.metadata::jsonb,
       %(embedding_model)s, c.first_page, c.last_page, c.start_character, c.end_character, c.section, c.tokens
FROM unnest(%(contents)b::text[], %(embeddings)b::halfvec[], %(indexes)b::integer[], %(metadata)b::text[],
            %(first_pages)b::integer[], %(last_pages)b::integer[], %(starts)b::integer[], %(ends)b::integer[],
            %(sections)b::text[], %(tokens)b::integer[])
    AS c (content, embedding, chunk_index, metadata, first_page, last_page, start_character, end_character, section,
          tokens)

-- has_metadata --
-- Tell whether the document has been tagged.
SELECT metadata ? 'questions' FROM documents WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- note_metadata --
-- Add to the metadata of a document.
UPDATE documents SET metadata = metadata || %(metadata)s, message = coalesce(%(message)s, message), updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- publish_document --
-- Publish a document: from here on it is searched.
UPDATE documents
SET status = %(status)s, step = 'publish', steps_done = 1, steps_total = 1, chunk_count = %(chunk_count)s,
    message = %(message)s, is_waiting = %(waits_for)s::text IS NOT NULL, starts = 0, published_at = now(),
    pending_steps = CASE WHEN %(waits_for)s::text IS NULL THEN pending_steps
                         ELSE array_append(array_remove(pending_steps, %(waits_for)s), %(waits_for)s) END,
    metadata = metadata - 'chunk_spans' || CASE WHEN metadata ? 'postId'
        THEN jsonb_build_object('totalChunks', %(chunk_count)s::integer) ELSE '{}' END,
    superseded_at = CASE WHEN %(status)s = 'superseded' THEN now() END,
    processing_ms = processing_ms + %(elapsed_ms)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- note_costs --
-- Store a document's actual cost, from the ledger.
UPDATE documents SET costs = %(costs)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(document_id)s

-- Jobs

-- enqueue --
-- Queue a document, one waiting job at most; the queue's triggers wake a worker.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
VALUES ('documents', 'process_document', %(document_id)s, %(document_id)s,
        jsonb_build_object('tenant_id', %(tenant_id)s::text, 'document_id', %(document_id)s::text))
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- fetch_job_of_others --
-- Fetch the next job of a tenant that has a place left; like the library's own statement, without full tenants.
WITH candidate AS (
    SELECT j.id
    FROM procrastinate_jobs j
    WHERE j.status = 'todo' AND j.queue_name = ANY (%(queues)s::varchar[])
      AND (j.scheduled_at IS NULL OR j.scheduled_at <= now())
      AND j.args ->> 'tenant_id' <> ALL (%(full)s::text[])
      AND NOT EXISTS (
          SELECT FROM procrastinate_jobs earlier
          WHERE earlier.lock = j.lock
            AND (earlier.status = 'doing'
                 OR earlier.status = 'todo' AND (-earlier.priority, earlier.id) < (-j.priority, j.id)))
    ORDER BY j.priority DESC, j.id
    LIMIT 1
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE procrastinate_jobs SET status = 'doing', worker_id = %(worker_id)s
FROM candidate WHERE procrastinate_jobs.id = candidate.id
RETURNING procrastinate_jobs.id, status, task_name, priority, lock, queueing_lock, args, scheduled_at, queue_name,
          attempts, worker_id

-- postpone_job --
-- Delay the job that waits under a name.
UPDATE procrastinate_jobs
SET scheduled_at = greatest(coalesce(scheduled_at, now()), now() + make_interval(secs => %(wait_seconds)s))
WHERE queueing_lock = %(queueing_lock)s AND status = 'todo'

-- known_tenants --
-- List the tenants named by jobs; the documents themselves are not visible without their tenant.
SELECT DISTINCT args ->> 'tenant_id' FROM procrastinate_jobs WHERE queue_name IN ('documents', 'meaning', 'outgoing')

-- unfinished_documents --
-- List unfinished documents without a job.
SELECT d.id FROM documents d
WHERE d.tenant_id = rag_tenant()
  AND (d.status IN ('reading', 'processing') OR d.pending_steps <> '{}' AND d.status <> 'binned')
  AND d.updated_at < now() - make_interval(secs => %(quiet_seconds)s)
  AND NOT EXISTS (SELECT FROM procrastinate_jobs j WHERE j.lock = d.id::text AND j.status IN ('todo', 'doing'))

-- drop_abandoned --
-- Remove jobs of dead processes when the same work is already waiting.
DELETE FROM procrastinate_jobs j
WHERE j.status = 'doing' AND j.queue_name IN ('documents', 'meaning', 'outgoing') AND j.id <> ALL (%(known)s::bigint[])
  AND EXISTS (SELECT FROM procrastinate_jobs w WHERE w.queueing_lock = j.queueing_lock AND w.status = 'todo')
  AND CASE
      WHEN (SELECT max(e.at) FROM procrastinate_events e WHERE e.job_id = j.id AND e.type = 'started')
           < now() - make_interval(secs => %(quiet_seconds)s)
      THEN pg_try_advisory_xact_lock(hashtextextended('document ' || j.lock, 0))
      ELSE false
  END

-- take_up_abandoned --
-- Queue the jobs of dead processes again; nobody holds their documents any more.
SELECT procrastinate_retry_job_v2(j.id, NULL, NULL, NULL, NULL)
FROM procrastinate_jobs j
WHERE j.status = 'doing' AND j.queue_name IN ('documents', 'meaning', 'outgoing') AND j.id <> ALL (%(known)s::bigint[])
  AND CASE
      WHEN (SELECT max(e.at) FROM procrastinate_events e WHERE e.job_id = j.id AND e.type = 'started')
           < now() - make_interval(secs => %(quiet_seconds)s)
      THEN pg_try_advisory_xact_lock(hashtextextended('document ' || j.lock, 0))
      ELSE false
  END

-- waiting_jobs --
-- List jobs that are not done yet, those that wait for another try included.
SELECT count(*) FROM procrastinate_jobs
WHERE queue_name = 'documents' AND status IN ('todo', 'doing')
  AND NOT (task_name IN ('empty_bin', 'sync_on_schedule') AND scheduled_at > now())

-- jobs_by_state --
-- Count waiting and running jobs of all tenants, for the metrics.
SELECT queue_name, status::text, count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing') GROUP BY 1, 2

-- wake_waiting_jobs --
-- Make jobs that wait for a retry due now, because a starting worker may have another key.
UPDATE procrastinate_jobs SET scheduled_at = now()
WHERE queue_name = 'documents' AND status = 'todo' AND scheduled_at > now()
  AND task_name IN ('process_document', 'reembed')

-- queue_state --
-- Count the tenant's jobs that wait, wait for a retry, and run.
SELECT count(*) FILTER (WHERE status = 'todo' AND coalesce(scheduled_at, now()) <= now()) AS waiting,
       count(*) FILTER (WHERE status = 'todo' AND scheduled_at > now()) AS later,
       count(*) FILTER (WHERE status = 'doing') AS running,
       min(scheduled_at) FILTER (WHERE status = 'todo' AND scheduled_at > now()) AS next_try_at
FROM procrastinate_jobs
WHERE queue_name = 'documents' AND args ->> 'tenant_id' = rag_tenant() AND task_name NOT IN ('empty_bin', 'sync_on_schedule')
