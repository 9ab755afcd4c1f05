-- The collection that somebody, or a program with a key, asked last: the next question goes there unless it names another.

ALTER TABLE accounts ADD COLUMN last_collection_id uuid,
    ADD FOREIGN KEY (last_collection_id, tenant_id) REFERENCES collections (id, tenant_id)
        ON DELETE SET NULL (last_collection_id);
ALTER TABLE api_keys ADD COLUMN last_collection_id uuid,
    ADD FOREIGN KEY (last_collection_id, tenant_id) REFERENCES collections (id, tenant_id)
        ON DELETE SET NULL (last_collection_id);
COMMENT ON COLUMN accounts.last_collection_id IS 'The collection of the last question; null: none yet, or it is deleted.';
COMMENT ON COLUMN api_keys.last_collection_id IS 'As of accounts.';
