-- Tenants, and the collections and groups of each.

-- Companies that share this database and see nothing of each other.
CREATE TABLE tenants (
    id text PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    name text NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    suspended_at timestamptz,
    -- Shown beside its name: a small PNG of our own making.
    mark bytea CHECK (octet_length(mark) <= 200000)
);
COMMENT ON COLUMN tenants.suspended_at IS 'Since when nobody of the tenant may sign in and nothing is processed.';

-- Days, weeks and months are those of the company: a budget of November ends at midnight where its people are. The zone
-- is a setting of the tenant, `time_zone`; without one days are UTC.
CREATE FUNCTION public.rag_zone() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce((SELECT settings ->> 'time_zone' FROM public.tenants WHERE id = public.rag_tenant()), 'UTC');
COMMENT ON FUNCTION public.rag_zone() IS 'The time zone of the tenant''s days.';

-- Documents that are searched together, with one profile and one embedding model.
CREATE TABLE collections (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    profile text NOT NULL DEFAULT 'hr',
    embedding_model text NOT NULL,
    language text NOT NULL DEFAULT 'en',
    overrides jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    calibrated_threshold double precision
        CHECK (calibrated_threshold BETWEEN -1 AND 1),
    calibrated_at timestamptz,
    calibrated_model text,
    calibrated_passages integer CHECK (calibrated_passages > 0),
    -- Groups whose people may read it; empty: everybody of the tenant.
    groups text[] NOT NULL DEFAULT '{}',
    -- When it was deleted: it is kept for thirty days with its documents and conversations, and can be restored.
    binned_at timestamptz,
    CONSTRAINT collections_of_tenant UNIQUE (id, tenant_id)
);
-- The name of a deleted collection is free for another one.
CREATE UNIQUE INDEX collections_named ON collections (tenant_id, name) WHERE binned_at IS NULL;
CREATE INDEX collections_binned ON collections (tenant_id, binned_at) WHERE binned_at IS NOT NULL;

-- Groups that a company's directory keeps equal here by SCIM, with an id for it. What they may read goes by their name.
CREATE TABLE user_groups (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL CHECK (name <> ''),
    external_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT user_groups_name_of_tenant UNIQUE (tenant_id, name)
);
