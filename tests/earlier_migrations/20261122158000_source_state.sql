-- What a source needs at its next sync to ask only for changes, such as the ETags of pages or a position in the list of
-- changes. It changes with every sync and is nobody's act, so the audit log does not have it.

ALTER TABLE collection_sources ADD COLUMN state jsonb NOT NULL DEFAULT '{}';
