-- What Postgres and Supabase open to everybody, and how it is closed.

-- The tenant in a token of Supabase Auth, put there with the service key; null without one. Null as well for a
-- suspended tenant and for an account that is disabled in it: a token outlives both by up to an hour. The owner looks,
-- because callers of the REST API may read neither table.
CREATE FUNCTION public.rag_claimed_tenant() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    claims jsonb := nullif(pg_catalog.current_setting('request.jwt.claims', true), '')::jsonb;
BEGIN
    RETURN (
        SELECT t.id FROM public.tenants t
        WHERE t.id = claims -> 'app_metadata' ->> 'tenant' AND t.suspended_at IS NULL
          AND NOT EXISTS (SELECT FROM public.accounts a
                          WHERE a.tenant_id = t.id AND a.email = pg_catalog.lower(claims ->> 'email')
                            AND NOT a.is_active)
    );
END
$$;
COMMENT ON FUNCTION rag_claimed_tenant() IS 'The tenant in the verified token of the caller of the REST API.';

-- Closes temporary tables, which come before the real ones in an unguarded path, and, in databases made before Postgres
-- 15, the schema public. Run at every start: a copy of a database is open again.
CREATE FUNCTION public.rag_close_database() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_has_role((SELECT datdba FROM pg_database WHERE datname = current_database()), 'MEMBER')
       AND has_database_privilege('rag_app', current_database(), 'TEMPORARY') THEN
        EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC, rag_app', current_database());
    END IF;
    IF pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = 'public'), 'MEMBER')
       AND has_schema_privilege('rag_app', 'public', 'CREATE') THEN
        REVOKE CREATE ON SCHEMA public FROM PUBLIC, rag_app;
    END IF;
END
$$;

-- On Supabase the schema public is also an API, open to everybody who has the public key. Closes each function to all
-- but the application, and each table of ours to the API's callers, except match_document_chunks. Run again after every
-- migration, so that none can forget it. Tables are ours when rag_app has rights on them.
CREATE FUNCTION public.rag_close_rest_api() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    outsider text;
    item record;
BEGIN
    FOR item IN
        SELECT p.oid::regprocedure AS name, p.proname, p.prorettype = 'trigger'::regtype AS is_trigger
        FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND p.proowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
          AND (p.proname LIKE 'rag\_%' OR p.proname LIKE 'procrastinate\_%'
               OR p.proname IN ('match_document_chunks', 'lock_keywords', 'metadata_day')
               OR EXISTS (SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                          WHERE t.tgfoid = p.oid AND EXISTS (SELECT FROM aclexplode(c.relacl) a
                              WHERE a.grantee = (SELECT oid FROM pg_roles WHERE rolname = 'rag_app'))))
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', item.name);
        FOR outsider IN SELECT rolname FROM pg_roles WHERE rolname IN ('anon', 'authenticated') LOOP
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', item.name, outsider);
        END LOOP;
        -- Triggers are fired without a right to call them.
        IF item.is_trigger OR item.proname IN ('rag_enter', 'rag_close_rest_api', 'rag_close_database') THEN
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM rag_app', item.name);
        ELSE
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO rag_app', item.name);
        END IF;
    END LOOP;

    FOR outsider IN SELECT rolname FROM pg_roles WHERE rolname IN ('anon', 'authenticated') LOOP
        FOR item IN
            SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
              AND pg_has_role(c.relowner, 'MEMBER')
              AND (c.relname = 'rag_migrations'
                   OR EXISTS (SELECT FROM aclexplode(c.relacl) a
                              WHERE a.grantee = (SELECT oid FROM pg_roles WHERE rolname = 'rag_app')))
        LOOP
            EXECUTE format('REVOKE ALL ON %s %s FROM %I',
                           CASE item.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, item.name, outsider);
        END LOOP;
    END LOOP;

    -- People who signed in at Supabase search their own tenant: by the function, and in nothing but what it reads.
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'authenticated') THEN
        GRANT SELECT (id, document_id, tenant_id, collection_id, content, metadata, embedding)
            ON public.document_chunks TO authenticated;
        GRANT SELECT (id, tenant_id, status) ON public.documents TO authenticated;
        -- Which collections are open to everybody is decided by their own policy.
        GRANT SELECT (id, tenant_id) ON public.collections TO authenticated;
        GRANT EXECUTE ON FUNCTION public.match_document_chunks TO authenticated;
        -- What the policies of these tables ask. They tell nothing but what the caller's own transaction says.
        GRANT EXECUTE ON FUNCTION public.rag_claimed_tenant, public.rag_tenant, public.rag_reads_all, public.rag_group,
            public.rag_verified TO authenticated;
        IF NOT EXISTS (SELECT FROM pg_policies WHERE schemaname = 'public' AND tablename = 'documents'
                       AND policyname = 'claimed') THEN
            CREATE POLICY claimed ON public.collections FOR SELECT TO authenticated
                USING (tenant_id = (SELECT public.rag_claimed_tenant()));
            CREATE POLICY claimed ON public.documents FOR SELECT TO authenticated
                USING (tenant_id = (SELECT public.rag_claimed_tenant()) AND status = 'completed');
            CREATE POLICY claimed ON public.document_chunks FOR SELECT TO authenticated
                USING (tenant_id = (SELECT public.rag_claimed_tenant())
                       AND EXISTS (SELECT FROM public.documents d WHERE d.id = document_id AND d.status = 'completed'));
        END IF;
    END IF;
END
$$;
