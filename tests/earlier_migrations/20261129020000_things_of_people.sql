-- What a person's own transaction sees and changes of other people: their conversations, questions, ratings, drafts and
-- acts. Nothing, but what somebody shared, and what managers read of what others asked.

-- Managers see what was asked about the collections that they may read: 'manager:' and their group.
CREATE OR REPLACE FUNCTION public.rag_group() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(substring(public.rag_verified('reads') FROM '^(?:group|manager):(.*)$'), '');
CREATE FUNCTION public.rag_sees_others() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(public.rag_verified('reads') ~ '^(all$|manager:)', false);
COMMENT ON FUNCTION public.rag_sees_others() IS
    'Whether this transaction sees what others asked: the product''s own, of administrators and of managers.';

-- Each policy is for one command where who may read is not who may write. A statement without a condition reads nothing,
-- so that the policies of its own command alone bind it.

-- Conversations and what is in them. Others see one that is shared, as it was by then.

CREATE POLICY own_read ON conversations AS RESTRICTIVE FOR SELECT
    USING (owner_id = (SELECT rag_account()) OR (SELECT rag_reads_all()) OR shared_at IS NOT NULL);
CREATE POLICY own_added ON conversations AS RESTRICTIVE FOR INSERT
    WITH CHECK (owner_id = (SELECT rag_account()) OR (SELECT rag_reads_all()));
CREATE POLICY own_changed ON conversations AS RESTRICTIVE FOR UPDATE
    USING (owner_id = (SELECT rag_account()) OR (SELECT rag_reads_all()));
CREATE POLICY own_removed ON conversations AS RESTRICTIVE FOR DELETE
    USING (owner_id = (SELECT rag_account()) OR (SELECT rag_reads_all()));

ALTER POLICY reader ON messages
    USING ((SELECT rag_reads_all())
           OR EXISTS (SELECT FROM conversations c
                      WHERE c.id = conversation_id
                        AND (c.owner_id = (SELECT rag_account()) OR messages.created_at <= c.shared_at))
              AND (limited_to IS NULL OR limited_to <@ ARRAY(SELECT id FROM collections)));
CREATE POLICY own_added ON messages AS RESTRICTIVE FOR INSERT
    WITH CHECK ((SELECT rag_reads_all()) OR EXISTS (
        SELECT FROM conversations c WHERE c.id = conversation_id AND c.owner_id = (SELECT rag_account())));
CREATE POLICY own_changed ON messages AS RESTRICTIVE FOR UPDATE
    USING ((SELECT rag_reads_all()) OR EXISTS (
        SELECT FROM conversations c WHERE c.id = conversation_id AND c.owner_id = (SELECT rag_account())));

-- Questions. A key of a program has no account: it sees those of its conversations, and names nobody as the asker.

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

-- What managers answer changes what its asker sees.
CREATE POLICY own ON history_changes AS RESTRICTIVE
    USING (owner_id = (SELECT rag_account()) OR (SELECT rag_sees_others()));

-- Acts are added under one's own name.
CREATE POLICY own_read ON audit_log AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR account_id = (SELECT rag_account()));
CREATE POLICY own_added ON audit_log AS RESTRICTIVE FOR INSERT
    WITH CHECK ((SELECT rag_reads_all()) OR account_id = (SELECT rag_account()));

-- A key is seen by its program, and by its hash before the tenant is known.
CREATE POLICY own_read ON api_keys AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR id = (SELECT rag_account()) OR (SELECT rag_tenant()) IS NULL);

-- Others' accounts, with when they signed in and what the directory says of them, are for managers. Who shared, answered
-- or added something is named by functions of the owner.

DO $$
BEGIN
    EXECUTE format('CREATE POLICY own_read ON accounts AS RESTRICTIVE FOR SELECT '
                   'USING (id = (SELECT rag_account()) OR (SELECT rag_sees_others()) OR (SELECT rag_tenant()) IS NULL '
                   'OR current_user = %L)', current_user);
END
$$;
CREATE FUNCTION public.rag_name_of(p_account_id uuid) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    RETURN (SELECT a.name FROM public.accounts a WHERE a.id = p_account_id AND a.tenant_id = public.rag_tenant());
COMMENT ON FUNCTION public.rag_name_of(uuid) IS 'The name of a person of this tenant.';
CREATE FUNCTION public.rag_address_of(p_account_id uuid) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    RETURN (SELECT a.email FROM public.accounts a WHERE a.id = p_account_id AND a.tenant_id = public.rag_tenant());
COMMENT ON FUNCTION public.rag_address_of(uuid) IS 'The e-mail address of a person of this tenant.';

DO $$
DECLARE
    t text;
    whose text;
BEGIN
    -- Of one person alone.
    FOR t, whose IN VALUES ('chat_threads', 'account_id'), ('opinions', 'owner_id'), ('budget_consents', 'account_id')
    LOOP
        EXECUTE format('CREATE POLICY own ON %I AS RESTRICTIVE USING ((SELECT rag_reads_all()) '
                       'OR %I = (SELECT rag_account()))', t, whose);
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
    -- Written by the product.
    FOREACH t IN ARRAY ARRAY[
        'paid_calls', 'prompts', 'gap_questions', 'gap_meanings', 'cost_ledger', 'cost_days', 'cost_weeks',
        'question_days', 'question_weeks', 'question_time_days', 'question_time_weeks', 'document_days',
        'document_weeks', 'erasures'
    ] LOOP
        EXECUTE format('CREATE POLICY managed_added ON %I AS RESTRICTIVE FOR INSERT '
                       'WITH CHECK ((SELECT rag_reads_all()))', t);
        EXECUTE format('CREATE POLICY managed_changed ON %I AS RESTRICTIVE FOR UPDATE '
                       'USING ((SELECT rag_reads_all()))', t);
        EXECUTE format('CREATE POLICY managed_removed ON %I AS RESTRICTIVE FOR DELETE '
                       'USING ((SELECT rag_reads_all()))', t);
    END LOOP;
    -- A change of a gap adds one, too.
    CREATE POLICY own_changed ON webhook_deliveries AS RESTRICTIVE FOR UPDATE USING ((SELECT rag_reads_all()));
    CREATE POLICY own_removed ON webhook_deliveries AS RESTRICTIVE FOR DELETE USING ((SELECT rag_reads_all()));
END
$$;

SELECT rag_close_rest_api();
