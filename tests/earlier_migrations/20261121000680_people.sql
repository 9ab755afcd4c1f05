-- Who acts: every transaction of a person names them, so that the database limits what they read within their tenant
-- and keeps a record of what they change. Tenants can be suspended, and deleted with a proof.

-- Who is at work in this transaction. `rag.reads` is 'all' for the product itself and for administrators, 'group:' and
-- the person's group for the others; anything else, unset included, reads what is open to everybody.
CREATE FUNCTION rag_reads_all() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(current_setting('rag.reads', true) = 'all', false);
CREATE FUNCTION rag_group() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(substring(current_setting('rag.reads', true) FROM '^group:(.*)$'), '');
CREATE FUNCTION rag_account() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('rag.account_id', true), '')::uuid;

-- Collections for some groups only

ALTER TABLE collections
    -- Groups whose people may read it; empty: everybody of the tenant.
    ADD COLUMN groups text[] NOT NULL DEFAULT '{}';

-- The collection a cost belongs to, so that who may not read it does not count it either. What is deleted belongs to none.
ALTER TABLE cost_ledger ADD COLUMN collection_id uuid REFERENCES collections ON DELETE SET NULL;
CREATE INDEX ON cost_ledger (collection_id);

CREATE FUNCTION name_collection_of_cost() RETURNS trigger LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    NEW.collection_id := coalesce(
        NEW.collection_id,
        (SELECT collection_id FROM documents WHERE id = NEW.document_id),
        (SELECT collection_id FROM chat_logs WHERE id = NEW.chat_log_id));
    RETURN NEW;
END
$$;
CREATE TRIGGER name_collection_of_cost BEFORE INSERT ON cost_ledger
    FOR EACH ROW EXECUTE FUNCTION name_collection_of_cost();

ALTER TABLE cost_ledger NO FORCE ROW LEVEL SECURITY;
ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_logs NO FORCE ROW LEVEL SECURITY;
UPDATE cost_ledger AS l SET collection_id = coalesce(
    (SELECT collection_id FROM documents WHERE id = l.document_id),
    (SELECT collection_id FROM chat_logs WHERE id = l.chat_log_id));
ALTER TABLE cost_ledger FORCE ROW LEVEL SECURITY;
ALTER TABLE documents FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_logs FORCE ROW LEVEL SECURITY;

-- Restrictive: it stands beside the tenant's policy, and both must allow. The list of readable collections is read at
-- most once for a statement, and not at all where everything may be read.
CREATE POLICY reader ON collections AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR cardinality(groups) = 0 OR (SELECT rag_group()) = ANY (groups));

DO $$
DECLARE
    t text;
BEGIN
    FOR t IN
        SELECT c.table_name FROM information_schema.columns c
        JOIN information_schema.tables b USING (table_schema, table_name)
        WHERE c.table_schema = 'public' AND c.column_name = 'collection_id' AND b.table_type = 'BASE TABLE'
          AND EXISTS (SELECT FROM information_schema.columns o
                      WHERE o.table_schema = 'public' AND o.table_name = c.table_name AND o.column_name = 'tenant_id')
    LOOP
        EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                       'OR collection_id IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
    END LOOP;
END
$$;
CREATE POLICY reader ON document_pages AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM documents d WHERE d.id = document_id));
CREATE POLICY reader ON messages AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM conversations c WHERE c.id = conversation_id));
CREATE POLICY reader ON feedback AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM chat_logs l WHERE l.id = chat_log_id));

-- What people change, written by the database itself; nobody can forget it, and the application cannot take it back.

CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    -- The e-mail address at that time, or the name of an API key.
    actor text NOT NULL,
    -- What was done to which kind of thing: 'account added', 'collection changed', 'documents exported'.
    action text NOT NULL,
    target_id text NOT NULL DEFAULT '',
    target text NOT NULL DEFAULT '',
    -- Field → [before, after]; of a secret only that it changed.
    changes jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON audit_log (tenant_id, id DESC);
ALTER TABLE audit_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_log FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_log USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT ON audit_log TO rag_app;

-- Arguments: the kind of thing, its column with a name (or an account's id), then the columns whose changes count.
-- Columns that end in _hash are secrets.
CREATE FUNCTION audit_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, extensions AS $$
DECLARE
    old_row jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) END;
    new_row jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE to_jsonb(NEW) END;
    known jsonb := CASE WHEN TG_OP = 'DELETE' THEN old_row ELSE new_row END;
    label text := coalesce(known ->> TG_ARGV[1], '');
    what jsonb := '{}';
    field text;
