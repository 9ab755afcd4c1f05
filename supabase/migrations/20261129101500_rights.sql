-- Row-level security and rights: a transaction sees its tenant, a reader the collections of their groups, a person their own
-- things, and the application's role may do what the product's statements do, no more. The owner of the tables is bound too.
--
-- A permissive policy says what may be seen at all; each restrictive one (reader, own, managed) must allow it as well. What a
-- policy asks of the transaction is in brackets of its own, so that it is asked once for a statement, not for each row.

-- The tenant's wall

DO $$
DECLARE
    t text;
    part regclass;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        -- tenants, people
        'collections', 'user_groups', 'accounts', 'sessions', 'one_time_links', 'known_browsers', 'second_factors',
        'recovery_codes', 'external_identities', 'session_origins', 'api_keys', 'connected_apps', 'used_app_tokens',
        -- library, sources
        'documents', 'document_pages', 'page_corrections', 'attachment_texts', 'sentence_vectors', 'document_chunks',
        'reembeddings', 'file_removals', 'saved_views', 'refused_files', 'collection_sources', 'sync_items', 'sync_runs',
        -- search
        'chunk_terms', 'keyword_documents', 'keyword_totals', 'keyword_numbers', 'keyword_segments', 'keyword_blocks',
        'keyword_tombstones', 'chunk_bits', 'spare_vectors', 'vector_indexes', 'meaning_vectors', 'meaning_parts',
        'meaning_bits',
        -- conversations, money
        'conversations', 'chat_logs', 'messages', 'prompts', 'feedback', 'help_requests', 'opinions', 'cost_ledger',
        'paid_calls', 'tenant_prices', 'budgets', 'budget_consents',
        -- quality, analytics
        'gaps', 'gap_questions', 'gap_meanings', 'golden_questions', 'evaluation_runs', 'evaluation_results',
        'rolled_days', 'question_days', 'question_time_days', 'document_days', 'cost_days', 'rolled_weeks',
        'question_weeks', 'question_time_weeks', 'document_weeks', 'cost_weeks',
        -- programs, records
        'webhooks', 'webhook_deliveries', 'widgets', 'chat_threads', 'chat_deliveries', 'teams_bots', 'audit_log',
        'tenant_deletions', 'erasures', 'calendar_work', 'tenant_changes', 'history_changes'
    ] LOOP
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        -- A partitioned table with its parts, any other alone.
        FOR part IN SELECT t::regclass UNION SELECT relid FROM pg_partition_tree(t::regclass) LOOP
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
        END LOOP;
    END LOOP;
    -- The owner of the tables may see which tenants there are, and which indexes still belong to a collection, to drop the
    -- others; the application, which does not own them, sees its own.
    EXECUTE format('CREATE POLICY operator ON tenants FOR SELECT TO %I USING (true)', current_user);
    EXECUTE format('CREATE POLICY operator ON vector_indexes FOR SELECT TO %I USING (true)', current_user);
END
$$;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenants USING (id = (SELECT rag_tenant())) WITH CHECK (id = (SELECT rag_tenant()));

-- Readers are limited to their collections. The list of readable collections is read at most once for a statement, and not at
-- all where everything may be read.

CREATE POLICY reader ON collections AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR cardinality(groups) = 0 OR (SELECT rag_group()) = ANY (groups));
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'page_corrections', 'document_chunks', 'chunk_terms', 'keyword_documents', 'keyword_blocks', 'chunk_bits',
        'meaning_vectors', 'meaning_parts', 'meaning_bits', 'help_requests', 'opinions', 'gaps', 'golden_questions',
        'evaluation_runs'
    ] LOOP
        EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                       'OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
    END LOOP;
    -- What belongs to no collection, or to one that is deleted, is everybody's.
    FOREACH t IN ARRAY ARRAY[
        'documents', 'reembeddings', 'collection_sources', 'sync_items', 'sync_runs', 'keyword_totals', 'keyword_numbers',
        'keyword_segments', 'keyword_tombstones', 'spare_vectors', 'conversations', 'cost_ledger', 'question_days',
        'question_time_days', 'document_days', 'cost_days', 'question_weeks', 'question_time_weeks', 'document_weeks',
        'cost_weeks'
    ] LOOP
        EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                       'OR collection_id IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
    END LOOP;
