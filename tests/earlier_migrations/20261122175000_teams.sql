-- A company's bot in Microsoft Teams: its registration with Microsoft, and who it answers.

CREATE TABLE teams_bots (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL UNIQUE REFERENCES tenants ON DELETE CASCADE,
    -- The application (client) id of its registration, and its hash, by which its company is found.
    app_id text NOT NULL CHECK (app_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'),
    key_hash bytea NOT NULL UNIQUE,
    -- Directories (tenants of Microsoft Entra ID) whose people are answered; the first is the registration's own.
    directories text[] NOT NULL CHECK (cardinality(directories) BETWEEN 1 AND 20),
    -- The client secret, encrypted by the application.
    secret bytea NOT NULL,
    -- The collection that is asked; null: each person's own.
    collection_id uuid,
    is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT teams_bots_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE SET NULL (collection_id)
);
CREATE INDEX ON teams_bots (collection_id);
COMMENT ON TABLE teams_bots IS 'The bot of a company in Microsoft Teams.';

ALTER TABLE teams_bots ENABLE ROW LEVEL SECURITY;
ALTER TABLE teams_bots FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON teams_bots USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY presented ON teams_bots FOR SELECT USING (key_hash = (SELECT rag_presented()));
GRANT SELECT, INSERT, UPDATE, DELETE ON teams_bots TO rag_app;
-- A person may begin a new conversation where a chat has no threads.
GRANT DELETE ON chat_threads TO rag_app;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON teams_bots FOR EACH ROW
    EXECUTE FUNCTION audit_change('teams bot', 'app_id', 'app_id', 'directories', 'collection_id', 'is_active');

SELECT rag_close_rest_api();
