-- One act of a person, one line of the audit log: entries know what they belong to. Entries of before stay by themselves

ALTER TABLE audit_log ADD COLUMN act text;
ALTER TABLE audit_log ALTER COLUMN act
    SET DEFAULT coalesce(nullif(current_setting('rag.act', true), ''), pg_current_xact_id()::text);
