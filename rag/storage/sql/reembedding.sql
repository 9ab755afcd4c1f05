-- A collection's move to another embedding model: new vectors beside the old, one transaction that exchanges them.

-- add_reembedding --
-- Add an estimate that waits for confirmation.
INSERT INTO reembeddings (tenant_id, collection_id, from_model, to_model, chunks_total, estimated_tokens, estimated_cost)
SELECT rag_tenant(), id, embedding_model, %(to_model)s, %(chunks)s, %(tokens)s, %(cost)s
FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s
ON CONFLICT (collection_id) WHERE status IN ('estimated', 'running', 'failed') DO NOTHING
RETURNING id

-- find_reembeddings --
-- List moves of the tenant's collections, the latest first.
SELECT id, tenant_id, collection_id, from_model, to_model, status, chunks_done, chunks_total, estimated_tokens,
       estimated_cost, message, created_at, switched_at, cleaned_at
FROM reembeddings
WHERE tenant_id = rag_tenant()
  AND (%(id)s::uuid IS NULL OR id = %(id)s)
  AND (%(collection_id)s::uuid IS NULL OR collection_id = %(collection_id)s)
ORDER BY created_at DESC, id

-- begin_reembedding --
-- Confirm the cost, or try again after a failure.
UPDATE reembeddings SET status = 'running', message = '', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s AND status IN ('estimated', 'failed')

-- cancel_reembedding --
-- Cancel a move before the switch.
UPDATE reembeddings SET status = 'cancelled', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s AND status IN ('estimated', 'running', 'failed')

-- fail_reembedding --
-- End a move with a reason; searches use the old vectors.
UPDATE reembeddings SET status = 'failed', message = %(message)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s AND status = 'running'

-- enqueue_reembedding --
-- Queue a move, one waiting job at most.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
VALUES ('documents', 'reembed', %(id)s, %(id)s,
        jsonb_build_object('tenant_id', %(tenant_id)s::text, 'reembedding_id', %(id)s::text))
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- chunks_to_reembed --
-- List searchable chunks without a vector of the new model.
SELECT c.document_id, CASE WHEN l.overrides ->> 'index_titles' = 'false' THEN '' ELSE d.title END,
       CASE WHEN l.overrides ->> 'index_titles' = 'false' THEN '' ELSE c.section END, c.content, c.id, c.chunk_index
FROM document_chunks c
JOIN documents d ON d.id = c.document_id AND d.status = 'completed'
JOIN collections l ON l.id = c.collection_id
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND c.embedding_model <> %(to_model)s
  AND NOT EXISTS (SELECT FROM spare_vectors s WHERE s.chunk_id = c.id AND s.embedding_model = %(to_model)s)
ORDER BY d.created_at, c.document_id, c.chunk_index

-- count_chunks_to_reembed --
-- Count chunks to embed again, and about how many tokens will be sent, by the count made when they were split; no text
-- is read. Each has its title and section in front. Where nothing was counted, three bytes are a token.
SELECT count(*), coalesce(sum(
    CASE WHEN c.tokens > 0 THEN c.tokens ELSE ceil(octet_length(c.content) / 3.0) END
    + ceil((octet_length(d.title) + octet_length(c.section)) / 3.0)
), 0)::bigint
FROM document_chunks c
JOIN documents d ON d.id = c.document_id AND d.status = 'completed'
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND c.embedding_model <> %(to_model)s
  AND NOT EXISTS (SELECT FROM spare_vectors s WHERE s.chunk_id = c.id AND s.embedding_model = %(to_model)s)

-- has_chunks_to_reembed --
-- Tell whether any chunk lacks a vector of the new model.
SELECT EXISTS (
    SELECT FROM document_chunks c
    JOIN documents d ON d.id = c.document_id AND d.status = 'completed'
    WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND c.embedding_model <> %(to_model)s
      AND NOT EXISTS (SELECT FROM spare_vectors s WHERE s.chunk_id = c.id AND s.embedding_model = %(to_model)s)
)

-- add_spare_vector --
-- Add a vector beside the one that is searched; do nothing when its chunk has been deleted.
INSERT INTO spare_vectors (chunk_id, embedding_model, tenant_id, collection_id, embedding)
SELECT id, %(embedding_model)s, tenant_id, collection_id, %(embedding)b
FROM document_chunks WHERE tenant_id = rag_tenant() AND id = %(chunk_id)s
ON CONFLICT DO NOTHING

-- note_reembedding --
-- Store the progress of a move.
UPDATE reembeddings SET chunks_done = %(done)s, chunks_total = %(total)s, message = '', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s

-- note_reembedding_waits --
-- Store why a move waits; it continues by itself.
UPDATE reembeddings SET message = %(message)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s AND status = 'running'

-- keep_old_vectors --
-- Keep the vectors searched until now, for undoing.
INSERT INTO spare_vectors (chunk_id, embedding_model, tenant_id, collection_id, embedding)
SELECT c.id, c.embedding_model, c.tenant_id, c.collection_id, coalesce(c.embedding, '[0]')
FROM document_chunks c
JOIN spare_vectors s ON s.chunk_id = c.id AND s.embedding_model = %(to_model)s
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND c.embedding_model <> %(to_model)s
ON CONFLICT DO NOTHING

-- take_new_vectors --
-- Replace the searched vectors by the new ones, from the commit on.
UPDATE document_chunks c
SET embedding = CASE WHEN l2_norm(s.embedding) > 0 THEN s.embedding END, embedding_model = s.embedding_model
FROM spare_vectors s
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s
  AND s.chunk_id = c.id AND s.embedding_model = %(to_model)s AND c.embedding_model <> %(to_model)s

-- remove_spare_vectors --
-- Remove vectors that are searched by now, or of a model that nobody will return to.
DELETE FROM spare_vectors
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND embedding_model = %(embedding_model)s

-- set_embedding_model --
-- Set the collection's embedding model, and remove the measurements made with the old one.
UPDATE collections
SET embedding_model = %(to_model)s, calibrated_threshold = NULL, calibrated_at = NULL, calibrated_model = NULL,
    calibrated_passages = NULL
WHERE tenant_id = rag_tenant() AND id = %(collection_id)s

-- finish_reembedding --
-- Note that the new vectors are searched.
UPDATE reembeddings
SET status = 'switched', switched_at = now(), chunks_done = chunks_total, message = '', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s

-- clean_reembedding --
-- Note that the move can no longer be undone free of charge.
UPDATE reembeddings SET cleaned_at = now(), updated_at = now()
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND status = 'switched' AND cleaned_at IS NULL

-- documents_of_collection --
-- List the published documents.
SELECT id FROM documents
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND status = 'completed'

-- embedding_model_now --
-- Read the model of the vectors that are searched now.
SELECT embedding_model FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s
