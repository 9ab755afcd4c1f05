-- Collections: made, changed and deleted by administrators.

-- find_collections --
-- List the tenant's collections, oldest first, without those in the bin.
SELECT id, tenant_id, name, profile, embedding_model, language, overrides, created_at, calibrated_threshold,
       calibrated_at, calibrated_model, calibrated_passages, groups
FROM collections
WHERE tenant_id = rag_tenant() AND binned_at IS NULL
  AND (%(collection_id)s::uuid IS NULL OR id = %(collection_id)s)
  AND (%(collection_name)s::text IS NULL OR name = %(collection_name)s)
ORDER BY created_at, id

-- choose_collection --
-- Choose the collection with this id or name. Without one: the key's own, or in the chat the one that the account asked
-- last, else the oldest of the preferred profile with searchable documents, else the oldest of any profile with searchable
-- documents, else the oldest, the preferred profile first.
SELECT c.id, c.tenant_id, c.name, c.profile, c.embedding_model, c.language, c.overrides, c.created_at,
       c.calibrated_threshold, c.calibrated_at, c.calibrated_model, c.calibrated_passages, c.groups
FROM collections c
CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT FROM documents d WHERE d.collection_id = c.id AND d.status = 'completed') AS can_be_searched,
           c.profile = %(preferred)s AS is_preferred,
           c.id IN (SELECT last_collection_id FROM accounts WHERE id = rag_account() AND %(in_chat)s
                    UNION ALL SELECT default_collection_id FROM api_keys WHERE id = rag_account()) AS is_own
) AS known
WHERE c.tenant_id = rag_tenant() AND c.binned_at IS NULL
  AND (%(wanted)s::text IS NULL OR %(wanted)s IN (c.id::text, c.name))
  AND (NOT %(is_only)s OR known.is_preferred)
ORDER BY c.id::text = %(wanted)s DESC NULLS LAST, coalesce(known.is_own, false) DESC,
         known.can_be_searched AND known.is_preferred DESC, known.can_be_searched DESC, known.is_preferred DESC,
         c.created_at, c.id
LIMIT 1

-- note_last_collection --
-- Remember the collection that this account asked last, if it may read it; an unchanged value is not written.
UPDATE accounts a SET last_collection_id = asked.id
FROM (SELECT id FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s) AS asked
WHERE a.tenant_id = rag_tenant() AND a.id = rag_account() AND a.last_collection_id IS DISTINCT FROM asked.id

-- add_collection --
-- Add a collection; do nothing when the name is taken.
INSERT INTO collections (tenant_id, name, profile, embedding_model, language)
VALUES (rag_tenant(), %(collection_name)s, %(profile)s, %(embedding_model)s, %(language)s)
ON CONFLICT (tenant_id, name) WHERE binned_at IS NULL DO NOTHING

-- change_collection --
-- Change the given fields of a collection; do nothing when another one has the name.
UPDATE collections
SET name = coalesce(%(collection_name)s, name), language = coalesce(%(language)s, language),
    groups = coalesce(%(groups)s::text[], groups)
WHERE tenant_id = rag_tenant() AND id = %(collection_id)s
  AND NOT EXISTS (SELECT FROM collections WHERE tenant_id = rag_tenant() AND name = %(collection_name)s
                  AND id <> %(collection_id)s AND binned_at IS NULL)

-- lock_collection --
-- Lock a collection that is about to be changed.
SELECT id, tenant_id, name, profile, embedding_model, language, overrides, created_at, calibrated_threshold,
       calibrated_at, calibrated_model, calibrated_passages, groups
FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s FOR UPDATE

-- set_overrides --
-- Store the settings in which a collection differs from its profile.
UPDATE collections SET overrides = %(overrides)s WHERE tenant_id = rag_tenant() AND id = %(collection_id)s

-- note_calibration --
-- Store the threshold measured with this embedder; do nothing when the collection has another one by now.
UPDATE collections
SET calibrated_threshold = %(threshold)s, calibrated_at = now(), calibrated_model = %(embedding_model)s,
    calibrated_passages = %(passages)s
