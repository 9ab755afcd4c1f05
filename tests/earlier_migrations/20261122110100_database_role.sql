-- A database role that stays itself. Every transaction presents its identity with a seal that only the application can
-- make, so that a statement smuggled into one can neither name another tenant nor another person. Functions find nothing
-- by a path that the caller can put something into, and the application's role may do what the product does, no more.

-- The seal: HMAC-SHA256 of the identity. The key is read by the owner of the tables, who hands it to the application when
-- it starts; the application's role cannot read it, and no function tells it.

CREATE SCHEMA rag_private;
COMMENT ON SCHEMA rag_private IS 'What the application''s role must not read; nothing here is granted to anybody.';
REVOKE ALL ON SCHEMA rag_private FROM PUBLIC;

CREATE TABLE rag_private.sealing_key (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    key bytea NOT NULL CHECK (length(key) = 64),
    -- The key as HMAC uses it (RFC 2104), so that checking a seal takes two hashes and nothing else.
    inner_key bytea NOT NULL,
    outer_key bytea NOT NULL
);
REVOKE ALL ON rag_private.sealing_key FROM PUBLIC;
INSERT INTO rag_private.sealing_key (key, inner_key, outer_key)
SELECT key,
       (SELECT string_agg(set_byte('\x00', 0, get_byte(key, i) # 54), ''::bytea ORDER BY i) FROM generate_series(0, 63) i),
       (SELECT string_agg(set_byte('\x00', 0, get_byte(key, i) # 92), ''::bytea ORDER BY i) FROM generate_series(0, 63) i)
FROM (SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
             || uuid_send(gen_random_uuid()) AS key) AS made;

CREATE FUNCTION public.rag_verified(p_name text) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    identity text := pg_catalog.current_setting('rag.identity', true);
    inner_key bytea;
    outer_key bytea;
BEGIN
    -- Asked a dozen times by a search. The key is fetched by itself: within the comparison it took three times as long.
    SELECT k.inner_key, k.outer_key INTO inner_key, outer_key FROM rag_private.sealing_key k;
    IF identity = '' OR pg_catalog.current_setting('rag.seal', true) IS DISTINCT FROM pg_catalog.encode(
        pg_catalog.sha256(outer_key || pg_catalog.sha256(inner_key || pg_catalog.convert_to(identity, 'UTF8'))), 'hex')
    THEN
        RETURN NULL;
    END IF;
    RETURN identity::pg_catalog.json ->> p_name;
END
$$;
COMMENT ON FUNCTION public.rag_verified(text) IS
    'What the identity of this transaction says, if its seal is right: tenant_id, account_id, actor, reads, …';

CREATE OR REPLACE FUNCTION public.rag_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN public.rag_verified('tenant_id');
CREATE OR REPLACE FUNCTION public.rag_reads_all() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(public.rag_verified('reads') = 'all', false);
CREATE OR REPLACE FUNCTION public.rag_group() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(substring(public.rag_verified('reads') FROM '^group:(.*)$'), '');
CREATE OR REPLACE FUNCTION public.rag_account() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
    RETURN public.rag_verified('account_id')::uuid;
CREATE FUNCTION public.rag_actor() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(public.rag_verified('actor'), '');
CREATE FUNCTION public.rag_is_worker() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(public.rag_verified('worker') = 'yes', false);
CREATE FUNCTION public.rag_presented() RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
    RETURN decode(public.rag_verified('token_hash'), 'hex');
COMMENT ON FUNCTION public.rag_presented() IS
    'The hash of the secret that somebody presents before their tenant is known: of a session, link or key.';

-- For people who ask the database itself: the owner, who reads the key anyway.
CREATE FUNCTION public.rag_enter(p_tenant_id text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    identity text := pg_catalog.json_build_object('tenant_id', p_tenant_id, 'reads', 'all')::text;
BEGIN
    PERFORM pg_catalog.set_config('rag.identity', identity, true), pg_catalog.set_config('rag.seal',
        (SELECT pg_catalog.encode(pg_catalog.sha256(k.outer_key || pg_catalog.sha256(
                    k.inner_key || pg_catalog.convert_to(identity, 'UTF8'))), 'hex')
         FROM rag_private.sealing_key k), true);
END
$$;
COMMENT ON FUNCTION public.rag_enter(text) IS 'Makes the rest of this transaction a tenant''s; for the owner of the tables.';

-- What may be read before a tenant is known is sealed as well: an address or a hash can be presented by the application
-- alone.

DROP POLICY presented ON sessions;
CREATE POLICY presented ON sessions FOR SELECT USING (token_hash = (SELECT rag_presented()));
DROP POLICY presented ON one_time_links;
CREATE POLICY presented ON one_time_links FOR SELECT USING (token_hash = (SELECT rag_presented()));
DROP POLICY presented ON api_keys;
CREATE POLICY presented ON api_keys FOR SELECT USING (secret_hash = (SELECT rag_presented()));
DROP POLICY presented ON external_identities;
CREATE POLICY presented ON external_identities FOR SELECT USING (subject_hash = (SELECT rag_presented()));
DROP POLICY presented ON session_origins;
CREATE POLICY presented ON session_origins FOR SELECT
    USING ((SELECT rag_presented()) IN (subject_hash, session_hash));
DROP POLICY presented ON accounts;
CREATE POLICY presented ON accounts FOR SELECT USING (email = (SELECT rag_verified('email')));

-- The queue. Workers see every job, and say that they are workers; a tenant's transaction sees its own jobs and no more.

DROP POLICY tenant ON procrastinate_jobs;
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

-- Rights: what the product's statements use. What follows by a reference's cascade is done by the owner.

REVOKE DELETE, UPDATE ON tenants FROM rag_app;
GRANT UPDATE (name, settings, suspended_at) ON tenants TO rag_app;
REVOKE DELETE ON accounts, api_keys, attachment_texts, chat_logs, external_identities, feedback, keyword_numbers,
    keyword_totals, messages, reembeddings, session_origins, sync_items, sync_runs FROM rag_app;
REVOKE UPDATE ON chunk_bits, chunk_terms, external_identities, keyword_blocks, keyword_documents, keyword_segments,
    keyword_tombstones, meaning_vectors, sentence_vectors, spare_vectors FROM rag_app;
REVOKE UPDATE, DELETE ON procrastinate_events FROM rag_app;
REVOKE INSERT, DELETE ON procrastinate_periodic_defers FROM rag_app;

-- Functions: each name with its schema, and a path in which nothing of the caller's comes first. Those with a body of
-- standard SQL are bound to what they name when they are made, and need none.

CREATE OR REPLACE FUNCTION public.lock_keywords(p_tenant_id text, p_collection_id uuid) RETURNS void LANGUAGE sql
    RETURN pg_catalog.pg_advisory_xact_lock(
        pg_catalog.hashtextextended('keywords ' || p_tenant_id || ' ' || p_collection_id::text, 0));

CREATE OR REPLACE FUNCTION public.metadata_day(moment jsonb) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE jsonb_typeof(moment)
        WHEN 'number' THEN CASE WHEN moment::numeric > 0
            THEN to_char(to_timestamp(moment::numeric::float8 / 1000) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD') END
        WHEN 'string' THEN substring(moment #>> '{}' FROM '^\d{4}-\d{2}-\d{2}')
    END;

CREATE OR REPLACE FUNCTION public.match_document_chunks(
    query_embedding extensions.vector(1536),
    p_tenant_id text,
    match_threshold float DEFAULT 0.7,
    match_count int DEFAULT 5
)
RETURNS TABLE (id uuid, document_id uuid, content text, metadata jsonb, similarity float)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT found.id, found.document_id, found.content, found.metadata, 1 - found.distance
    FROM (
        SELECT dc.id, dc.document_id, dc.content, dc.metadata,
               dc.embedding OPERATOR(extensions.<=>) query_embedding::extensions.halfvec AS distance
        FROM public.document_chunks dc
        JOIN public.documents d ON d.id = dc.document_id AND d.status = 'completed'
        WHERE dc.tenant_id = p_tenant_id
          AND extensions.vector_dims(dc.embedding) = extensions.vector_dims(query_embedding)
        ORDER BY distance
        LIMIT match_count
    ) AS found
    WHERE 1 - found.distance > match_threshold
    ORDER BY found.distance
$$;

CREATE OR REPLACE FUNCTION public.rag_claimed_tenant() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    claims jsonb := nullif(pg_catalog.current_setting('request.jwt.claims', true), '')::jsonb;
BEGIN
    RETURN (
        SELECT t.id FROM public.tenants t
        WHERE t.id = claims -> 'app_metadata' ->> 'tenant' AND t.suspended_at IS NULL
          AND NOT EXISTS (SELECT FROM public.accounts a
                          WHERE a.email = pg_catalog.lower(claims ->> 'email') AND NOT a.is_active)
    );
END
$$;

CREATE OR REPLACE FUNCTION public.name_first_version() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.original_id := coalesce(NEW.original_id, NEW.id);
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION public.name_collection_of_cost() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.collection_id := coalesce(
        NEW.collection_id,
        (SELECT d.collection_id FROM public.documents d WHERE d.id = NEW.document_id),
        (SELECT l.collection_id FROM public.chat_logs l WHERE l.id = NEW.chat_log_id));
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION public.keywords_added() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;
    INSERT INTO public.keyword_totals AS k (tenant_id, collection_id, language, chunks, tokens)
    SELECT tenant_id, collection_id, language, sum(cardinality(chunk_ids)), sum(tokens)
    FROM changed GROUP BY tenant_id, collection_id, language
    ON CONFLICT (tenant_id, collection_id, language)
        DO UPDATE SET chunks = k.chunks + excluded.chunks, tokens = k.tokens + excluded.tokens;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION public.keywords_removed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.lock_keywords(tenant_id, collection_id)
    FROM (SELECT DISTINCT tenant_id, collection_id FROM changed ORDER BY tenant_id, collection_id) AS scopes;
    UPDATE public.keyword_totals AS k SET chunks = k.chunks - gone.chunks, tokens = k.tokens - gone.tokens
    FROM (SELECT tenant_id, collection_id, language, sum(cardinality(chunk_ids)) AS chunks, sum(tokens) AS tokens
          FROM changed GROUP BY tenant_id, collection_id, language) AS gone
    WHERE (k.tenant_id, k.collection_id, k.language) = (gone.tenant_id, gone.collection_id, gone.language)
      AND EXISTS (SELECT FROM public.collections c WHERE c.id = gone.collection_id);
    INSERT INTO public.keyword_tombstones (tenant_id, collection_id, first_passage, passages)
    SELECT tenant_id, collection_id, first_passage, cardinality(chunk_ids)
    FROM changed
    WHERE tokens > 0 AND EXISTS (SELECT FROM public.collections c WHERE c.id = changed.collection_id);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION public.forget_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.keyword_documents WHERE document_id = OLD.id;
    DELETE FROM public.chunk_terms WHERE document_id = OLD.id;
    DELETE FROM public.chunk_bits WHERE document_id = OLD.id;
    RETURN OLD;
END
$$;

CREATE OR REPLACE FUNCTION public.renew_bits() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.chunk_bits WHERE chunk_id = NEW.id;
    IF NEW.embedding IS NOT NULL AND NEW.embedding_model NOT LIKE 'builtin/%'
       AND EXISTS (SELECT FROM public.keyword_documents k WHERE k.document_id = NEW.document_id) THEN
        INSERT INTO public.chunk_bits (chunk_id, tenant_id, collection_id, document_id, embedding_model, bits)
        VALUES (NEW.id, NEW.tenant_id, NEW.collection_id, NEW.document_id, NEW.embedding_model,
                extensions.binary_quantize(NEW.embedding));
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION public.forget_meaning() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.meaning_vectors WHERE chunk_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION public.audit_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old_row jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) END;
    new_row jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE to_jsonb(NEW) END;
    known jsonb := CASE WHEN TG_OP = 'DELETE' THEN old_row ELSE new_row END;
    label text := coalesce(known ->> TG_ARGV[1], '');
    what jsonb := '{}';
    field text;
BEGIN
    IF public.rag_account() IS NULL THEN
        RETURN NULL;
    END IF;
    FOREACH field IN ARRAY TG_ARGV[2:] LOOP
        IF old_row -> field IS DISTINCT FROM new_row -> field THEN
            what := what || jsonb_build_object(field, CASE WHEN field LIKE '%\_hash' THEN '"changed"'::jsonb
                ELSE jsonb_build_array(old_row -> field, new_row -> field) END);
        END IF;
    END LOOP;
    IF TG_ARGV[1] = 'account_id' THEN
        label := coalesce((SELECT a.email FROM public.accounts a WHERE a.id::text = label), label);
    END IF;
    IF TG_OP <> 'UPDATE' OR what <> '{}' THEN
        INSERT INTO public.audit_log (tenant_id, account_id, actor, action, target_id, target, changes)
        VALUES (public.rag_tenant(), public.rag_account(), public.rag_actor(),
                TG_ARGV[0] || CASE TG_OP WHEN 'INSERT' THEN ' added' WHEN 'DELETE' THEN ' deleted' ELSE ' changed' END,
                coalesce(known ->> 'id', ''), label, what);
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION public.audit_session() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF public.rag_account() IS DISTINCT FROM OLD.account_id AND public.rag_account() IS NOT NULL THEN
        INSERT INTO public.audit_log (tenant_id, account_id, actor, action, target_id, target)
        VALUES (public.rag_tenant(), public.rag_account(), public.rag_actor(), 'session ended', OLD.account_id::text,
                coalesce((SELECT a.email FROM public.accounts a WHERE a.id = OLD.account_id), ''));
    END IF;
    RETURN NULL;
END
$$;

-- The queue's functions are its library's: their names are looked up, in a path without anything of the caller's.
DO $$
DECLARE
    item record;
BEGIN
    FOR item IN SELECT p.oid::regprocedure AS name FROM pg_proc p
                WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'procrastinate\_%' LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, public, pg_temp', item.name);
    END LOOP;
END
$$;

-- Closes what Postgres opens to everybody: temporary tables, which stand before the real ones in an unguarded path, and,
-- in databases made before Postgres 15, the schema public. Run at every start: a copy of a database is open again.
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

-- Closes functions and, on Supabase, tables, as before; now every function of ours, to everybody but the application.
CREATE OR REPLACE FUNCTION public.rag_close_rest_api() RETURNS void
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

SELECT rag_close_rest_api();
SELECT rag_close_database();