END
$$;
CREATE POLICY reader ON document_pages AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM documents d WHERE d.id = document_id));
CREATE POLICY reader ON attachment_texts AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM documents d WHERE d.id = attachment_texts.document_id));
CREATE POLICY reader ON sentence_vectors AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM documents d WHERE d.id = sentence_vectors.document_id));
-- Without a tenant only the owner sees rows, and has to see all: it drops the indexes that have none.
CREATE POLICY reader ON vector_indexes AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR (SELECT rag_tenant()) IS NULL
           OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON chat_logs AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all())
           OR (collection_id IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)))
           AND (limited_to IS NULL OR limited_to <@ ARRAY(SELECT id FROM collections)));
-- Others see a conversation that is shared, as it was by then.
CREATE POLICY reader ON messages AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all())
           OR EXISTS (SELECT FROM conversations c
                      WHERE c.id = conversation_id
                        AND (c.owner_id = (SELECT rag_account()) OR messages.created_at <= c.shared_at))
              AND (limited_to IS NULL OR limited_to <@ ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON prompts AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM chat_logs l WHERE l.id = chat_log_id));
CREATE POLICY reader ON feedback AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM chat_logs l WHERE l.id = chat_log_id));
CREATE POLICY reader ON gap_questions AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM gaps g WHERE g.id = gap_id));
CREATE POLICY reader ON gap_meanings AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM gaps g WHERE g.id = gap_id));
CREATE POLICY reader ON evaluation_results AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM evaluation_runs r WHERE r.id = run_id));
-- What a request presents finds a widget or a bot before a tenant is known.
CREATE POLICY reader ON widgets AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR key_hash = (SELECT rag_presented())
           OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON teams_bots AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR key_hash = (SELECT rag_presented()) OR collection_id IS NULL
           OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON chat_threads AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM conversations c WHERE c.id = conversation_id));

-- Before the tenant is known, a secret that somebody presents lets the one row be read that it belongs to.

CREATE POLICY presented ON accounts FOR SELECT USING (email = (SELECT rag_verified('email')));
CREATE POLICY presented ON sessions FOR SELECT USING (token_hash = (SELECT rag_presented()));
CREATE POLICY presented ON one_time_links FOR SELECT USING (token_hash = (SELECT rag_presented()));
CREATE POLICY presented ON api_keys FOR SELECT USING (secret_hash = (SELECT rag_presented()));
CREATE POLICY presented ON external_identities FOR SELECT USING (subject_hash = (SELECT rag_presented()));
CREATE POLICY presented ON session_origins FOR SELECT
    USING ((SELECT rag_presented()) IN (subject_hash, session_hash));
CREATE POLICY presented ON connected_apps FOR SELECT
    USING ((SELECT rag_presented()) IN (code_hash, access_hash, refresh_hash));
CREATE POLICY presented ON used_app_tokens FOR SELECT USING (token_hash = (SELECT rag_presented()));
CREATE POLICY presented ON widgets FOR SELECT USING (key_hash = (SELECT rag_presented()));
CREATE POLICY presented ON teams_bots FOR SELECT USING (key_hash = (SELECT rag_presented()));

-- What a person's own transaction sees and changes: nothing that decides over rights, unless they are an administrator; of
-- other people's conversations, questions, ratings, drafts and acts nothing, but what somebody shared, and what managers read
-- of what others asked. The product itself acts without an account and reads all; so do administrators, and keys that may
-- write. A key of a program has no account: it sees what belongs to its conversations.
--
-- Each policy is for one command where who may read is not who may write. A statement without a condition reads nothing, so
-- that the policies of its own command alone bind it.

DO $$
DECLARE
    t text;
    whose text;
