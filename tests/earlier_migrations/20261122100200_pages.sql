-- What the pages read at each run, found without reading every document.

-- Questions to suggest come from the newest documents that have any.
CREATE INDEX documents_suggesting ON documents (tenant_id, collection_id, created_at DESC, id)
    WHERE status = 'completed' AND metadata ?| '{questions,suggested_questions}';
-- Followed once a second while somebody looks.
CREATE INDEX documents_at_work ON documents (tenant_id)
    WHERE status IN ('reading', 'processing') OR pending_steps <> '{}';
-- Lists to choose from begin with the newest documents.
CREATE INDEX documents_newest ON documents (tenant_id, created_at DESC, id);
-- Who ever changed something is found by going from name to name.
CREATE INDEX audit_log_actors ON audit_log (tenant_id, actor);
