-- Other programs: webhooks, widgets, and bots of chat programs.

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
    -- The day, in the tenant's time zone, that `counted` is of.
    counted_on date,
    counted integer NOT NULL DEFAULT 0,
    CONSTRAINT widgets_api_key_id_fkey FOREIGN KEY (api_key_id, tenant_id)
        REFERENCES api_keys (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT widgets_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON widgets (tenant_id);
CREATE INDEX ON widgets (api_key_id);
CREATE INDEX ON widgets (collection_id);
COMMENT ON TABLE widgets IS 'Collections that pages of other sites may ask, with a public key.';

-- Threads of chat programs such as Slack that are conversations here: a person's questions in a thread go on with one
-- conversation of theirs.
CREATE TABLE chat_threads (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Which program, such as slack.
    program text NOT NULL,
    -- As the program names its channel and the message a thread begins with.
    channel text NOT NULL CHECK (length(channel) <= 200),
    thread text NOT NULL CHECK (length(thread) <= 200),
    account_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, program, channel, thread, account_id),
    CONSTRAINT chat_threads_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT chat_threads_conversation_id_fkey FOREIGN KEY (conversation_id, tenant_id)
        REFERENCES conversations (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON chat_threads (account_id);
CREATE INDEX ON chat_threads (conversation_id);
COMMENT ON TABLE chat_threads IS 'Threads of chat programs that are conversations.';

-- What chat programs such as Slack delivered within the last day: they send again what was not confirmed in time, and the
-- repetition may reach another process.
CREATE TABLE chat_deliveries (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Which program, such as slack.
    program text NOT NULL,
    -- As the program names what it delivered, hashed.
    delivery bytea NOT NULL CHECK (length(delivery) = 32),
    delivered_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, program, delivery)
);
COMMENT ON TABLE chat_deliveries IS 'What chat programs delivered within the last day.';

-- A company's bot in Microsoft Teams: its registration with Microsoft, and who it answers.
CREATE TABLE teams_bots (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL UNIQUE REFERENCES tenants ON DELETE CASCADE,
    -- The application (client) id of its registration, and its hash, by which its company is found.
    app_id text NOT NULL CHECK (app_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'),
    key_hash bytea NOT NULL UNIQUE,
    -- Directories (tenants of Microsoft Entra ID) whose people are answered; the first is the registration's own.
    directories text[] NOT NULL CHECK (cardinality(directories) BETWEEN 1 AND 20),
    -- The client secret, encrypted by the application.
    secret bytea NOT NULL,
    -- The collection that is asked; null: each person's own.
    collection_id uuid,
    is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT teams_bots_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE SET NULL (collection_id)
);
CREATE INDEX ON teams_bots (collection_id);
COMMENT ON TABLE teams_bots IS 'The bot of a company in Microsoft Teams.';
