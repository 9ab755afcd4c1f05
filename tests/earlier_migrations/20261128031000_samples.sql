-- Which documents the product added as samples, so that those with a sample's content that people added are not deleted with
-- the samples.

ALTER TABLE documents ADD COLUMN is_sample boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN documents.is_sample IS 'Added as a sample by the product, or processed anew from such a file.';

ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;

-- The product adds a sample for nobody and without tags, before anybody can add another document with its content.
WITH added AS (
    SELECT DISTINCT ON (tenant_id, sha256) original_id, tenant_id, sha256, added_by, generate_metadata, sync_key
    FROM documents
    WHERE sha256 IN ('b1b22ecf662fbd657f453dc5a18f63427f7f3bf464282e4e7663a69e27ce32bb',
                     '73fdd606379e771e70f61a75bdb8bf9c1bc63c87b8b3adf1d90634100ba4c499',
                     '831d7998e59bd6428792fdf2eb9b25e4319bc50026e41b23c9a4ce117c9f39fa',
                     '6bcf5308d79fd487b665f85c4702cd72622f1a631b4aac0986c7262fd5f8cfc7')
    ORDER BY tenant_id, sha256, created_at, version
)
UPDATE documents d SET is_sample = true
FROM added a
WHERE a.added_by IS NULL AND NOT a.generate_metadata AND a.sync_key IS NULL
  AND d.tenant_id = a.tenant_id AND d.original_id = a.original_id AND d.sha256 = a.sha256
  AND d.added_by IS NULL AND NOT d.is_correction;

ALTER TABLE documents FORCE ROW LEVEL SECURITY;
