-- Programs that people connect to their account by OAuth. A program acts as the person, within the scopes they agreed to;
-- of its codes and tokens only hashes are kept.

CREATE TABLE connected_apps (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    -- As the program calls itself, and the host its codes go to, which is what a person can judge it by.
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    host text NOT NULL,
    client_id text NOT NULL CHECK (length(client_id) <= 4000),
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0),
    redirect_uri text NOT NULL,
    code_challenge text NOT NULL,
    code_hash bytea UNIQUE,
    code_expires_at timestamptz,
    access_hash bytea UNIQUE,
    access_expires_at timestamptz,
    refresh_hash bytea UNIQUE,
    -- The refresh token before: whoever presents it again has stolen one of the two.
    previous_refresh_hash bytea UNIQUE,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    CONSTRAINT connected_apps_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON connected_apps (account_id);
CREATE INDEX ON connected_apps (tenant_id);
COMMENT ON TABLE connected_apps IS 'Programs that act for a person, connected by OAuth.';

ALTER TABLE connected_apps ENABLE ROW LEVEL SECURITY;
ALTER TABLE connected_apps FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON connected_apps USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY presented ON connected_apps FOR SELECT
    USING ((SELECT rag_presented()) IN (code_hash, access_hash, refresh_hash, previous_refresh_hash));
GRANT SELECT, INSERT, UPDATE, DELETE ON connected_apps TO rag_app;
CREATE TRIGGER audit AFTER INSERT OR DELETE ON connected_apps FOR EACH ROW
    EXECUTE FUNCTION audit_change('connected program', 'name', 'name', 'host', 'account_id', 'scopes');

SELECT rag_close_rest_api();
