-- Sources that collections follow.

-- Where a collection's documents come from. Addresses of databases are settings of the server.
CREATE TABLE collection_sources (
    collection_id uuid NOT NULL,
    kind text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    settings jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Compared by itself every so many minutes; null: only on request.
    every_minutes integer CHECK (every_minutes BETWEEN 5 AND 44640),
    next_sync_at timestamptz,
    -- Its keys, such as those of a bucket, encrypted by the application. The settings are shown and written to the audit log.
    secrets text NOT NULL DEFAULT '',
    -- What it needs at its next sync to ask only for changes, such as the ETags of pages or a position in the list of changes.
    state jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT collection_sources_schedule_check CHECK ((every_minutes IS NULL) = (next_sync_at IS NULL)),
    PRIMARY KEY (collection_id, kind),
    CONSTRAINT collection_sources_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON collection_sources (tenant_id);

-- The state of each item of a source. A deleted item keeps its row, so that an earlier event that arrives late cannot
-- bring it back.
CREATE TABLE sync_items (
    collection_id uuid NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- The first version of its document; null where there is none.
    original_id uuid,
    source_updated_at timestamptz,
    hash text NOT NULL DEFAULT '',
    title text NOT NULL DEFAULT '',
    is_deleted boolean NOT NULL DEFAULT false,
    -- Why it could not be read the last time.
    problem text NOT NULL DEFAULT '',
    -- The newest event that is not processed yet: type and record as the source sent them.
    event jsonb,
    event_at timestamptz,
    synced_at timestamptz,
    PRIMARY KEY (collection_id, kind, key),
    CONSTRAINT sync_items_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON sync_items (tenant_id);
CREATE INDEX sync_items_waiting ON sync_items (collection_id, kind) WHERE event IS NOT NULL;

-- Each reading of a source with its result.
CREATE TABLE sync_runs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    collection_id uuid NOT NULL,
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
    finished_at timestamptz,
    CONSTRAINT sync_runs_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON sync_runs (tenant_id, collection_id, created_at DESC);
-- Asked for twice, it is done once.
CREATE UNIQUE INDEX sync_runs_waiting ON sync_runs (collection_id, kind) WHERE status = 'waiting';
