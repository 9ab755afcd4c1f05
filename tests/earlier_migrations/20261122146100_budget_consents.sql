-- Who agreed, once a budget asks, that paid models go on being called for them this month.
CREATE TABLE budget_consents (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    budget_id uuid NOT NULL REFERENCES budgets ON DELETE CASCADE,
    account_id uuid NOT NULL,
    -- The first day of the month.
    month date NOT NULL,
    PRIMARY KEY (budget_id, account_id, month),
    CONSTRAINT budget_consents_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON budget_consents (tenant_id, account_id);
ALTER TABLE budget_consents ENABLE ROW LEVEL SECURITY;
ALTER TABLE budget_consents FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON budget_consents USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, DELETE ON budget_consents TO rag_app;

SELECT rag_close_rest_api();
