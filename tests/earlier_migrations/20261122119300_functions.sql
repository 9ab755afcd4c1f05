-- Functions and triggers. Each name carries its schema, and the search path holds no schema that a caller can write to;
-- functions with a body of standard SQL are bound to the objects they name when they are made.

-- Who acts

-- Every transaction presents its identity with a seal that only the application can make (HMAC-SHA256), so that a
-- statement smuggled into one can name neither another tenant nor another person. The owner of the tables reads the key
-- and hands it to the application as it starts; the application's role cannot read it, and no function returns it.

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

CREATE FUNCTION public.rag_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN public.rag_verified('tenant_id');
COMMENT ON FUNCTION public.rag_tenant() IS 'The tenant of this transaction; null means that nothing is visible.';

-- What the identity may read: 'all' for the product itself and for administrators, 'group:' and the person's group for
-- others; with anything else, only collections that are open to everybody.
CREATE FUNCTION public.rag_reads_all() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(public.rag_verified('reads') = 'all', false);
CREATE FUNCTION public.rag_group() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(substring(public.rag_verified('reads') FROM '^group:(.*)$'), '');
CREATE FUNCTION public.rag_account() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
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
COMMENT ON FUNCTION public.rag_enter(text) IS
    'Makes the rest of this transaction a tenant''s; for the owner of the tables.';

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

-- Documents

CREATE FUNCTION public.name_first_version() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.original_id := coalesce(NEW.original_id, NEW.id);
    RETURN NEW;
END
$$;
CREATE TRIGGER name_first_version BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION name_first_version();

-- What is searched of a document goes with it, each kind in one statement.
CREATE FUNCTION public.forget_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.keyword_documents WHERE document_id = OLD.id;
    DELETE FROM public.chunk_terms WHERE document_id = OLD.id;
    DELETE FROM public.chunk_bits WHERE document_id = OLD.id;
    RETURN OLD;
END
$$;
CREATE TRIGGER forget_document BEFORE DELETE ON documents FOR EACH ROW EXECUTE FUNCTION forget_document();

-- A chunk embedded again must not keep the bits of its old vector.
CREATE FUNCTION public.renew_bits() RETURNS trigger
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
CREATE TRIGGER renew_bits AFTER UPDATE OF embedding, embedding_model ON document_chunks
    FOR EACH ROW EXECUTE FUNCTION renew_bits();

-- A chunk whose text changes has another meaning.
CREATE FUNCTION public.forget_meaning() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.meaning_vectors WHERE chunk_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_meaning AFTER UPDATE OF content ON document_chunks
    FOR EACH ROW WHEN (OLD.content IS DISTINCT FROM NEW.content) EXECUTE FUNCTION forget_meaning();

-- The day of a moment in a document's metadata: ISO text, or milliseconds since 1970, which notice boards write. The
-- day of a notice is a Korean one: midnight in Seoul is still the day before in Greenwich.
CREATE FUNCTION public.metadata_day(moment jsonb) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE jsonb_typeof(moment)
        WHEN 'number' THEN CASE WHEN moment::numeric > 0
            THEN to_char(to_timestamp(moment::numeric::float8 / 1000) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD') END
        WHEN 'string' THEN substring(moment #>> '{}' FROM '^\d{4}-\d{2}-\d{2}')
    END;

-- The keyword index

-- Transactions that change a collection's counts wait for each other; nobody deadlocks.
CREATE FUNCTION public.lock_keywords(p_tenant_id text, p_collection_id uuid) RETURNS void LANGUAGE sql
    RETURN pg_catalog.pg_advisory_xact_lock(
        pg_catalog.hashtextextended('keywords ' || p_tenant_id || ' ' || p_collection_id::text, 0));

CREATE FUNCTION public.keywords_added() RETURNS trigger
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
CREATE TRIGGER keywords_added AFTER INSERT ON keyword_documents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keywords_added();

-- A collection that is deleted takes its counts with it: where it is gone already, nothing is noted.
CREATE FUNCTION public.keywords_removed() RETURNS trigger
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
CREATE TRIGGER keywords_removed AFTER DELETE ON keyword_documents
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keywords_removed();

-- Vector search for callers of the database itself (PostgREST, RPC). Row-level security is above p_tenant_id: another
-- tenant's id finds nothing.
CREATE FUNCTION public.match_document_chunks(
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

-- Costs belong to the collection of their document or question, so that readers of other collections do not count them.
CREATE FUNCTION public.name_collection_of_cost() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.collection_id := coalesce(
        NEW.collection_id,
        (SELECT d.collection_id FROM public.documents d WHERE d.id = NEW.document_id),
        (SELECT l.collection_id FROM public.chat_logs l WHERE l.id = NEW.chat_log_id));
    RETURN NEW;
END
$$;
CREATE TRIGGER name_collection_of_cost BEFORE INSERT ON cost_ledger
    FOR EACH ROW EXECUTE FUNCTION name_collection_of_cost();

-- The audit log, written by the database itself: nobody can forget it, and the application cannot take it back.

-- Arguments: the kind of thing, its column with a name (or an account's id), then the columns whose changes count.
-- Columns that end in _hash are secrets.
CREATE FUNCTION public.audit_change() RETURNS trigger
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

CREATE TRIGGER audit AFTER UPDATE ON tenants FOR EACH ROW
    EXECUTE FUNCTION audit_change('company', 'name', 'name', 'settings');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts FOR EACH ROW
    EXECUTE FUNCTION audit_change('account', 'email', 'name', 'role', 'user_group', 'is_active', 'password_hash');
CREATE TRIGGER audit AFTER INSERT ON one_time_links FOR EACH ROW WHEN (NEW.purpose <> 'second_factor')
    EXECUTE FUNCTION audit_change('password link', 'account_id', 'purpose', 'expires_at');
CREATE TRIGGER audit AFTER UPDATE OF confirmed_at OR DELETE ON second_factors FOR EACH ROW
    EXECUTE FUNCTION audit_change('second factor', 'account_id', 'confirmed_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON api_keys FOR EACH ROW
    EXECUTE FUNCTION audit_change('API key', 'name', 'name', 'scopes', 'requests_per_minute', 'expires_at',
                                  'revoked_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON collections FOR EACH ROW
    EXECUTE FUNCTION audit_change('collection', 'name', 'name', 'profile', 'language', 'embedding_model', 'overrides',
                                  'groups', 'calibrated_threshold');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON documents FOR EACH ROW
    EXECUTE FUNCTION audit_change('document', 'title', 'title', 'collection_id', 'status', 'chunking_method',
                                  'generate_metadata', 'pending_steps', 'version');
CREATE TRIGGER audit AFTER INSERT OR UPDATE ON reembeddings FOR EACH ROW
    EXECUTE FUNCTION audit_change('embedding model', 'to_model', 'from_model', 'to_model', 'status', 'cleaned_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON collection_sources FOR EACH ROW
    EXECUTE FUNCTION audit_change('source', 'kind', 'kind', 'settings');
CREATE TRIGGER audit AFTER INSERT ON sync_runs FOR EACH ROW
    EXECUTE FUNCTION audit_change('sync', 'kind', 'kind');

-- Sessions an administrator ended for somebody are acts too; one's own are not worth a line.
CREATE FUNCTION public.audit_session() RETURNS trigger
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
CREATE TRIGGER audit AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION audit_session();

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

-- What Postgres and Supabase open to everybody

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