BEGIN
    -- Of one person: how they sign in. Before the tenant is known, what is presented is seen.
    FOREACH t IN ARRAY ARRAY['sessions', 'one_time_links', 'known_browsers', 'second_factors', 'recovery_codes',
                             'external_identities', 'connected_apps'] LOOP
        EXECUTE format('CREATE POLICY own ON %I AS RESTRICTIVE USING ((SELECT rag_reads_all()) '
                       'OR account_id = (SELECT rag_account()) OR (SELECT rag_tenant()) IS NULL)', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['session_origins', 'used_app_tokens'] LOOP
        EXECUTE format('CREATE POLICY own ON %I AS RESTRICTIVE USING ((SELECT rag_reads_all()) '
                       'OR (SELECT rag_tenant()) IS NULL)', t);
    END LOOP;
    FOR t, whose IN VALUES ('chat_threads', 'account_id'), ('opinions', 'owner_id'), ('budget_consents', 'account_id')
    LOOP
        EXECUTE format('CREATE POLICY own ON %I AS RESTRICTIVE USING ((SELECT rag_reads_all()) '
                       'OR %I = (SELECT rag_account()))', t, whose);
    END LOOP;
    -- Everybody has their own.
    FOREACH t IN ARRAY ARRAY['saved_views', 'refused_files'] LOOP
        EXECUTE format('CREATE POLICY own ON %I AS RESTRICTIVE USING (account_id = (SELECT rag_account()) '
                       'OR (SELECT rag_account()) IS NULL)', t);
    END LOOP;
    -- Seen by who sees what others asked. What belongs to a gap or a run is seen with it.
    FOREACH t IN ARRAY ARRAY[
        'gaps', 'golden_questions', 'evaluation_runs', 'cost_ledger', 'cost_days', 'cost_weeks', 'question_days',
        'question_weeks', 'question_time_days', 'question_time_weeks', 'document_days', 'document_weeks'
    ] LOOP
        EXECUTE format('CREATE POLICY own_read ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_sees_others()))', t);
    END LOOP;
    -- Seen by administrators.
    FOREACH t IN ARRAY ARRAY['budgets', 'erasures', 'paid_calls', 'webhook_deliveries'] LOOP
        EXECUTE format('CREATE POLICY own_read ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()))', t);
    END LOOP;
    -- Changed by administrators, or written by the product. One policy for each command, because one for all would hold for
    -- reading too.
    FOREACH t IN ARRAY ARRAY[
        'tenants', 'accounts', 'api_keys', 'one_time_links', 'external_identities', 'user_groups', 'collections',
        'collection_sources', 'sync_items', 'sync_runs', 'documents', 'document_pages', 'document_chunks',
        'page_corrections', 'file_removals', 'reembeddings', 'spare_vectors', 'vector_indexes', 'keyword_totals',
        'keyword_documents', 'keyword_numbers', 'keyword_segments', 'keyword_blocks', 'keyword_tombstones',
        'chunk_terms', 'chunk_bits', 'meaning_vectors', 'meaning_parts', 'meaning_bits', 'golden_questions',
        'evaluation_runs', 'evaluation_results', 'tenant_prices', 'budgets', 'webhooks', 'widgets', 'teams_bots',
        'tenant_deletions', 'paid_calls', 'prompts', 'gap_questions', 'gap_meanings', 'cost_ledger', 'cost_days',
        'cost_weeks', 'question_days', 'question_weeks', 'question_time_days', 'question_time_weeks', 'document_days',
        'document_weeks', 'erasures'
    ] LOOP
        EXECUTE format('CREATE POLICY managed_added ON %I AS RESTRICTIVE FOR INSERT '
                       'WITH CHECK ((SELECT rag_reads_all()))', t);
        -- Links end with a change of one's own password.
        CONTINUE WHEN t = 'one_time_links';
        EXECUTE format('CREATE POLICY managed_removed ON %I AS RESTRICTIVE FOR DELETE '
                       'USING ((SELECT rag_reads_all()))', t);
        CONTINUE WHEN t = 'accounts';
        EXECUTE format('CREATE POLICY managed_changed ON %I AS RESTRICTIVE FOR UPDATE '
                       'USING ((SELECT rag_reads_all()))', t);
    END LOOP;
    -- Others' accounts, with when they signed in and what the directory says of them, are for managers.
    EXECUTE format('CREATE POLICY own_read ON accounts AS RESTRICTIVE FOR SELECT '
                   'USING (id = (SELECT rag_account()) OR (SELECT rag_sees_others()) OR (SELECT rag_tenant()) IS NULL '
                   'OR current_user = %L)', current_user);
END
$$;

-- People change their own account, and no right that it has (rag_keep_rights).
CREATE POLICY managed_changed ON accounts AS RESTRICTIVE FOR UPDATE
    USING ((SELECT rag_reads_all()) OR id = (SELECT rag_account()));
-- A key is seen by its program, and by its hash before the tenant is known.
CREATE POLICY own_read ON api_keys AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR id = (SELECT rag_account()) OR (SELECT rag_tenant()) IS NULL);

CREATE POLICY own_read ON conversations AS RESTRICTIVE FOR SELECT
    USING (owner_id = (SELECT rag_account()) OR (SELECT rag_reads_all()) OR shared_at IS NOT NULL);
