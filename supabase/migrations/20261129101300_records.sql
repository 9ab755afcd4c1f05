-- What the database itself records of changes: the audit log, receipts, and counts by which standbys are compared.

-- Changes that people make, written by triggers: no code path can forget one, and the application cannot remove one.
CREATE TABLE audit_log (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid,
    -- The e-mail address at that time, or the name of an API key.
    actor text NOT NULL,
    -- The kind of thing and the change: 'account added', 'collection changed', 'documents exported'.
    action text NOT NULL,
    target_id text NOT NULL DEFAULT '',
    target text NOT NULL DEFAULT '',
    -- Field → [before, after]; of a secret only that it changed.
    changes jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- One act of a person is one line of the audit log: entries know what they belong to.
    act text DEFAULT coalesce(nullif(current_setting('rag.act', true), ''), pg_current_xact_id()::text),
    -- What an entry is about, whatever it was called: of a document the id that all its versions share.
    thing_id text NOT NULL DEFAULT ''
);
CREATE INDEX ON audit_log (tenant_id, id DESC);
-- The list of actors is read by going from name to name.
CREATE INDEX audit_log_actors ON audit_log (tenant_id, actor);
-- An entry without an act is one by itself.
CREATE INDEX audit_log_acts ON audit_log (tenant_id, (coalesce(act, 'entry ' || id::text)));

-- Arguments: the kind of thing, its column with a name (or an account's id), then the columns whose changes count.
-- Columns that end in _hash are secrets.
CREATE FUNCTION public.audit_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old_row jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) END;
    new_row jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE to_jsonb(NEW) END;
    known jsonb := CASE WHEN TG_OP = 'DELETE' THEN old_row ELSE new_row END;
    label text := coalesce(known ->> TG_ARGV[1], '');
    what jsonb := '{}';
    field text;
BEGIN
    IF public.rag_account() IS NULL THEN
        RETURN NULL;
    END IF;
    FOREACH field IN ARRAY TG_ARGV[2:] LOOP
        IF old_row -> field IS DISTINCT FROM new_row -> field THEN
            what := what || jsonb_build_object(field, CASE WHEN field LIKE '%\_hash' THEN '"changed"'::jsonb
                ELSE jsonb_build_array(old_row -> field, new_row -> field) END);
        END IF;
    END LOOP;
    IF TG_ARGV[1] = 'account_id' THEN
        label := coalesce((SELECT a.email FROM public.accounts a WHERE a.id::text = label), label);
    END IF;
    IF TG_OP <> 'UPDATE' OR what <> '{}' THEN
        INSERT INTO public.audit_log (tenant_id, account_id, actor, action, target_id, thing_id, target, changes)
        VALUES (public.rag_tenant(), public.rag_account(), public.rag_actor(),
                TG_ARGV[0] || CASE TG_OP WHEN 'INSERT' THEN ' added' WHEN 'DELETE' THEN ' deleted' ELSE ' changed' END,
                coalesce(known ->> 'id', ''), coalesce(known ->> 'original_id', known ->> 'id', ''), label, what);
    END IF;
    RETURN NULL;
END
$$;

-- When a source is due changes with every sync and is nobody's act; how often is an administrator's.
CREATE TRIGGER audit AFTER UPDATE ON tenants FOR EACH ROW
    EXECUTE FUNCTION audit_change('company', 'name', 'name', 'settings');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts FOR EACH ROW
    EXECUTE FUNCTION audit_change('account', 'email', 'name', 'role', 'user_group', 'is_active', 'password_hash');
CREATE TRIGGER audit AFTER INSERT ON one_time_links FOR EACH ROW WHEN (NEW.purpose <> 'second_factor')
    EXECUTE FUNCTION audit_change('password link', 'account_id', 'purpose', 'expires_at');
