-- Deleted collections, which are kept for thirty days with their documents and conversations, and can be had back.

ALTER TABLE collections ADD COLUMN binned_at timestamptz;
-- The name of a deleted collection is free for another one.
ALTER TABLE collections DROP CONSTRAINT collections_tenant_id_name_key;
CREATE UNIQUE INDEX collections_named ON collections (tenant_id, name) WHERE binned_at IS NULL;
CREATE INDEX collections_binned ON collections (tenant_id, binned_at) WHERE binned_at IS NOT NULL;

DROP TRIGGER audit ON collections;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON collections FOR EACH ROW
    EXECUTE FUNCTION audit_change('collection', 'name', 'name', 'profile', 'language', 'embedding_model', 'overrides',
                                  'groups', 'calibrated_threshold', 'binned_at');
