-- A source may be compared by itself every so many minutes.

ALTER TABLE collection_sources
    ADD COLUMN every_minutes integer CHECK (every_minutes BETWEEN 5 AND 44640),
    -- When it is due next; null where it is compared only on request.
    ADD COLUMN next_sync_at timestamptz,
    ADD CONSTRAINT collection_sources_schedule_check CHECK ((every_minutes IS NULL) = (next_sync_at IS NULL));

-- When it is due changes with every sync and is nobody's act; how often is an administrator's.
DROP TRIGGER audit ON collection_sources;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON collection_sources FOR EACH ROW
    EXECUTE FUNCTION audit_change('source', 'kind', 'kind', 'settings', 'every_minutes');
