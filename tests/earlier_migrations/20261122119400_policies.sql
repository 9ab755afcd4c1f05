-- Row-level security and rights: a transaction sees its tenant, a person sees the collections of their groups, and the
-- application's role may do what the product's statements do, no more. The owner of the tables is bound as well.

-- The tenant's wall

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'accounts', 'sessions', 'one_time_links', 'known_browsers', 'second_factors', 'recovery_codes',
        'external_identities', 'session_origins', 'api_keys', 'collections', 'documents', 'document_pages',
        'document_chunks', 'attachment_texts', 'sentence_vectors', 'spare_vectors', 'reembeddings', 'file_removals',
        'collection_sources', 'sync_items', 'sync_runs', 'chunk_terms', 'chunk_bits', 'keyword_totals',
        'keyword_documents', 'keyword_numbers', 'keyword_segments', 'keyword_blocks', 'keyword_tombstones',
        'meaning_vectors', 'meaning_parts', 'conversations', 'chat_logs', 'messages', 'feedback', 'cost_ledger',
        'paid_calls', 'audit_log', 'tenant_deletions'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
    END LOOP;
    -- The owner of the tables may see which tenants there are; the application, which does not own them, sees its own.
    EXECUTE format('CREATE POLICY operator ON tenants FOR SELECT TO %I USING (true)', current_user);
END
$$;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenants USING (id = (SELECT rag_tenant())) WITH CHECK (id = (SELECT rag_tenant()));

-- Readers are limited to their collections. Restrictive: the tenant's policy and this one must both allow. The list of
-- readable collections is read at most once for a statement, and not at all where everything may be read.

CREATE POLICY reader ON collections AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR cardinality(groups) = 0 OR (SELECT rag_group()) = ANY (groups));
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'documents', 'document_chunks', 'spare_vectors', 'reembeddings', 'collection_sources', 'sync_items',
        'sync_runs', 'chunk_terms', 'chunk_bits', 'keyword_totals', 'keyword_documents', 'keyword_numbers',
        'keyword_segments', 'keyword_blocks', 'keyword_tombstones', 'conversations', 'chat_logs', 'cost_ledger'
    ] LOOP
        EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                       'OR collection_id IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
    END LOOP;
END
$$;
CREATE POLICY reader ON meaning_vectors AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON meaning_parts AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON document_pages AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM documents d WHERE d.id = document_id));
CREATE POLICY reader ON messages AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM conversations c WHERE c.id = conversation_id));
CREATE POLICY reader ON feedback AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM chat_logs l WHERE l.id = chat_log_id));

-- Before the tenant is known, a secret that somebody presents lets the one row be read that it belongs to.

CREATE POLICY presented ON accounts FOR SELECT USING (email = (SELECT rag_verified('email')));
CREATE POLICY presented ON sessions FOR SELECT USING (token_hash = (SELECT rag_presented()));
CREATE POLICY presented ON one_time_links FOR SELECT USING (token_hash = (SELECT rag_presented()));
CREATE POLICY presented ON api_keys FOR SELECT USING (secret_hash = (SELECT rag_presented()));
CREATE POLICY presented ON external_identities FOR SELECT USING (subject_hash = (SELECT rag_presented()));
CREATE POLICY presented ON session_origins FOR SELECT
    USING ((SELECT rag_presented()) IN (subject_hash, session_hash));

-- The queue: workers see every job, and say that they are workers; a tenant's transaction sees its own jobs.

ALTER TABLE procrastinate_jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON procrastinate_jobs
    USING ((SELECT rag_is_worker()) OR args ->> 'tenant_id' = (SELECT rag_tenant()))
    WITH CHECK ((SELECT rag_is_worker()) OR args ->> 'tenant_id' = (SELECT rag_tenant()));
ALTER TABLE procrastinate_events ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON procrastinate_events
    USING ((SELECT rag_is_worker()) OR EXISTS (SELECT FROM procrastinate_jobs j WHERE j.id = job_id))
    WITH CHECK ((SELECT rag_is_worker()) OR EXISTS (SELECT FROM procrastinate_jobs j WHERE j.id = job_id));
ALTER TABLE procrastinate_workers ENABLE ROW LEVEL SECURITY;
CREATE POLICY worker ON procrastinate_workers USING ((SELECT rag_is_worker())) WITH CHECK ((SELECT rag_is_worker()));
ALTER TABLE procrastinate_periodic_defers ENABLE ROW LEVEL SECURITY;
CREATE POLICY worker ON procrastinate_periodic_defers
    USING ((SELECT rag_is_worker())) WITH CHECK ((SELECT rag_is_worker()));

-- Rights. What follows from a reference's cascade is done by the owner.

GRANT SELECT, INSERT, UPDATE, DELETE ON chat_logs, collection_sources, collections, conversations, document_chunks,
    document_pages, documents, file_removals, known_browsers, one_time_links, paid_calls, procrastinate_jobs,
    procrastinate_workers, recovery_codes, second_factors, sessions TO rag_app;
GRANT SELECT, INSERT, UPDATE ON accounts, api_keys, attachment_texts, feedback, keyword_numbers, keyword_totals,
    messages, reembeddings, session_origins, sync_items, sync_runs TO rag_app;
GRANT SELECT, INSERT, DELETE ON chunk_bits, chunk_terms, keyword_blocks, keyword_documents, keyword_segments,
    keyword_tombstones, meaning_vectors, sentence_vectors, spare_vectors TO rag_app;
-- What is written in a record stays there.
GRANT SELECT, INSERT ON audit_log, cost_ledger, external_identities, meaning_parts, procrastinate_events,
    tenant_deletions, tenants TO rag_app;
GRANT UPDATE (name, settings, suspended_at) ON tenants TO rag_app;
GRANT SELECT, UPDATE ON procrastinate_periodic_defers TO rag_app;
GRANT SELECT ON document_versions TO rag_app;
GRANT USAGE ON SEQUENCE procrastinate_events_id_seq, procrastinate_jobs_id_seq, procrastinate_periodic_defers_id_seq,
    procrastinate_workers_id_seq TO rag_app;

-- A search that paid nothing leaves no row behind; no other row of the log may be deleted by the application.
CREATE POLICY searches_discarded ON chat_logs AS RESTRICTIVE FOR DELETE TO rag_app
    USING (kind = 'search' AND outcome IS NULL);

SELECT rag_close_rest_api();
SELECT rag_close_database();
