-- Suggested questions are chosen again: asked as people ask, and known to be answered. The newest documents of each
-- collection are looked at again, of which the chat suggests; until then it suggests none of theirs.

ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;

INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
SELECT 'documents', 'process_document', id::text, id::text,
       jsonb_build_object('tenant_id', tenant_id, 'document_id', id::text)
FROM (SELECT id, tenant_id, row_number() OVER (PARTITION BY collection_id ORDER BY created_at DESC, id) AS place
      FROM documents WHERE status = 'completed' AND metadata ? 'suggested_questions') newest
WHERE place <= 50
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING;

UPDATE documents SET metadata = metadata - 'suggested_questions'
WHERE metadata ? 'suggested_questions';

ALTER TABLE documents FORCE ROW LEVEL SECURITY;