CREATE TRIGGER audit AFTER UPDATE OF confirmed_at OR DELETE ON second_factors FOR EACH ROW
    EXECUTE FUNCTION audit_change('second factor', 'account_id', 'confirmed_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON api_keys FOR EACH ROW
    EXECUTE FUNCTION audit_change('API key', 'name', 'name', 'scopes', 'requests_per_minute', 'expires_at',
                                  'revoked_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON collections FOR EACH ROW
    EXECUTE FUNCTION audit_change('collection', 'name', 'name', 'profile', 'language', 'embedding_model', 'overrides',
                                  'groups', 'calibrated_threshold', 'binned_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON documents FOR EACH ROW
    EXECUTE FUNCTION audit_change('document', 'title', 'title', 'collection_id', 'status', 'chunking_method',
                                  'generate_metadata', 'pending_steps', 'version', 'folder', 'tags', 'owner_id',
                                  'valid_from', 'valid_until', 'review_on', 'corrected_language');
CREATE TRIGGER audit AFTER INSERT OR UPDATE ON reembeddings FOR EACH ROW
    EXECUTE FUNCTION audit_change('embedding model', 'to_model', 'from_model', 'to_model', 'status', 'cleaned_at');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON collection_sources FOR EACH ROW
    EXECUTE FUNCTION audit_change('source', 'kind', 'kind', 'settings', 'every_minutes');
CREATE TRIGGER audit AFTER INSERT ON sync_runs FOR EACH ROW
    EXECUTE FUNCTION audit_change('sync', 'kind', 'kind');
CREATE TRIGGER audit AFTER INSERT ON tenant_prices FOR EACH ROW
    EXECUTE FUNCTION audit_change('price', 'model', 'unit', 'price', 'valid_from');
CREATE TRIGGER audit AFTER UPDATE ON gaps FOR EACH ROW
    EXECUTE FUNCTION audit_change('gap', 'id', 'status', 'reason', 'assigned_to', 'solved_by_id');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON budgets FOR EACH ROW
    EXECUTE FUNCTION audit_change('budget', 'user_group', 'scope', 'user_group', 'account_id', 'amount', 'warn_share');
CREATE TRIGGER audit AFTER INSERT OR DELETE ON connected_apps FOR EACH ROW
    EXECUTE FUNCTION audit_change('connected program', 'name', 'name', 'host', 'account_id', 'scopes');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON webhooks FOR EACH ROW
    EXECUTE FUNCTION audit_change('webhook', 'name', 'name', 'address', 'events', 'is_active');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON widgets FOR EACH ROW
    EXECUTE FUNCTION audit_change('widget', 'name', 'name', 'collection_id', 'sites', 'is_active', 'has_page', 'title',
                                  'greeting', 'questions_per_day', 'budget');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON teams_bots FOR EACH ROW
    EXECUTE FUNCTION audit_change('teams bot', 'app_id', 'app_id', 'directories', 'collection_id', 'is_active');
CREATE TRIGGER audit AFTER INSERT ON page_corrections FOR EACH ROW
    EXECUTE FUNCTION audit_change('page correction', 'place', 'page');

-- Sessions an administrator ended for somebody are acts too; one's own are not worth a line.
CREATE FUNCTION public.audit_session() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF public.rag_account() IS DISTINCT FROM OLD.account_id AND public.rag_account() IS NOT NULL THEN
        INSERT INTO public.audit_log (tenant_id, account_id, actor, action, target_id, target)
        VALUES (public.rag_tenant(), public.rag_account(), public.rag_actor(), 'session ended', OLD.account_id::text,
                coalesce((SELECT a.email FROM public.accounts a WHERE a.id = OLD.account_id), ''));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER audit AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION audit_session();

-- The proof of a tenant's deletion: rows by table and files, counted before and after; none of their content.
CREATE TABLE tenant_deletions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL,
    rows_before jsonb NOT NULL,
    rows_after jsonb NOT NULL,
    files_before bigint NOT NULL,
    files_after bigint NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- That a person's data was erased: how many rows of which kind, and none of their content.
CREATE TABLE erasures (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Of the account that is gone, by which a receipt is found again.
    erased_id uuid NOT NULL,
    counts jsonb NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON erasures (tenant_id, erased_at DESC);

-- What is done for a tenant once a day, a week or a month, with the last day for which it was done: whoever writes the
-- row does it.
CREATE TABLE calendar_work (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    work text NOT NULL,
    done_for date NOT NULL,
    PRIMARY KEY (tenant_id, work)
);

-- Counts that standbys are compared by

-- How often what a tenant's people can find has changed: a standby that has not counted as far as the primary has not
-- replayed the last publication or deletion, and is not asked.
CREATE TABLE tenant_changes (
    tenant_id text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    changes bigint NOT NULL DEFAULT 1,
    -- The transaction that counted last, so that each counts once.
    counted_by xid8 NOT NULL
);

-- Whoever changes a tenant's rows does it as that tenant. The owner of the tables, who deletes whole tenants, counts nothing.
CREATE FUNCTION public.count_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed text := public.rag_tenant();
BEGIN
    IF changed IS NOT NULL THEN
        INSERT INTO public.tenant_changes AS t (tenant_id, counted_by)
        SELECT id, pg_current_xact_id() FROM public.tenants WHERE id = changed
        ON CONFLICT (tenant_id) DO UPDATE SET changes = t.changes + 1, counted_by = excluded.counted_by
        WHERE t.counted_by <> excluded.counted_by;
    END IF;
    RETURN NULL;
END
$$;

-- At the commit, so that two publications of a tenant do not wait for each other's whole transaction.
CREATE CONSTRAINT TRIGGER count_added AFTER INSERT ON documents DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.status = 'completed') EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_changed AFTER UPDATE ON documents DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN ((OLD.status = 'completed' OR NEW.status = 'completed')
        AND (OLD.status, OLD.title, OLD.language, OLD.metadata, OLD.collection_id, OLD.valid_from, OLD.valid_until)
        IS DISTINCT FROM
            (NEW.status, NEW.title, NEW.language, NEW.metadata, NEW.collection_id, NEW.valid_from, NEW.valid_until))
    EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_deleted AFTER DELETE ON documents DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER count_changed AFTER INSERT OR UPDATE OR DELETE ON collections DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION count_change();
-- Tags and vectors of passages that are found already.
CREATE TRIGGER count_changed AFTER UPDATE ON document_chunks
    FOR EACH STATEMENT EXECUTE FUNCTION count_change();

-- How often what a person, or a program, sees of their own conversations has changed: a standby that has not counted as
-- far as the primary has not replayed their last question, rating or deletion, and is not asked.
CREATE TABLE history_changes (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- An account, or the key of a program, as in conversations; it goes with them.
    owner_id uuid NOT NULL,
    changes bigint NOT NULL DEFAULT 1,
    -- The transaction that counted last, so that each counts once.
    counted_by xid8 NOT NULL,
    PRIMARY KEY (tenant_id, owner_id)
) WITH (fillfactor = 50);
COMMENT ON TABLE history_changes IS 'How often what somebody sees of their own conversations has changed.';

CREATE FUNCTION public.count_history() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed text := public.rag_tenant();
    owner uuid;
BEGIN
    IF changed IS NULL THEN
        RETURN NULL;
    ELSIF TG_TABLE_NAME = 'conversations' THEN
        owner := CASE TG_OP WHEN 'DELETE' THEN OLD.owner_id ELSE NEW.owner_id END;
    ELSIF TG_TABLE_NAME IN ('messages', 'chat_logs') THEN
        SELECT c.owner_id INTO owner FROM public.conversations c
        WHERE c.id = CASE TG_OP WHEN 'DELETE' THEN OLD.conversation_id ELSE NEW.conversation_id END;
    ELSE
        owner := CASE TG_OP WHEN 'DELETE' THEN OLD.account_id ELSE NEW.account_id END;
    END IF;
    IF owner IS NOT NULL THEN
        INSERT INTO public.history_changes AS h (tenant_id, owner_id, counted_by)
        SELECT t.id, owner, pg_current_xact_id() FROM public.tenants t WHERE t.id = changed
            AND (EXISTS (SELECT FROM public.accounts WHERE id = owner)
                 OR EXISTS (SELECT FROM public.api_keys WHERE id = owner))
        ON CONFLICT (tenant_id, owner_id) DO UPDATE SET changes = h.changes + 1, counted_by = excluded.counted_by
        WHERE h.counted_by <> excluded.counted_by;
    END IF;
    RETURN NULL;
END
$$;

-- At the commit, so that nobody waits for another's whole transaction.
CREATE CONSTRAINT TRIGGER count_history AFTER INSERT OR UPDATE OR DELETE ON conversations
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_history();
CREATE CONSTRAINT TRIGGER count_history_added AFTER INSERT OR DELETE ON messages
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_history();
-- The text of an answer that is being written is followed by itself, several times a second.
CREATE CONSTRAINT TRIGGER count_history_changed AFTER UPDATE ON messages
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.state <> 'streaming' OR NEW.state <> 'streaming')
    EXECUTE FUNCTION count_history();
CREATE CONSTRAINT TRIGGER count_history AFTER UPDATE ON chat_logs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.outcome IS DISTINCT FROM NEW.outcome)
    EXECUTE FUNCTION count_history();
CREATE CONSTRAINT TRIGGER count_history AFTER INSERT OR UPDATE OR DELETE ON feedback
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_history();
CREATE CONSTRAINT TRIGGER count_history AFTER INSERT OR UPDATE OR DELETE ON help_requests
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_history();

CREATE FUNCTION public.forget_history() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.history_changes WHERE tenant_id = OLD.tenant_id AND owner_id = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_history AFTER DELETE ON accounts FOR EACH ROW EXECUTE FUNCTION forget_history();
CREATE TRIGGER forget_history AFTER DELETE ON api_keys FOR EACH ROW EXECUTE FUNCTION forget_history();
