-- A tenant's transaction sees and asks for its own jobs only. Workers, which name no tenant, see all: a job holds nothing
-- of a tenant but its name and ids.

ALTER TABLE procrastinate_jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON procrastinate_jobs
    USING ((SELECT rag_tenant()) IS NULL OR args ->> 'tenant_id' = (SELECT rag_tenant()))
    WITH CHECK ((SELECT rag_tenant()) IS NULL OR args ->> 'tenant_id' = (SELECT rag_tenant()));

-- Acts of whoever runs the product: they have no account.
ALTER TABLE audit_log ALTER COLUMN account_id DROP NOT NULL;

CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON collection_sources FOR EACH ROW
    EXECUTE FUNCTION audit_change('source', 'kind', 'kind', 'settings');
CREATE TRIGGER audit AFTER INSERT ON sync_runs FOR EACH ROW
    EXECUTE FUNCTION audit_change('sync', 'kind', 'kind');
