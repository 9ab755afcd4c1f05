-- On Supabase the schema public is also an API: nothing of ours is open there but match_document_chunks.
-- And sign-ins by others: which of our accounts a person of theirs is, and what is known of sessions they began.

-- The tenant a token of Supabase Auth names, put into it by whoever holds the service key; null without one.
-- Null as well for a suspended tenant and a disabled account: a token outlives both by up to an hour. The owner looks,
-- because whoever calls the REST API may read neither table.
CREATE FUNCTION rag_claimed_tenant() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, extensions AS $$
DECLARE
    claims jsonb := nullif(current_setting('request.jwt.claims', true), '')::jsonb;
BEGIN
    RETURN (
        SELECT t.id FROM tenants t
        WHERE t.id = claims -> 'app_metadata' ->> 'tenant' AND t.suspended_at IS NULL
          AND NOT EXISTS (SELECT FROM accounts a WHERE a.email = lower(claims ->> 'email') AND NOT a.is_active)
    );
END
$$;
COMMENT ON FUNCTION rag_claimed_tenant() IS 'The tenant in the verified token of the caller of the REST API.';

-- Who a person of another sign-in service is here. The hash is that of the service and its name of the person.
CREATE TABLE external_identities (
    subject_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
    issuer text NOT NULL,
    subject text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account_id, issuer)
);
CREATE INDEX ON external_identities (tenant_id);

-- Sessions that began with another service's: found by its messages of a sign-out, asked about again when it is time.
CREATE TABLE session_origins (
    token_hash bytea PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    issuer text NOT NULL,
    subject_hash bytea NOT NULL,
    -- Of the other service's session, where it names one.
    session_hash bytea,
    -- What the other service wants to see when it is asked again, encrypted.
    secret bytea,
    -- When to ask again; null: never.
    check_after timestamptz
);
CREATE INDEX ON session_origins (tenant_id);
CREATE INDEX ON session_origins (subject_hash);
CREATE INDEX ON session_origins (session_hash);

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['external_identities', 'session_origins']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO rag_app', t);
    END LOOP;
END
$$;

-- As with sessions: whoever presents the hash may read the rows it names, before the tenant is known.
CREATE POLICY presented ON external_identities FOR SELECT
    USING (subject_hash = decode(nullif(current_setting('rag.token_hash', true), ''), 'hex'));
CREATE POLICY presented ON session_origins FOR SELECT
    USING (decode(nullif(current_setting('rag.token_hash', true), ''), 'hex') IN (subject_hash, session_hash));

-- Closes what Supabase opens to everybody who has the public key: each new table and function of the schema public.
-- Run again after every migration, so that none can forget it. Tables are ours when rag_app has rights on them.
CREATE FUNCTION rag_close_rest_api() RETURNS void
    LANGUAGE plpgsql SET search_path = public, extensions AS $$
DECLARE
    outsider text;
    item record;
BEGIN
    FOR item IN
        SELECT p.oid::regprocedure AS name FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND p.proowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
          AND (p.proname IN ('match_document_chunks', 'lock_keywords', 'fold_keyword_removals', 'rag_close_rest_api')
               OR p.proname LIKE 'procrastinate\_%')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', item.name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO rag_app', item.name);
        FOR outsider IN SELECT rolname FROM pg_roles WHERE rolname IN ('anon', 'authenticated') LOOP
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', item.name, outsider);
        END LOOP;
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
            ON document_chunks TO authenticated;
        GRANT SELECT (id, tenant_id, status) ON documents TO authenticated;
        -- Which collections are open to everybody is decided by their own policy.
        GRANT SELECT (id, tenant_id) ON collections TO authenticated;
        GRANT EXECUTE ON FUNCTION match_document_chunks TO authenticated;
        IF NOT EXISTS (SELECT FROM pg_policies WHERE schemaname = 'public' AND tablename = 'documents'
                       AND policyname = 'claimed') THEN
            CREATE POLICY claimed ON collections FOR SELECT TO authenticated
                USING (tenant_id = (SELECT rag_claimed_tenant()));
            CREATE POLICY claimed ON documents FOR SELECT TO authenticated
                USING (tenant_id = (SELECT rag_claimed_tenant()) AND status = 'completed');
            CREATE POLICY claimed ON document_chunks FOR SELECT TO authenticated
                USING (tenant_id = (SELECT rag_claimed_tenant())
                       AND EXISTS (SELECT FROM documents d WHERE d.id = document_id AND d.status = 'completed'));
        END IF;
    END IF;
END
$$;

SELECT rag_close_rest_api();
