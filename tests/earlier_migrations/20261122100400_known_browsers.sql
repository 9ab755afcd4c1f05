-- Wrong passwords by strangers keep nobody out: a browser that has signed in before is counted by itself, and unknown
-- ones take turns.

-- Browsers in which somebody has signed in, as the hash of a token that they keep.
CREATE TABLE known_browsers (
    token_hash bytea NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    -- Wrong passwords in this browser since the last right one.
    failed_attempts integer NOT NULL DEFAULT 0,
    last_failed_at timestamptz,
    last_used_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (token_hash, account_id),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON known_browsers (account_id, tenant_id);
CREATE INDEX ON known_browsers (tenant_id);
ALTER TABLE known_browsers ENABLE ROW LEVEL SECURITY;
ALTER TABLE known_browsers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON known_browsers USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON known_browsers TO rag_app;
COMMENT ON TABLE known_browsers IS 'Browsers in which an account has signed in; their wrong passwords count apart.';

ALTER TABLE accounts ADD COLUMN waiting_browsers jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN accounts.waiting_browsers IS 'Unknown browsers that wait for their turn at the password, as hashes.';
