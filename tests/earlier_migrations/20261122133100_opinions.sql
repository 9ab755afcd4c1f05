-- Drafts of opinions (source 002, 8): the case they were written on, the passages they were given, and the text.

CREATE TABLE opinions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    account_id uuid,
    api_key_id uuid,
    -- What a program has drafted belongs to its key, as what a person has drafted belongs to their account.
    owner_id uuid GENERATED ALWAYS AS (COALESCE(account_id, api_key_id)) STORED,
    opinion_type text NOT NULL,
    facts text NOT NULL DEFAULT '',
    instructions text NOT NULL DEFAULT '',
    query text NOT NULL DEFAULT '',
    -- The passages of the block in their order, with number, document_id, title, page and text.
    citations jsonb NOT NULL DEFAULT '[]',
    content text NOT NULL DEFAULT '',
    state text NOT NULL DEFAULT 'writing' CHECK (state IN ('writing', 'complete', 'cut', 'failed')),
    message text NOT NULL DEFAULT '',
    model text NOT NULL DEFAULT '',
    -- US dollars of the draft; null while it is written, and where no price is known.
    cost numeric(14, 8),
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT opinions_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT opinions_api_key_id_fkey FOREIGN KEY (api_key_id, tenant_id)
        REFERENCES api_keys (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT opinions_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT opinion_has_one_owner CHECK (num_nonnulls(account_id, api_key_id) = 1)
);
CREATE INDEX ON opinions (tenant_id, owner_id, created_at DESC);
CREATE INDEX ON opinions (collection_id);

ALTER TABLE opinions ENABLE ROW LEVEL SECURITY;
ALTER TABLE opinions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON opinions USING (tenant_id = (SELECT rag_tenant())) WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY reader ON opinions AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all())
    OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
GRANT SELECT, INSERT, UPDATE, DELETE ON opinions TO rag_app;

-- What a draft was given of a document goes with the document; its own text stays its author's.
CREATE FUNCTION public.forget_references() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE public.opinions o SET citations = coalesce(
        (SELECT jsonb_agg(c ORDER BY place) FROM jsonb_array_elements(o.citations) WITH ORDINALITY AS given (c, place)
         WHERE c ->> 'document_id' <> OLD.id::text), '[]')
    WHERE o.tenant_id = OLD.tenant_id AND o.citations @> jsonb_build_array(jsonb_build_object('document_id', OLD.id));
    RETURN OLD;
END
$$;
CREATE TRIGGER forget_references BEFORE DELETE ON documents FOR EACH ROW EXECUTE FUNCTION forget_references();
