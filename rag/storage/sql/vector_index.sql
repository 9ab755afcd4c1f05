-- The approximate index of a collection's vectors: made by the owner of the tables, measured and used by the application.

-- find_vector_index --
-- Read a collection's index with its present size; `is_whole` is false where its making was interrupted.
SELECT v.collection_id, v.embedding_model, v.dimensions, v.kind, v.breadth, v.is_used, v.passages, v.measured, v.built_at,
       v.measured_at, rag_has_vector_index(v.collection_id) AS is_whole,
       coalesce(pg_relation_size(rag_vector_index(v.collection_id)), 0) AS bytes
FROM vector_indexes v WHERE v.tenant_id = rag_tenant() AND v.collection_id = %(collection_id)s

-- add_vector_index --
-- Note an index that is about to be made, not used before it is measured; nothing where the collection has another model.
INSERT INTO vector_indexes (collection_id, tenant_id, embedding_model, dimensions, kind)
SELECT id, tenant_id, embedding_model, %(dimensions)s, %(kind)s
FROM collections WHERE id = %(collection_id)s AND embedding_model = %(embedding_model)s
ON CONFLICT (collection_id) DO UPDATE SET embedding_model = excluded.embedding_model, dimensions = excluded.dimensions,
    kind = excluded.kind, breadth = 1, is_used = false, passages = 0, measured = '{}', built_at = now(), measured_at = NULL

-- note_vector_index --
-- Store the measurements, and whether the search uses the index from now on.
UPDATE vector_indexes
SET breadth = %(breadth)s, is_used = %(is_used)s, passages = %(passages)s, measured = %(measured)s, measured_at = now()
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND embedding_model = %(embedding_model)s

-- remove_vector_index --
-- Forget a collection's index; the index itself is dropped next.
DELETE FROM vector_indexes WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s

-- drop_unused_indexes --
-- Drop the indexes that belong to no collection any more.
SELECT rag_drop_unused_indexes()

-- vector_index_lock --
-- Take the only place in which an index of this collection is made; false where another program has it.
SELECT pg_try_advisory_lock(hashtextextended(%(name)s, 0))

-- vector_index_statement --
-- Build the statement that makes the index: CREATE INDEX takes no parameters. Its name holds the collection's id
-- alone. It is made on the tenant's part of the table, because CONCURRENTLY is not possible on the whole table.
SELECT format(
    'CREATE INDEX CONCURRENTLY %%I ON %%s USING %%I ((embedding::halfvec(%%s)) halfvec_cosine_ops)%%s '
    'WHERE collection_id = %%L AND embedding_model = %%L',
    %(name)s::text, rag_partition_of(%(tenant_id)s), %(kind)s::text, %(dimensions)s::integer,
    CASE %(kind)s WHEN 'ivfflat' THEN format(' WITH (lists = %%s)', %(lists)s::integer) ELSE '' END,
    %(collection_id)s::uuid, %(embedding_model)s::text)

-- vector_index_drop --
-- Build the statement that drops an index beside searches that read it.
SELECT format('DROP INDEX CONCURRENTLY IF EXISTS rag_partitions.%%I', %(name)s::text)

-- vector_index_memory --
-- Set the memory for making an index, and the processes beside the first.
SELECT set_config('maintenance_work_mem', %(memory)s, false),
       set_config('max_parallel_maintenance_workers', %(processes)s, false)

-- pgvector_version --
-- Read the version of pgvector on the server.
SELECT extversion FROM pg_extension WHERE extname = 'vector'

-- passages_to_search_for --
-- Choose vectors of a collection's chunks, spread evenly, to search for their neighbours.
SELECT c.id, c.embedding FROM (
    SELECT c.id, row_number() OVER (ORDER BY c.id) AS number, count(*) OVER () AS total
    FROM document_chunks c JOIN documents d ON d.id = c.document_id
    WHERE c.tenant_id = rag_tenant() AND c.collection_id = %(collection_id)s AND d.status = 'completed'
      AND c.embedding_model = %(embedding_model)s AND c.embedding IS NOT NULL
) AS searchable JOIN document_chunks c ON c.tenant_id = rag_tenant() AND c.id = searchable.id
WHERE number %% greatest(1, total / %(wanted)s) = 0
LIMIT %(wanted)s

-- questions_to_search_for --
-- List the latest questions to a collection, each wording once.
SELECT question FROM question_outcomes
WHERE tenant_id = (SELECT rag_tenant()) AND collection_id = %(collection_id)s AND kind = 'question'
  AND is_judged AND question <> ''
GROUP BY question ORDER BY max(created_at) DESC LIMIT %(wanted)s
