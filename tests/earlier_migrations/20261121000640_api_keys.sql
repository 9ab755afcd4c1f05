-- Keys by which programs call the API for a tenant. Only the hash of a key's secret is kept.

CREATE TABLE api_keys (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    secret_hash bytea NOT NULL UNIQUE,
    -- The first characters of the secret, by which a person recognises it.
    hint text NOT NULL,
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0),
    requests_per_minute integer NOT NULL DEFAULT 120 CHECK (requests_per_minute BETWEEN 1 AND 100000),
    created_by uuid REFERENCES accounts ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    -- The minute that is being counted, and its requests: right for all processes, because it is one row.
    minute_started_at timestamptz,
    minute_requests integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX ON api_keys (tenant_id);

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON api_keys USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
-- Before the tenant is known, whoever presents a secret may read the one row it belongs to, and nothing else.
CREATE POLICY presented ON api_keys FOR SELECT
    USING (secret_hash = decode(nullif(current_setting('rag.token_hash', true), ''), 'hex'));
GRANT SELECT, INSERT, UPDATE, DELETE ON api_keys TO rag_app;

-- What a program asks belongs to its key, as what a person asks belongs to their account.
ALTER TABLE conversations
    ALTER COLUMN account_id DROP NOT NULL,
    ADD COLUMN api_key_id uuid REFERENCES api_keys ON DELETE CASCADE,
    ADD COLUMN owner_id uuid GENERATED ALWAYS AS (coalesce(account_id, api_key_id)) STORED,
    ADD CONSTRAINT conversation_has_one_owner CHECK (num_nonnulls(account_id, api_key_id) = 1);
CREATE INDEX ON conversations (tenant_id, owner_id, updated_at DESC);
