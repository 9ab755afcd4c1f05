-- Rights that no statement uses are taken back, and a consent belongs to a budget of its own tenant.

REVOKE DELETE ON opinions, calendar_work, budget_consents, chat_threads FROM rag_app;
ALTER TABLE budgets ADD CONSTRAINT budgets_of_tenant UNIQUE (id, tenant_id);
ALTER TABLE budget_consents
    DROP CONSTRAINT budget_consents_budget_id_fkey,
    ADD CONSTRAINT budget_consents_budget_id_fkey FOREIGN KEY (budget_id, tenant_id)
        REFERENCES budgets (id, tenant_id) ON DELETE CASCADE;
