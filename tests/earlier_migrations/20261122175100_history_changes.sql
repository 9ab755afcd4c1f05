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
ALTER TABLE history_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE history_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON history_changes USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON history_changes TO rag_app;

-- Whoever changes a tenant's rows does it as that tenant. The owner of the tables, who deletes whole tenants, counts nothing.
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

SELECT rag_close_rest_api();
