-- The extension, the application's role, and the schema that only the owner of the tables reads.
--
-- The five files 202611221190 to 1194 are the baseline: what a new database begins with. A database made by the thirty
-- migrations before has all of it already, and they count as applied there. From here on migrations are append-only.

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