BEGIN
    IF rag_account() IS NULL THEN
        RETURN NULL;
    END IF;
    FOREACH field IN ARRAY TG_ARGV[2:] LOOP
        IF old_row -> field IS DISTINCT FROM new_row -> field THEN
            what := what || jsonb_build_object(field, CASE WHEN field LIKE '%\_hash' THEN '"changed"'::jsonb
                ELSE jsonb_build_array(old_row -> field, new_row -> field) END);
        END IF;
    END LOOP;
    IF TG_ARGV[1] = 'account_id' THEN
        label := coalesce((SELECT email FROM accounts WHERE id::text = label), label);
    END IF;
    IF TG_OP <> 'UPDATE' OR what <> '{}' THEN
        INSERT INTO audit_log (tenant_id, account_id, actor, action, target_id, target, changes)
        VALUES (rag_tenant(), rag_account(), coalesce(current_setting('rag.actor', true), ''),
                TG_ARGV[0] || CASE TG_OP WHEN 'INSERT' THEN ' added' WHEN 'DELETE' THEN ' deleted' ELSE ' changed' END,
                coalesce(known ->> 'id', ''), label, what);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts FOR EACH ROW
    EXECUTE FUNCTION audit_change('account', 'email', 'name', 'role', 'user_group', 'is_active', 'password_hash');
CREATE TRIGGER audit AFTER INSERT ON one_time_links FOR EACH ROW
    EXECUTE FUNCTION audit_change('password link', 'account_id', 'purpose', 'expires_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON collections FOR EACH ROW
    EXECUTE FUNCTION audit_change('collection', 'name', 'name', 'profile', 'language', 'embedding_model', 'overrides',
                                  'groups', 'calibrated_threshold');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON documents FOR EACH ROW
    EXECUTE FUNCTION audit_change('document', 'title', 'title', 'collection_id', 'status', 'chunking_method',
                                  'generate_metadata', 'pending_steps', 'version');
CREATE TRIGGER audit AFTER INSERT OR UPDATE ON reembeddings FOR EACH ROW
    EXECUTE FUNCTION audit_change('embedding model', 'to_model', 'from_model', 'to_model', 'status', 'cleaned_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON api_keys FOR EACH ROW
    EXECUTE FUNCTION audit_change('API key', 'name', 'name', 'scopes', 'requests_per_minute', 'expires_at',
                                  'revoked_at');
CREATE TRIGGER audit AFTER UPDATE ON tenants FOR EACH ROW
    EXECUTE FUNCTION audit_change('company', 'name', 'name', 'settings');

-- Sessions an administrator ended for somebody are acts too; one's own are not worth a line.
CREATE FUNCTION audit_session() RETURNS trigger LANGUAGE plpgsql SET search_path = public, extensions AS $$
BEGIN
    IF rag_account() IS DISTINCT FROM OLD.account_id AND rag_account() IS NOT NULL THEN
        INSERT INTO audit_log (tenant_id, account_id, actor, action, target_id, target)
        VALUES (rag_tenant(), rag_account(), coalesce(current_setting('rag.actor', true), ''), 'session ended',
                OLD.account_id::text, coalesce((SELECT email FROM accounts WHERE id = OLD.account_id), ''));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER audit AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION audit_session();

-- Tenants

ALTER TABLE tenants ADD COLUMN suspended_at timestamptz;
COMMENT ON COLUMN tenants.suspended_at IS 'Since when nobody of the tenant may sign in and nothing is processed.';
GRANT DELETE ON tenants TO rag_app;
-- Whoever owns the tables may see which tenants there are; the application, which does not, sees its own.
DO $$
BEGIN
    EXECUTE format('CREATE POLICY operator ON tenants FOR SELECT TO %I USING (true)', current_user);
END
$$;

-- What was deleted with a tenant: rows by table and files, counted before and after. Holds nothing of what it was.
CREATE TABLE tenant_deletions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL,
    rows_before jsonb NOT NULL,
    rows_after jsonb NOT NULL,
    files_before bigint NOT NULL,
    files_after bigint NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE tenant_deletions ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_deletions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenant_deletions USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT ON tenant_deletions TO rag_app;
