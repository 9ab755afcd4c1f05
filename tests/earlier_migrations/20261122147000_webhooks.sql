-- Programs elsewhere that hear of what happens here: an event is written in the transaction of the change itself, as one
-- delivery for each address that wants it, with a job of the queue. So none is lost, and none tells of what was rolled back.

CREATE TABLE webhooks (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
    address text NOT NULL CHECK (length(address) <= 500),
    -- Kinds of events; empty: every kind.
    events text[] NOT NULL DEFAULT '{}',
    -- What deliveries are signed with, encrypted.
    secret bytea NOT NULL,
    -- Off once its address answers that it is gone (410).
    is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT webhooks_of_tenant UNIQUE (id, tenant_id)
);
CREATE INDEX ON webhooks (tenant_id);
COMMENT ON TABLE webhooks IS 'Addresses that are told of events, with a signature.';

CREATE TABLE webhook_deliveries (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    webhook_id uuid NOT NULL,
    kind text NOT NULL,
    -- The same for each address that is told of it, and for each attempt.
    event_id uuid NOT NULL,
    data jsonb NOT NULL,
    status text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'delivered', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    next_at timestamptz,
    -- The last answer: its status, null where there was none, and a sentence.
    answer_status integer,
    answer text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    CONSTRAINT webhook_deliveries_webhook_id_fkey FOREIGN KEY (webhook_id, tenant_id)
        REFERENCES webhooks (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON webhook_deliveries (webhook_id, created_at DESC);
CREATE INDEX ON webhook_deliveries (tenant_id, created_at);
COMMENT ON TABLE webhook_deliveries IS 'What webhooks were told, for thirty days.';

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['webhooks', 'webhook_deliveries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO rag_app', t);
    END LOOP;
END
$$;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON webhooks FOR EACH ROW
    EXECUTE FUNCTION audit_change('webhook', 'name', 'name', 'address', 'events', 'is_active');

CREATE FUNCTION public.rag_queue_delivery(delivery_id uuid, due_at timestamptz) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO public.procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at)
    VALUES ('outgoing', 'deliver', 'delivery ' || delivery_id, 'delivery ' || delivery_id,
            jsonb_build_object('tenant_id', public.rag_tenant(), 'delivery_id', delivery_id), due_at)
    ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING
$$;

-- Tells every webhook that wants this kind of event, or one webhook alone. Returns how many are told.
CREATE FUNCTION public.rag_emit(p_kind text, p_data jsonb, p_webhook_id uuid DEFAULT NULL) RETURNS integer
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    event uuid := gen_random_uuid();
    delivery uuid;
    told integer := 0;
    hook uuid;
BEGIN
    FOR hook IN
        SELECT w.id FROM public.webhooks w
        WHERE w.tenant_id = public.rag_tenant() AND w.is_active
          AND CASE WHEN p_webhook_id IS NULL THEN cardinality(w.events) = 0 OR p_kind = ANY (w.events)
                   ELSE w.id = p_webhook_id END
    LOOP
        INSERT INTO public.webhook_deliveries (tenant_id, webhook_id, kind, event_id, data)
        VALUES (public.rag_tenant(), hook, p_kind, event, p_data) RETURNING id INTO delivery;
        PERFORM public.rag_queue_delivery(delivery, NULL);
        told := told + 1;
    END LOOP;
    RETURN told;
END
$$;

CREATE FUNCTION public.emit_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.rag_emit(
        CASE NEW.status WHEN 'completed' THEN 'document.ready' ELSE 'document.failed' END,
        jsonb_build_object('documentId', NEW.id, 'collectionId', NEW.collection_id, 'title', NEW.title,
                           'fileName', NEW.file_name, 'version', NEW.version, 'message', NEW.message));
    RETURN NULL;
END
$$;
CREATE TRIGGER emit AFTER UPDATE OF status ON documents FOR EACH ROW
    WHEN (NEW.status IN ('completed', 'failed') AND OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION emit_document();

CREATE FUNCTION public.emit_gap() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.rag_emit(
        'gap.solved',
        jsonb_build_object('gapId', NEW.id, 'collectionId', NEW.collection_id, 'solvedBy', NEW.solved_by_id,
                           'questions', (SELECT count(*) FROM public.gap_questions q WHERE q.gap_id = NEW.id)));
    RETURN NULL;
END
$$;
CREATE TRIGGER emit AFTER UPDATE OF status ON gaps FOR EACH ROW
    WHEN (NEW.status = 'solved' AND OLD.status <> 'solved') EXECUTE FUNCTION emit_gap();

CREATE FUNCTION public.emit_sync() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.rag_emit(
        'sync.failed',
        jsonb_build_object('collectionId', NEW.collection_id, 'source', NEW.kind, 'message', NEW.message));
    RETURN NULL;
END
$$;
CREATE TRIGGER emit AFTER UPDATE OF status ON sync_runs FOR EACH ROW
    WHEN (NEW.status = 'failed' AND OLD.status <> 'failed') EXECUTE FUNCTION emit_sync();

-- The month whose end of a budget was told of.
ALTER TABLE budgets ADD COLUMN told_month date;
CREATE FUNCTION public.emit_budget() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.rag_emit(
        'budget.reached',
        jsonb_build_object('budgetId', NEW.id, 'scope', NEW.scope, 'group', nullif(NEW.user_group, ''),
                           'accountId', NEW.account_id, 'amount', NEW.amount::text,
                           'month', to_char(NEW.told_month, 'YYYY-MM')));
    RETURN NULL;
END
$$;
CREATE TRIGGER emit AFTER UPDATE OF told_month ON budgets FOR EACH ROW
    WHEN (NEW.told_month IS DISTINCT FROM OLD.told_month AND NEW.told_month IS NOT NULL) EXECUTE FUNCTION emit_budget();

SELECT rag_close_rest_api();
