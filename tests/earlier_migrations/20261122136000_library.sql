-- The library of documents: folders, tags, owners and dates, a bin that gives back what was deleted for thirty days, saved
-- views, and files that could not be added.

-- What people write about a document holds for all its versions: they are changed together, and a new one takes it over.
ALTER TABLE documents
    ADD COLUMN folder text NOT NULL DEFAULT '' CHECK (length(folder) <= 200),
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 20),
    ADD COLUMN owner_id uuid,
    ADD COLUMN valid_from date,
    ADD COLUMN valid_until date,
    -- When its owner is to look at it again.
    ADD COLUMN review_on date,
    -- The language an administrator gave it, which reading does not replace.
    ADD COLUMN corrected_language text NOT NULL DEFAULT '',
    -- Processed without being asked about up to this estimate in US dollars; null: always asked about.
    ADD COLUMN confirmed_up_to numeric(14, 8),
    ADD COLUMN binned_at timestamptz,
    ADD COLUMN binned_by uuid,
    -- Its status before it came into the bin.
    ADD COLUMN status_before text,
    ADD CONSTRAINT documents_owner_id_fkey FOREIGN KEY (owner_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (owner_id),
    ADD CONSTRAINT documents_binned_by_fkey FOREIGN KEY (binned_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (binned_by),
    ADD CONSTRAINT valid_from_is_first CHECK (valid_from <= valid_until),
    DROP CONSTRAINT documents_status_check,
    ADD CONSTRAINT documents_status_check
        CHECK (status IN ('registered', 'reading', 'estimated', 'processing', 'completed', 'needs_ocr', 'failed',
                          'superseded', 'binned')),
    -- Searches read documents that are completed, so that none of them finds what is in the bin.
    ADD CONSTRAINT bin_is_dated CHECK ((status = 'binned') = (binned_at IS NOT NULL)
                                       AND (status = 'binned') = (status_before IS NOT NULL));
-- The bin is not in the way of an upload with the same content.
DROP INDEX documents_content;
CREATE UNIQUE INDEX documents_content ON documents (tenant_id, collection_id, sha256, version) WHERE status <> 'binned';
CREATE INDEX documents_binned ON documents (tenant_id, binned_at) WHERE status = 'binned';
CREATE INDEX documents_owned ON documents (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX documents_binned_by ON documents (binned_by) WHERE binned_by IS NOT NULL;

CREATE OR REPLACE FUNCTION public.name_first_version() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    earlier public.documents;
BEGIN
    NEW.original_id := coalesce(NEW.original_id, NEW.id);
    IF NEW.original_id <> NEW.id THEN
        SELECT * INTO earlier FROM public.documents d
        WHERE d.tenant_id = NEW.tenant_id AND d.original_id = NEW.original_id
        ORDER BY d.version DESC LIMIT 1;
        IF FOUND THEN
            NEW.folder := earlier.folder;
            NEW.tags := earlier.tags;
            NEW.owner_id := earlier.owner_id;
            NEW.valid_from := earlier.valid_from;
            NEW.valid_until := earlier.valid_until;
            NEW.review_on := earlier.review_on;
            NEW.corrected_language := earlier.corrected_language;
            IF earlier.metadata @> '{"is_named": true}' THEN
                NEW.title := earlier.title;
                NEW.metadata := NEW.metadata || '{"is_named": true}';
            END IF;
        END IF;
    END IF;
    RETURN NEW;
END
$$;

DROP TRIGGER audit ON documents;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON documents FOR EACH ROW
    EXECUTE FUNCTION audit_change('document', 'title', 'title', 'collection_id', 'status', 'chunking_method',
                                  'generate_metadata', 'pending_steps', 'version', 'folder', 'tags', 'owner_id',
                                  'valid_from', 'valid_until', 'review_on', 'corrected_language');

DROP FUNCTION public.rag_is_listed(public.documents, uuid[], uuid, text[], text, text, text, text);
CREATE FUNCTION public.rag_is_listed(
    document public.documents, p_document_ids uuid[], p_collection_id uuid, p_statuses text[], p_language text,
    p_method text, p_mime_type text, p_text text, p_found_ids uuid[], p_folder text, p_tag text, p_owner_id uuid,
    p_due text
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN document.status <> 'superseded'
       AND (document.status <> 'binned' OR 'binned' = ANY (p_statuses))
       AND (p_document_ids IS NULL OR document.id = ANY (p_document_ids))
       AND (p_collection_id IS NULL OR document.collection_id = p_collection_id)
       AND (p_statuses IS NULL OR document.status = ANY (p_statuses))
       AND (p_language IS NULL OR document.language = p_language)
       AND (p_method IS NULL OR document.chunking_method = p_method)
       AND (p_mime_type IS NULL OR document.mime_type = p_mime_type)
       AND (p_text IS NULL OR strpos(lower(document.title), p_text) > 0
            OR strpos(lower(document.file_name), p_text) > 0 OR document.id = ANY (p_found_ids))
       -- A folder holds what is in the folders within it.
       AND (p_folder IS NULL OR document.folder = p_folder OR starts_with(document.folder, p_folder || '/'))
       AND (p_tag IS NULL OR p_tag = ANY (document.tags))
       AND (p_owner_id IS NULL OR document.owner_id = p_owner_id)
       AND (p_due IS NULL
            OR p_due = 'expired' AND document.valid_until < current_date
            OR p_due = 'review' AND document.review_on <= current_date);
COMMENT ON FUNCTION public.rag_is_listed IS 'Whether a document meets the filters of the documents page.';

-- Filters of the documents page that a person gave a name.
CREATE TABLE saved_views (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
    filters jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account_id, name),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON saved_views (tenant_id);

-- Files that were not accepted, until somebody has seen why.
CREATE TABLE refused_files (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    file_name text NOT NULL,
    file_size bigint NOT NULL DEFAULT 0,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON refused_files (tenant_id, account_id, created_at);
CREATE INDEX ON refused_files (account_id);

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['saved_views', 'refused_files'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        -- Everybody has their own.
        EXECUTE format('CREATE POLICY own ON %I AS RESTRICTIVE USING (account_id = (SELECT rag_account()) '
                       'OR (SELECT rag_account()) IS NULL)', t);
        EXECUTE format('GRANT SELECT, INSERT, DELETE ON %I TO rag_app', t);
    END LOOP;
END
$$;
GRANT UPDATE ON saved_views TO rag_app;
SELECT rag_close_rest_api();
