-- A second factor beside the password: codes of an authenticator app (TOTP, RFC 6238), and recovery codes for the day the
-- telephone is lost. Which roles need one is in tenants.settings.

CREATE TABLE second_factors (
    account_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Encrypted with the key that seals identities, which this role cannot read.
    secret bytea NOT NULL,
    -- When a code of it was right for the first time; null: not in use yet.
    confirmed_at timestamptz,
    -- The half minute of the last code: none works twice.
    last_step bigint NOT NULL DEFAULT 0,
    failed_attempts integer NOT NULL DEFAULT 0,
    last_failed_at timestamptz,
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON second_factors (tenant_id);

CREATE TABLE recovery_codes (
    account_id uuid NOT NULL,
    code_hash bytea NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    used_at timestamptz,
    PRIMARY KEY (account_id, code_hash),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON recovery_codes (tenant_id);

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['second_factors', 'recovery_codes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO rag_app', t);
    END LOOP;
END
$$;

CREATE TRIGGER audit AFTER UPDATE OF confirmed_at OR DELETE ON second_factors FOR EACH ROW
    EXECUTE FUNCTION audit_change('second factor', 'account_id', 'confirmed_at');

-- Where a password was right and the second factor is still asked for.
ALTER TABLE one_time_links DROP CONSTRAINT one_time_links_purpose_check;
ALTER TABLE one_time_links ADD CONSTRAINT one_time_links_purpose_check
    CHECK (purpose IN ('first_admin', 'set_password', 'second_factor'));
DROP TRIGGER audit ON one_time_links;
CREATE TRIGGER audit AFTER INSERT ON one_time_links FOR EACH ROW WHEN (NEW.purpose <> 'second_factor')
    EXECUTE FUNCTION audit_change('password link', 'account_id', 'purpose', 'expires_at');
