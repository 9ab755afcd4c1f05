-- What a company's directory keeps equal here by SCIM: people, and the groups they are in.

ALTER TABLE accounts ADD COLUMN directory_fields jsonb;
ALTER TABLE accounts ADD COLUMN removed_by_directory_at timestamptz;
COMMENT ON COLUMN accounts.directory_fields IS 'What the directory calls this person, as it wrote it: names and its own id.';
COMMENT ON COLUMN accounts.removed_by_directory_at IS
    'The directory deleted this person. The account is disabled and stays, because the logs refer to it.';

-- Groups have an id for the directory. What they may read goes by their name, as on the pages.
CREATE TABLE user_groups (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL CHECK (name <> ''),
    external_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT user_groups_name_of_tenant UNIQUE (tenant_id, name)
);
ALTER TABLE user_groups ENABLE ROW LEVEL SECURITY;
ALTER TABLE user_groups FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON user_groups USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON user_groups TO rag_app;
SELECT rag_close_rest_api();
