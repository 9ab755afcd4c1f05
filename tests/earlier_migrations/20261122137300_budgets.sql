-- What may be spent in a calendar month (UTC) by the company, a group or a person. Once it is, no paid model answers;
-- searching goes on.

CREATE TABLE budgets (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    scope text NOT NULL CHECK (scope IN ('company', 'group', 'person')),
    -- The group's name; empty for the others.
    user_group text NOT NULL DEFAULT '' CHECK ((scope = 'group') = (user_group <> '')),
    account_id uuid CHECK ((scope = 'person') = (account_id IS NOT NULL)),
    -- US dollars a month.
    amount numeric(14, 4) NOT NULL CHECK (amount >= 0),
    -- From this share on, administrators and managers are warned.
    warn_share numeric(4, 3) NOT NULL DEFAULT 0.8 CHECK (warn_share BETWEEN 0 AND 1),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE NULLS NOT DISTINCT (tenant_id, scope, user_group, account_id),
    CONSTRAINT budgets_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE budgets ENABLE ROW LEVEL SECURITY;
ALTER TABLE budgets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON budgets USING (tenant_id = (SELECT rag_tenant())) WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON budgets TO rag_app;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON budgets FOR EACH ROW
    EXECUTE FUNCTION audit_change('budget', 'user_group', 'scope', 'user_group', 'account_id', 'amount', 'warn_share');
CREATE INDEX chat_logs_of_account ON chat_logs (account_id, created_at) WHERE account_id IS NOT NULL;

SELECT rag_close_rest_api();
