-- What a person's own transaction may change: nothing that decides over rights, unless they are an administrator; and
-- the hash of a password is told to a sign-in alone, for the one account that it names.

-- The product itself acts without an account and reads all; so do administrators, and keys that may write.

-- Of one person: seen and changed in their own transactions. Before the tenant is known, what is presented is seen.

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['sessions', 'one_time_links', 'known_browsers', 'second_factors', 'recovery_codes',
                             'external_identities', 'connected_apps'] LOOP
        EXECUTE format('CREATE POLICY own ON %I AS RESTRICTIVE USING ((SELECT rag_reads_all()) '
                       'OR account_id = (SELECT rag_account()) OR (SELECT rag_tenant()) IS NULL)', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['session_origins', 'used_app_tokens'] LOOP
        EXECUTE format('CREATE POLICY own ON %I AS RESTRICTIVE USING ((SELECT rag_reads_all()) '
                       'OR (SELECT rag_tenant()) IS NULL)', t);
    END LOOP;
END
$$;

-- Of administrators: everybody may see it where the other policies say so, and they alone change it. One policy for each
-- command, because one for all would hold for reading too.

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'tenants', 'accounts', 'api_keys', 'one_time_links', 'external_identities', 'user_groups', 'collections',
        'collection_sources', 'sync_items', 'sync_runs', 'documents', 'document_pages', 'document_chunks',
        'page_corrections', 'file_removals', 'reembeddings', 'spare_vectors', 'vector_indexes', 'keyword_totals',
        'keyword_documents', 'keyword_numbers', 'keyword_segments', 'keyword_blocks', 'keyword_tombstones',
        'chunk_terms', 'chunk_bits', 'meaning_vectors', 'meaning_parts', 'meaning_bits', 'golden_questions',
        'evaluation_runs', 'evaluation_results', 'tenant_prices', 'budgets', 'webhooks', 'widgets', 'teams_bots',
        'tenant_deletions'
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
END
$$;

-- People change their own account (its password, its language), and no right that it has.

CREATE POLICY managed_changed ON accounts AS RESTRICTIVE FOR UPDATE
    USING ((SELECT rag_reads_all()) OR id = (SELECT rag_account()));

CREATE FUNCTION public.rag_keep_rights() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT public.rag_reads_all() THEN
        RAISE insufficient_privilege USING MESSAGE = 'Only an administrator changes what an account may do.';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER keep_rights BEFORE UPDATE ON accounts FOR EACH ROW
    WHEN ((OLD.id, OLD.tenant_id, OLD.email, OLD.role, OLD.user_group, OLD.is_active)
          IS DISTINCT FROM (NEW.id, NEW.tenant_id, NEW.email, NEW.role, NEW.user_group, NEW.is_active))
    EXECUTE FUNCTION rag_keep_rights();

-- Hashes of passwords are selected by nobody but the owner. A column that is added to accounts needs a grant of its own.

DO $$
BEGIN
    REVOKE SELECT ON accounts FROM rag_app;
    EXECUTE (SELECT format('GRANT SELECT (%s) ON accounts TO rag_app', string_agg(quote_ident(attname), ', '))
             FROM pg_attribute
             WHERE attrelid = 'accounts'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'password_hash');
END
$$;

-- Volatile: where a row was locked, the password that it was changed to meanwhile is the one to check.
CREATE FUNCTION public.rag_password_hash(p_account_id uuid) RETURNS text
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (public.rag_verified('checks') = p_account_id::text) IS NOT TRUE THEN
        RAISE insufficient_privilege USING MESSAGE = 'This transaction checks no password of this account.';
    END IF;
    RETURN (SELECT a.password_hash FROM public.accounts a
            WHERE a.id = p_account_id AND a.tenant_id = public.rag_tenant());
END
$$;
COMMENT ON FUNCTION public.rag_password_hash(uuid) IS
    'The stored hash of the account whose password the identity of this transaction says it checks.';
