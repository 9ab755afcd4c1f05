-- A collection's move to another embedding model: new vectors beside the old, one transaction that exchanges them.

-- add_reembedding --
-- An estimate that waits for a yes
INSERT INTO reembeddings (tenant_id, collection_id, from_model, to_model, chunks_total, estimated_tokens, estimated_cost)
SELECT rag_tenant(), id, embedding_model, %(to_model)s, %(chunks)s, %(tokens)s, %(cost)s
FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s
ON CONFLICT (collection_id) WHERE status IN ('estimated', 'running', 'failed') DO NOTHING
RETURNING id

-- find_reembeddings --
-- Moves of the tenant's collections, the latest first
SELECT id, tenant_id, collection_id, from_model, to_model, status, chunks_done, chunks_total, estimated_tokens,
       estimated_cost, message, created_at, switched_at, cleaned_at
FROM reembeddings
WHERE tenant_id = rag_tenant()
  AND (%(id)s::uuid IS NULL OR id = %(id)s)
  AND (%(collection_id)s::uuid IS NULL OR collection_id = %(collection_id)s)
ORDER BY created_at DESC, id

-- begin_reembedding --
-- The yes to the cost, or another try after a failure
UPDATE reembeddings SET status = 'running', message = '', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s AND status IN ('estimated', 'failed')

-- cancel_reembedding --
-- Given up before the switch
UPDATE reembeddings SET status = 'cancelled', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s AND status IN ('estimated', 'running', 'failed')

-- fail_reembedding --
-- It ended with a reason; searches are on the old vectors
UPDATE reembeddings SET status = 'failed', message = %(message)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s AND status = 'running'

-- enqueue_reembedding --
-- One waiting job per move at most
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
VALUES ('documents', 'reembed', %(id)s, %(id)s,
        jsonb_build_object('tenant_id', %(tenant_id)s::text, 'reembedding_id', %(id)s::text))
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- chunks_to_reembed --
-- Searchable chunks without a vector of the new model
SELECT c.document_id, CASE WHEN l.overrides ->> 'index_titles' = 'false' THEN '' ELSE d.title END,
       CASE WHEN l.overrides ->> 'index_titles' = 'false' THEN '' ELSE c.section END, c.content, c.id, c.chunk_index
FROM document_chunks c
JOIN documents d ON d.id = c.document_id AND d.status = 'completed'
JOIN collections l ON l.id = c.collection_id
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND c.embedding_model <> %(to_model)s
  AND NOT EXISTS (SELECT FROM spare_vectors s WHERE s.chunk_id = c.id AND s.embedding_model = %(to_model)s)
ORDER BY d.created_at, c.document_id, c.chunk_index

-- count_chunks_to_reembed --
-- How many they are and about how many tokens will be sent, by what was counted when they were cut; no text is read.
-- Each has its title and section in front. Three bytes are a token where nothing was counted.
SELECT count(*), coalesce(sum(
    CASE WHEN c.tokens > 0 THEN c.tokens ELSE ceil(octet_length(c.content) / 3.0) END
    + ceil((octet_length(d.title) + octet_length(c.section)) / 3.0)
), 0)::bigint
FROM document_chunks c
JOIN documents d ON d.id = c.document_id AND d.status = 'completed'
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND c.embedding_model <> %(to_model)s
  AND NOT EXISTS (SELECT FROM spare_vectors s WHERE s.chunk_id = c.id AND s.embedding_model = %(to_model)s)

-- has_chunks_to_reembed --
-- Whether any is without a vector of the new model
SELECT EXISTS (
    SELECT FROM document_chunks c
    JOIN documents d ON d.id = c.document_id AND d.status = 'completed'
    WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND c.embedding_model <> %(to_model)s
      AND NOT EXISTS (SELECT FROM spare_vectors s WHERE s.chunk_id = c.id AND s.embedding_model = %(to_model)s)
)

-- add_spare_vector --
-- A vector beside the one that is searched; nothing when its chunk was deleted meanwhile
INSERT INTO spare_vectors (chunk_id, embedding_model, tenant_id, collection_id, embedding)
SELECT id, %(embedding_model)s, tenant_id, collection_id, %(embedding)b
FROM document_chunks WHERE tenant_id = rag_tenant() AND id = %(chunk_id)s
ON CONFLICT DO NOTHING

-- note_reembedding --
-- How far it has come
UPDATE reembeddings SET chunks_done = %(done)s, chunks_total = %(total)s, message = '', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s

-- note_reembedding_waits --
-- Why it does not come further; it goes on by itself
UPDATE reembeddings SET message = %(message)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s AND status = 'running'

-- keep_old_vectors --
-- The vectors searched until now, for undoing
INSERT INTO spare_vectors (chunk_id, embedding_model, tenant_id, collection_id, embedding)
SELECT c.id, c.embedding_model, c.tenant_id, c.collection_id, c.embedding
FROM document_chunks c
JOIN spare_vectors s ON s.chunk_id = c.id AND s.embedding_model = %(to_model)s
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND c.embedding_model <> %(to_model)s
ON CONFLICT DO NOTHING

-- take_new_vectors --
-- From the commit on, searches meet the new vectors only
UPDATE document_chunks c SET embedding = s.embedding, embedding_model = s.embedding_model
FROM spare_vectors s
WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s
  AND s.chunk_id = c.id AND s.embedding_model = %(to_model)s AND c.embedding_model <> %(to_model)s

-- remove_spare_vectors --
-- Vectors of a model that nobody will go back to, or that have become the ones searched
DELETE FROM spare_vectors
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND embedding_model = %(embedding_model)s

-- set_embedding_model --
-- The collection's questions are embedded with the new model; what was measured with the old one counts no more
UPDATE collections
SET embedding_model = %(to_model)s, calibrated_threshold = NULL, calibrated_at = NULL, calibrated_model = NULL,
    calibrated_passages = NULL
WHERE tenant_id = rag_tenant() AND id = %(collection_id)s

-- finish_reembedding --
-- The new vectors are searched
UPDATE reembeddings
SET status = 'switched', switched_at = now(), chunks_done = chunks_total, message = '', updated_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s

-- clean_reembedding --
-- From here on it cannot be undone free of charge
UPDATE reembeddings SET cleaned_at = now(), updated_at = now()
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND status = 'switched' AND cleaned_at IS NULL

-- documents_of_collection --
-- The documents that answer
SELECT id FROM documents
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND status = 'completed'

-- embedding_model_now --
-- The model of the vectors that are searched now
SELECT embedding_model FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s
