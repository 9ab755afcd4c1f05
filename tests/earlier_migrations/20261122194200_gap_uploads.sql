-- The document that was uploaded to answer a gap, and who uploaded it. Once it is searchable, the gap is solved by it.
ALTER TABLE gaps ADD COLUMN awaits_id uuid, ADD COLUMN awaited_by uuid;
ALTER TABLE gaps ADD CONSTRAINT gaps_awaits_id_fkey FOREIGN KEY (awaits_id, tenant_id)
    REFERENCES documents (id, tenant_id) ON DELETE SET NULL (awaits_id);
ALTER TABLE gaps ADD CONSTRAINT gaps_awaited_by_fkey FOREIGN KEY (awaited_by, tenant_id)
    REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (awaited_by);
CREATE INDEX gaps_awaiting ON gaps (tenant_id, awaits_id) WHERE awaits_id IS NOT NULL;