CREATE POLICY own_added ON conversations AS RESTRICTIVE FOR INSERT
    WITH CHECK (owner_id = (SELECT rag_account()) OR (SELECT rag_reads_all()));
CREATE POLICY own_changed ON conversations AS RESTRICTIVE FOR UPDATE
    USING (owner_id = (SELECT rag_account()) OR (SELECT rag_reads_all()));
CREATE POLICY own_removed ON conversations AS RESTRICTIVE FOR DELETE
    USING (owner_id = (SELECT rag_account()) OR (SELECT rag_reads_all()));
CREATE POLICY own_added ON messages AS RESTRICTIVE FOR INSERT
    WITH CHECK ((SELECT rag_reads_all()) OR EXISTS (
        SELECT FROM conversations c WHERE c.id = conversation_id AND c.owner_id = (SELECT rag_account())));
CREATE POLICY own_changed ON messages AS RESTRICTIVE FOR UPDATE
    USING ((SELECT rag_reads_all()) OR EXISTS (
        SELECT FROM conversations c WHERE c.id = conversation_id AND c.owner_id = (SELECT rag_account())));

-- Questions of a program name nobody as the asker.
CREATE POLICY own_read ON chat_logs AS RESTRICTIVE FOR SELECT
    USING (account_id = (SELECT rag_account()) OR (SELECT rag_sees_others()) OR (account_id IS NULL AND EXISTS (
        SELECT FROM conversations c WHERE c.id = conversation_id AND c.owner_id = (SELECT rag_account()))));
CREATE POLICY own_added ON chat_logs AS RESTRICTIVE FOR INSERT
    WITH CHECK ((account_id = (SELECT rag_account())
                 OR (account_id IS NULL AND EXISTS (SELECT FROM api_keys k WHERE k.id = (SELECT rag_account()))))
                AND (conversation_id IS NULL OR EXISTS (
                    SELECT FROM conversations c WHERE c.id = conversation_id AND c.owner_id = (SELECT rag_account())))
                OR (SELECT rag_reads_all()));
CREATE POLICY own_changed ON chat_logs AS RESTRICTIVE FOR UPDATE
    USING ((SELECT rag_reads_all()) OR account_id = (SELECT rag_account()));
CREATE POLICY own_removed ON chat_logs AS RESTRICTIVE FOR DELETE USING ((SELECT rag_reads_all()));
-- A search that paid nothing leaves no row behind; no other row of the log may be deleted by the application.
CREATE POLICY searches_discarded ON chat_logs AS RESTRICTIVE FOR DELETE TO rag_app
    USING (kind = 'search' AND outcome IS NULL);

-- Ratings are read with their question. Those of a program name nobody.
CREATE POLICY own_added ON feedback AS RESTRICTIVE FOR INSERT
    WITH CHECK (account_id = (SELECT rag_account()) OR (SELECT rag_reads_all()) OR (account_id IS NULL AND EXISTS (
        SELECT FROM chat_logs l JOIN conversations c ON c.id = l.conversation_id
        WHERE l.id = chat_log_id AND c.owner_id = (SELECT rag_account()))));
CREATE POLICY own_changed ON feedback AS RESTRICTIVE FOR UPDATE
    USING (account_id = (SELECT rag_account()) OR (SELECT rag_reads_all()) OR (account_id IS NULL AND EXISTS (
        SELECT FROM chat_logs l JOIN conversations c ON c.id = l.conversation_id
        WHERE l.id = chat_log_id AND c.owner_id = (SELECT rag_account()))));

-- Managers answer what is passed on to them, and change gaps.
CREATE POLICY own_read ON help_requests AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_sees_others()) OR account_id = (SELECT rag_account()));
CREATE POLICY own_added ON help_requests AS RESTRICTIVE FOR INSERT
    WITH CHECK ((SELECT rag_reads_all()) OR account_id = (SELECT rag_account()));
CREATE POLICY own_changed ON help_requests AS RESTRICTIVE FOR UPDATE
    USING ((SELECT rag_reads_all()) OR account_id = (SELECT rag_account())
           OR ((SELECT rag_sees_others()) AND collection_id = ANY (ARRAY(SELECT id FROM collections))));
CREATE POLICY own_added ON gaps AS RESTRICTIVE FOR INSERT WITH CHECK ((SELECT rag_reads_all()));
CREATE POLICY own_changed ON gaps AS RESTRICTIVE FOR UPDATE
    USING ((SELECT rag_reads_all())
           OR ((SELECT rag_sees_others()) AND collection_id = ANY (ARRAY(SELECT id FROM collections))));
