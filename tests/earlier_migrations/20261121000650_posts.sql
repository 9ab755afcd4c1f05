-- Collections that follow a source: a table of posts, a folder, a GitHub account. What was read of it, when, and what for.

-- Documents that a source keeps: what it calls them. They need nobody's yes to their cost; the sync was asked for.
ALTER TABLE documents ADD COLUMN sync_key text;
CREATE INDEX documents_synced ON documents (collection_id, sync_key) WHERE sync_key IS NOT NULL;

-- Where a collection's documents come from; no secret is kept here, addresses of databases are settings.
CREATE TABLE collection_sources (
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    kind text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    settings jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (collection_id, kind)
);
CREATE INDEX ON collection_sources (tenant_id);

-- What is known of each thing of a source. One that is gone stays as a mark, so that an event of an earlier time cannot
-- bring it back.
CREATE TABLE sync_items (
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    kind text NOT NULL,
    key text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- What all versions of its document share; null where there is none.
    original_id uuid,
    source_updated_at timestamptz,
    hash text NOT NULL DEFAULT '',
    title text NOT NULL DEFAULT '',
    is_deleted boolean NOT NULL DEFAULT false,
    -- Why it could not be read the last time.
    problem text NOT NULL DEFAULT '',
    -- The newest word about it that has not been followed yet: type and record as the source sent them.
    event jsonb,
    event_at timestamptz,
    synced_at timestamptz,
    PRIMARY KEY (collection_id, kind, key)
);
CREATE INDEX ON sync_items (tenant_id);
CREATE INDEX sync_items_waiting ON sync_items (collection_id, kind) WHERE event IS NOT NULL;

CREATE TABLE sync_runs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    kind text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    status text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'running', 'done', 'failed')),
    items_done integer NOT NULL DEFAULT 0,
    items_total integer NOT NULL DEFAULT 0,
    added integer NOT NULL DEFAULT 0,
    updated integer NOT NULL DEFAULT 0,
    unchanged integer NOT NULL DEFAULT 0,
    removed integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    message text NOT NULL DEFAULT '',
    asked_by text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz
);
CREATE INDEX ON sync_runs (tenant_id, collection_id, created_at DESC);
-- Asked for twice, it is done once.
CREATE UNIQUE INDEX sync_runs_waiting ON sync_runs (collection_id, kind) WHERE status = 'waiting';

-- What a model said of an attachment, by the attachment's content: the next version of its post does not ask again.
CREATE TABLE attachment_texts (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    sha256 text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    kind text NOT NULL,
    text text NOT NULL,
    note text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (document_id, sha256)
);
CREATE INDEX ON attachment_texts (tenant_id);

-- Milliseconds since 1970 are what notice boards write, and the day of a notice is a Korean one: midnight in Seoul is
-- still the day before in Greenwich.
CREATE OR REPLACE FUNCTION metadata_day(moment jsonb) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE jsonb_typeof(moment)
        WHEN 'number' THEN CASE WHEN moment::numeric > 0
            THEN to_char(to_timestamp(moment::numeric::float8 / 1000) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD') END
        WHEN 'string' THEN substring(moment #>> '{}' FROM '^\d{4}-\d{2}-\d{2}')
    END
$$;

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['collection_sources', 'sync_items', 'sync_runs', 'attachment_texts']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO rag_app', t);
    END LOOP;
END
$$;
