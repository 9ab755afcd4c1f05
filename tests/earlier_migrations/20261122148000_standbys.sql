-- How often what a tenant's people can find has changed: a standby that has not counted as far as the primary has not
-- replayed the last publication or deletion, and is not asked.

CREATE TABLE tenant_changes (
    tenant_id text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    changes bigint NOT NULL DEFAULT 1,
    -- The transaction that counted last, so that each counts once.
    counted_by xid8 NOT NULL
);
ALTER TABLE tenant_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenant_changes USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, UPDATE ON tenant_changes TO rag_app;

-- Whoever changes a tenant's rows does it as that tenant. The owner of the tables, who deletes whole tenants, counts nothing.
CREATE FUNCTION public.count_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed text := public.rag_tenant();
BEGIN
    IF changed IS NOT NULL THEN
        INSERT INTO public.tenant_changes AS t (tenant_id, counted_by)
        SELECT id, pg_current_xact_id() FROM public.tenants WHERE id = changed
        ON CONFLICT (tenant_id) DO UPDATE SET changes = t.changes + 1, counted_by = excluded.counted_by
        WHERE t.counted_by <> excluded.counted_by;
    END IF;
    RETURN NULL;
END
$$;

-- At the commit, so that two publications of a tenant do not wait for each other's whole transaction.
CREATE CONSTRAINT TRIGGER count_added AFTER INSERT ON documents DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.status = 'completed') EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_changed AFTER UPDATE ON documents DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN ((OLD.status = 'completed' OR NEW.status = 'completed')
        AND (OLD.status, OLD.title, OLD.language, OLD.metadata, OLD.collection_id, OLD.valid_from, OLD.valid_until)
        IS DISTINCT FROM
            (NEW.status, NEW.title, NEW.language, NEW.metadata, NEW.collection_id, NEW.valid_from, NEW.valid_until))
    EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_deleted AFTER DELETE ON documents DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_changed AFTER INSERT OR UPDATE OR DELETE ON collections DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION count_change();
-- Tags and vectors of passages that are found already.
CREATE TRIGGER count_changed AFTER UPDATE ON document_chunks
    FOR EACH STATEMENT EXECUTE FUNCTION count_change();
SELECT rag_close_rest_api();
