-- A collection that pages of other sites, or a public page, may ask: by a key that everybody can see, so that what it may
-- do is bounded by the sites, the questions a minute and a day, and the money of a month.

CREATE TABLE widgets (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- What is asked belongs to a key of its own, whose secret nobody has.
    api_key_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
    public_key text NOT NULL UNIQUE,
    key_hash bytea NOT NULL UNIQUE,
    -- Origins whose pages may show it.
    sites text[] NOT NULL DEFAULT '{}' CHECK (cardinality(sites) <= 20),
    is_active boolean NOT NULL DEFAULT false,
    -- Whether it has a page of its own that opens without signing in.
    has_page boolean NOT NULL DEFAULT false,
    title text NOT NULL DEFAULT '' CHECK (length(title) <= 80),
    greeting text NOT NULL DEFAULT '' CHECK (length(greeting) <= 500),
    questions_per_day integer NOT NULL DEFAULT 300 CHECK (questions_per_day BETWEEN 1 AND 100000),
    -- US dollars a month; once they are spent, answers are quoted without a model.
    budget numeric(14, 4) NOT NULL DEFAULT 10 CHECK (budget >= 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT widgets_api_key_id_fkey FOREIGN KEY (api_key_id, tenant_id)
        REFERENCES api_keys (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT widgets_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON widgets (tenant_id);
CREATE INDEX ON widgets (api_key_id);
CREATE INDEX ON widgets (collection_id);
COMMENT ON TABLE widgets IS 'Collections that pages of other sites may ask, with a public key.';

ALTER TABLE widgets ENABLE ROW LEVEL SECURITY;
ALTER TABLE widgets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON widgets USING (tenant_id = (SELECT rag_tenant())) WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY presented ON widgets FOR SELECT USING (key_hash = (SELECT rag_presented()));
GRANT SELECT, INSERT, UPDATE, DELETE ON widgets TO rag_app;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON widgets FOR EACH ROW
    EXECUTE FUNCTION audit_change('widget', 'name', 'name', 'collection_id', 'sites', 'is_active', 'has_page', 'title',
                                  'greeting', 'questions_per_day', 'budget');

CREATE INDEX conversations_of_key ON conversations (api_key_id, created_at) WHERE api_key_id IS NOT NULL;

-- One rating for an answer to a program too, which has no account: a second thumb replaces the first.
DELETE FROM feedback f USING feedback later
WHERE f.account_id IS NULL AND later.account_id IS NULL AND later.chat_log_id = f.chat_log_id
  AND (later.created_at, later.id) > (f.created_at, f.id);
ALTER TABLE feedback DROP CONSTRAINT feedback_chat_log_id_account_id_key,
    ADD CONSTRAINT feedback_chat_log_id_account_id_key UNIQUE NULLS NOT DISTINCT (chat_log_id, account_id);

SELECT rag_close_rest_api();
