-- Documents are found by their folders, too: the words of those in a folder are indexed again, collection by collection.

ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;

INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
SELECT DISTINCT 'documents', 'index_folders', 'folders ' || collection_id, 'folders ' || collection_id,
       jsonb_build_object('tenant_id', tenant_id, 'collection_id', collection_id)
FROM documents WHERE folder <> '' AND status = 'completed'
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING;

ALTER TABLE documents FORCE ROW LEVEL SECURITY;
