-- What administrators corrected in the text of a page, with its history, and what the page was read as.

ALTER TABLE document_pages ADD COLUMN read_text text;
COMMENT ON COLUMN document_pages.read_text IS 'What a corrected page was read as; null: `text` is that.';

-- Made by correcting a page: passages that stay as they are keep their vectors and tags.
ALTER TABLE documents ADD COLUMN is_correction boolean NOT NULL DEFAULT false;

-- Of all versions of a document. Rows are added and never changed: what is taken back is a row without a text.
CREATE TABLE page_corrections (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    original_id uuid NOT NULL,
    page integer NOT NULL CHECK (page > 0),
    -- Title and page, for the audit log.
    place text NOT NULL,
    -- The fingerprint of the page as it was read: the correction holds for pages that are read so.
    read_hash text NOT NULL,
    text_before text NOT NULL,
    text_after text,
    -- The correction that this one takes the place of.
    follows uuid,
    corrected_by uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (id, tenant_id),
    CONSTRAINT page_corrections_follows UNIQUE (follows),
    CONSTRAINT page_corrections_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT page_corrections_follows_fkey FOREIGN KEY (follows, tenant_id)
        REFERENCES page_corrections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT page_corrections_corrected_by_fkey FOREIGN KEY (corrected_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (corrected_by)
);
CREATE INDEX ON page_corrections (tenant_id, original_id);
CREATE INDEX ON page_corrections (collection_id);
CREATE INDEX ON page_corrections (corrected_by) WHERE corrected_by IS NOT NULL;
COMMENT ON TABLE page_corrections IS 'Texts that administrators gave to pages, and what was there before.';

ALTER TABLE page_corrections ENABLE ROW LEVEL SECURITY;
ALTER TABLE page_corrections FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON page_corrections USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY reader ON page_corrections AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
GRANT SELECT, INSERT, DELETE ON page_corrections TO rag_app;

CREATE TRIGGER audit AFTER INSERT ON page_corrections FOR EACH ROW
    EXECUTE FUNCTION audit_change('page correction', 'place', 'page');

-- Corrections go with the last version of their document.
CREATE FUNCTION public.forget_corrections() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.page_corrections c
    WHERE c.tenant_id = OLD.tenant_id AND c.original_id = OLD.original_id AND NOT EXISTS (
        SELECT FROM public.documents d WHERE d.tenant_id = OLD.tenant_id AND d.original_id = OLD.original_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_corrections AFTER DELETE ON documents FOR EACH ROW EXECUTE FUNCTION forget_corrections();

SELECT rag_close_rest_api();
