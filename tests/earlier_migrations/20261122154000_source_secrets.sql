-- The keys of a source, such as those of a bucket: encrypted by the application, beside the settings that are shown and
-- written to the audit log.

ALTER TABLE collection_sources ADD COLUMN secrets text NOT NULL DEFAULT '';
