-- Roles, schemas, and who acts in a transaction.
--
-- The files 20261129 1000 to 1015 are the baseline: what a new database begins with, by subject and in the order in which
-- one needs the other. Every table with a tenant's data has tenant_id, and a reference between two such tables includes it,
-- so that a row of one tenant cannot point at a row of another. Who may read and change what is in the last file, for all
-- tables together.
-- From here on migrations are append-only.

CREATE SCHEMA IF NOT EXISTS extensions;
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA extensions;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_app') THEN
        CREATE ROLE rag_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
    -- Since Postgres 16 the maker of a role may administer it, but not become it until that is granted as well.
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT rag_app TO %I', current_user);
    END IF;
END
$$;

GRANT USAGE ON SCHEMA extensions TO rag_app;
GRANT USAGE ON SCHEMA public TO rag_app;

CREATE SCHEMA rag_private;
COMMENT ON SCHEMA rag_private IS 'What the application''s role must not read; nothing here is granted to anybody.';
REVOKE ALL ON SCHEMA rag_private FROM PUBLIC;

-- The parts of partitioned tables. Nobody may name one, and row-level security without a policy shows its rows to nobody,
-- the owner included: they are reached through the table they are part of, where its rights and policies hold. On Supabase
-- it is no schema of the REST API.
CREATE SCHEMA rag_partitions;
COMMENT ON SCHEMA rag_partitions IS 'Parts of tables by tenant, reached through the tables themselves; granted to nobody.';
REVOKE ALL ON SCHEMA rag_partitions FROM PUBLIC;

-- Who acts

-- Each function's name carries its schema, and the search path holds no schema that a caller can write to; functions with a
-- body of standard SQL are bound to the objects they name when they are made.

-- The key that seals identities, made here once.
CREATE TABLE rag_private.sealing_key (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    key bytea NOT NULL CHECK (length(key) = 64),
    -- The key as HMAC uses it (RFC 2104), so that checking a seal takes two hashes and nothing else.
    inner_key bytea NOT NULL,
    outer_key bytea NOT NULL
);
INSERT INTO rag_private.sealing_key (key, inner_key, outer_key)
SELECT key,
       (SELECT string_agg(set_byte('\x00', 0, get_byte(key, i) # 54), ''::bytea ORDER BY i)
        FROM generate_series(0, 63) i),
       (SELECT string_agg(set_byte('\x00', 0, get_byte(key, i) # 92), ''::bytea ORDER BY i)
        FROM generate_series(0, 63) i)
FROM (SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
             || uuid_send(gen_random_uuid()) AS key) AS made;

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

-- What the identity may read: 'all' for the product itself and for administrators; 'manager:' or 'group:' and the person's
-- group for others. With anything else, only collections that are open to everybody.
CREATE FUNCTION public.rag_reads_all() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(public.rag_verified('reads') = 'all', false);
CREATE FUNCTION public.rag_group() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(substring(public.rag_verified('reads') FROM '^(?:group|manager):(.*)$'), '');
CREATE FUNCTION public.rag_sees_others() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(public.rag_verified('reads') ~ '^(all$|manager:)', false);
COMMENT ON FUNCTION public.rag_sees_others() IS
    'Whether this transaction sees what others asked: the product''s own, of administrators and of managers.';
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
