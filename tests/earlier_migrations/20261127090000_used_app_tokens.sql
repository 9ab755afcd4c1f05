-- Remember each code and refresh token of a connected program that was used: one that comes again was stolen, however
-- often the program was given new ones since. And end an account's programs when its role changes or it is disabled.

ALTER TABLE connected_apps
    ADD CONSTRAINT connected_apps_id_tenant_id_key UNIQUE (id, tenant_id),
    -- What the program asked access to: a path of this server, "" for all of it.
    ADD COLUMN resource text NOT NULL DEFAULT '' CHECK (resource IN ('', '/mcp'));

CREATE TABLE used_app_tokens (
    token_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    app_id uuid NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT used_app_tokens_app_id_fkey FOREIGN KEY (app_id, tenant_id)
        REFERENCES connected_apps (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON used_app_tokens (app_id);
CREATE INDEX ON used_app_tokens (tenant_id);
COMMENT ON TABLE used_app_tokens IS 'Codes and refresh tokens of connected programs that were used.';

ALTER TABLE connected_apps NO FORCE ROW LEVEL SECURITY;
INSERT INTO used_app_tokens (token_hash, tenant_id, app_id)
SELECT previous_refresh_hash, tenant_id, id FROM connected_apps WHERE previous_refresh_hash IS NOT NULL;
ALTER TABLE connected_apps FORCE ROW LEVEL SECURITY;

DROP POLICY presented ON connected_apps;
ALTER TABLE connected_apps DROP COLUMN previous_refresh_hash;
CREATE POLICY presented ON connected_apps FOR SELECT
    USING ((SELECT rag_presented()) IN (code_hash, access_hash, refresh_hash));

ALTER TABLE used_app_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE used_app_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON used_app_tokens USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY presented ON used_app_tokens FOR SELECT USING (token_hash = (SELECT rag_presented()));
GRANT SELECT, INSERT, DELETE ON used_app_tokens TO rag_app;

CREATE FUNCTION rag_end_programs() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.connected_apps WHERE account_id = NEW.id;
    RETURN NULL;
END;
$$;
CREATE TRIGGER end_programs AFTER UPDATE OF role, is_active ON accounts FOR EACH ROW
    WHEN (OLD.role IS DISTINCT FROM NEW.role OR (OLD.is_active AND NOT NEW.is_active))
    EXECUTE FUNCTION rag_end_programs();

SELECT rag_close_rest_api();