WHERE tenant_id = rag_tenant() AND id = %(collection_id)s AND embedding_model = %(embedding_model)s

-- collection_contents --
-- Count the contents of each collection, or of one.
SELECT c.id AS collection_id, coalesce(d.documents, 0) AS documents, coalesce(d.ready, 0) AS ready,
       coalesce(d.pages, 0) AS pages, coalesce(d.chunks, 0) AS chunks, coalesce(t.conversations, 0) AS conversations,
       coalesce(t.people, 0) AS people
FROM collections c
LEFT JOIN (
    SELECT collection_id, count(*) AS documents, count(*) FILTER (WHERE status = 'completed') AS ready,
           sum(page_count) AS pages, sum(chunk_count) AS chunks
    FROM documents WHERE tenant_id = (SELECT rag_tenant()) AND status NOT IN ('superseded', 'binned')
    GROUP BY collection_id
) AS d ON d.collection_id = c.id
LEFT JOIN (
    SELECT collection_id, count(*) AS conversations, count(DISTINCT account_id) AS people
    FROM conversations WHERE tenant_id = (SELECT rag_tenant()) GROUP BY collection_id
) AS t ON t.collection_id = c.id
WHERE c.tenant_id = (SELECT rag_tenant()) AND (%(collection_id)s::uuid IS NULL OR c.id = %(collection_id)s)
ORDER BY c.created_at, c.id

-- delete_collection --
-- Delete a collection with its documents, chunks, keywords and conversations; questions and costs stay in the records.
DELETE FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s

-- bin_collection --
-- Move a collection into the bin; do nothing to one that is there.
UPDATE collections SET binned_at = now()
WHERE tenant_id = rag_tenant() AND id = %(collection_id)s AND binned_at IS NULL
RETURNING id

-- binned_collections --
-- List the collections in the bin, the latest first, with the documents that came there with them.
SELECT c.id, c.name, c.binned_at,
       (SELECT count(DISTINCT d.original_id) FROM documents d
        WHERE d.collection_id = c.id AND d.status = 'binned' AND d.binned_at = c.binned_at) AS documents,
       (SELECT count(*) FROM conversations t WHERE t.collection_id = c.id) AS conversations
FROM collections c
WHERE c.tenant_id = (SELECT rag_tenant()) AND c.binned_at IS NOT NULL
ORDER BY c.binned_at DESC, c.name, c.id

-- documents_binned_with --
-- List the documents that came into the bin with their collection: of each the published version, else the latest.
SELECT DISTINCT ON (d.original_id) d.id
FROM documents d JOIN collections c ON c.id = d.collection_id
WHERE d.tenant_id = rag_tenant() AND c.id = %(collection_id)s AND d.status = 'binned' AND d.binned_at = c.binned_at
ORDER BY d.original_id, d.status_before = 'completed' DESC, d.version DESC

-- take_collections_back --
-- Take a collection, and those of these documents, out of the bin; where another has its name by now, it gets the day.
UPDATE collections c
SET binned_at = NULL,
    name = c.name || CASE WHEN EXISTS (SELECT FROM collections o
                                       WHERE o.tenant_id = c.tenant_id AND o.name = c.name AND o.binned_at IS NULL)
                          THEN to_char(c.binned_at, ' (YYYY-MM-DD HH24:MI)') ELSE '' END
WHERE c.tenant_id = rag_tenant() AND c.binned_at IS NOT NULL
  AND (c.id = %(collection_id)s
       OR c.id IN (SELECT collection_id FROM documents
                   WHERE tenant_id = rag_tenant() AND id = ANY (%(document_ids)s::uuid[]) AND status = 'binned'))
RETURNING c.id

-- take_collections_out_for_good --
-- Delete collections that have been in the bin for so long, with their conversations.
DELETE FROM collections
WHERE tenant_id = rag_tenant() AND binned_at <= now() - make_interval(days => %(days)s)

-- files_of_collection --
-- List a collection's documents with the paths of their originals.
SELECT id, file_path FROM documents WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s