-- A change of a gap adds a delivery, too.
CREATE POLICY own_changed ON webhook_deliveries AS RESTRICTIVE FOR UPDATE USING ((SELECT rag_reads_all()));
CREATE POLICY own_removed ON webhook_deliveries AS RESTRICTIVE FOR DELETE USING ((SELECT rag_reads_all()));
-- What managers answer changes what its asker sees.
CREATE POLICY own ON history_changes AS RESTRICTIVE
    USING (owner_id = (SELECT rag_account()) OR (SELECT rag_sees_others()));

-- Acts are added under one's own name.
CREATE POLICY own_read ON audit_log AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR account_id = (SELECT rag_account()));
CREATE POLICY own_added ON audit_log AS RESTRICTIVE FOR INSERT
    WITH CHECK ((SELECT rag_reads_all()) OR account_id = (SELECT rag_account()));

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

GRANT SELECT, INSERT, UPDATE, DELETE ON budgets, chat_logs, chat_threads, collection_sources, collections, connected_apps,
    conversations, document_chunks, document_pages, documents, file_removals, gap_meanings, golden_questions,
    history_changes, known_browsers, one_time_links, paid_calls, procrastinate_jobs, procrastinate_workers, prompts,
    recovery_codes, saved_views, second_factors, sessions, teams_bots, user_groups, vector_indexes, webhook_deliveries,
    webhooks, widgets TO rag_app;
GRANT SELECT, INSERT, UPDATE ON api_keys, attachment_texts, calendar_work, evaluation_runs, feedback, gaps, help_requests,
    keyword_numbers, keyword_totals, messages, opinions, reembeddings, session_origins, sync_items, sync_runs,
    tenant_changes TO rag_app;
GRANT SELECT, INSERT, DELETE ON chat_deliveries, chunk_bits, chunk_terms, cost_days, cost_weeks,
    document_days, document_weeks, gap_questions, keyword_blocks, keyword_documents, keyword_segments, keyword_tombstones,
    meaning_vectors, page_corrections, question_days, question_time_days, question_time_weeks, question_weeks,
    refused_files, rolled_days, rolled_weeks, sentence_vectors, spare_vectors, used_app_tokens TO rag_app;
GRANT UPDATE (outcome) ON gap_questions TO rag_app;
-- What is written in a record stays there.
GRANT SELECT, INSERT ON audit_log, budget_consents, cost_ledger, evaluation_results, external_identities, meaning_bits,
    meaning_parts, procrastinate_events, tenant_deletions, tenant_prices, tenants TO rag_app;
GRANT UPDATE (name, settings, suspended_at, mark) ON tenants TO rag_app;
GRANT SELECT, UPDATE ON procrastinate_periodic_defers TO rag_app;
GRANT SELECT ON document_versions, erasures, question_outcomes TO rag_app;
GRANT USAGE ON SEQUENCE procrastinate_events_id_seq, procrastinate_jobs_id_seq, procrastinate_periodic_defers_id_seq,
    procrastinate_workers_id_seq TO rag_app;
-- Hashes of passwords are selected by nobody but the owner.
GRANT INSERT, UPDATE ON accounts TO rag_app;
GRANT SELECT (id, tenant_id, email, name, role, user_group, is_active, failed_attempts, last_failed_at, last_signed_in_at,
              created_at, password_asked_at, last_collection_id, waiting_browsers, language, directory_fields,
              removed_by_directory_at) ON accounts TO rag_app;

SELECT rag_close_rest_api();
SELECT rag_close_database();

-- `python -m rag psql` signs in to the built-in server as this role. It reads what its sealed identity lets it read, and
-- nothing by which somebody signs in. Elsewhere the owner of the tables asks, by rag_enter.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_reader') THEN
        GRANT USAGE ON SCHEMA public, extensions TO rag_reader;
        GRANT SELECT ON tenants, collections, documents, document_pages, document_chunks, conversations, messages,
            chat_logs, feedback, cost_ledger, sync_runs, sync_items TO rag_reader;
        GRANT EXECUTE ON FUNCTION public.rag_verified(text), public.rag_tenant(), public.rag_reads_all(),
            public.rag_group(), public.match_document_chunks TO rag_reader;
    END IF;
END
$$;
