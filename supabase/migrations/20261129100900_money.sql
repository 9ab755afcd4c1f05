-- What was paid, what it may cost, and at which prices.

-- One row per paid call. Ids are kept without a reference: what was spent stays when its document is deleted.
CREATE TABLE cost_ledger (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    operation text NOT NULL
        CHECK (operation IN ('embedding', 'chunking', 'reranking', 'translation', 'chat', 'tagging', 'ocr')),
    provider text NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL DEFAULT 0,
    cached_input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    search_units bigint NOT NULL DEFAULT 0,
    pages bigint NOT NULL DEFAULT 0,
    unit_prices jsonb NOT NULL DEFAULT '{}',
    -- Null: no price is known. Never read as zero.
    cost numeric(14, 8),
    document_id uuid,
    chat_log_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The collection a cost belongs to, so that who may not read it does not count it either. What is deleted
    -- belongs to none.
    collection_id uuid,
    -- A call whose usage is not known, such as one that brought nothing, is a row with an estimate.
    is_estimated boolean NOT NULL DEFAULT false,
    CONSTRAINT cost_ledger_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE SET NULL (collection_id)
);
CREATE INDEX ON cost_ledger (tenant_id, created_at DESC);
CREATE INDEX ON cost_ledger (document_id);
CREATE INDEX ON cost_ledger (chat_log_id);
CREATE INDEX ON cost_ledger (collection_id);
-- What the analytics page reads of single calls.
CREATE INDEX cost_ledger_estimated ON cost_ledger (tenant_id, created_at DESC) WHERE is_estimated;
-- Requests to an embedding model that several documents of a collection share have no document. The library adds up what
-- they cost.
CREATE INDEX cost_ledger_shared ON cost_ledger (tenant_id, collection_id)
    WHERE document_id IS NULL AND chat_log_id IS NULL;

-- Costs belong to the collection of their document or question, so that readers of other collections do not count them.
CREATE FUNCTION public.name_collection_of_cost() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.collection_id := coalesce(
        NEW.collection_id,
        (SELECT d.collection_id FROM public.documents d WHERE d.id = NEW.document_id),
        (SELECT l.collection_id FROM public.chat_logs l WHERE l.id = NEW.chat_log_id));
    RETURN NEW;
END
$$;
CREATE TRIGGER name_collection_of_cost BEFORE INSERT ON cost_ledger
    FOR EACH ROW EXECUTE FUNCTION name_collection_of_cost();

-- A row is written before a paid call and removed with its result: one left after a kill was perhaps answered and not
-- stored. The id is the call's idempotency key at the provider. Documents are named without a reference: a call
-- outlives them.
CREATE TABLE paid_calls (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- The document, or the embedding-again, that the call is made for.
    owner_id uuid NOT NULL,
    operation text NOT NULL
        CHECK (operation IN ('embedding', 'chunking', 'reranking', 'translation', 'chat', 'tagging', 'ocr')),
    digest text NOT NULL,
    sent integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The expected bill, what it is for, and how often the call was sent without an answer: after a kill the ledger
    -- holds it as an estimate.
    expected jsonb NOT NULL DEFAULT '{}',
    document_id uuid,
    chat_log_id uuid,
    unsettled integer NOT NULL DEFAULT 1,
    sent_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant_id, owner_id, operation, digest)
);
CREATE INDEX ON paid_calls (chat_log_id);

-- What a tenant itself pays, by model and unit, from a day on. Rows are only added: what was charged before a change keeps
-- the price that counted then, and the row says who changed it when.
CREATE TABLE tenant_prices (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    model text NOT NULL CHECK (length(model) BETWEEN 1 AND 200),
    unit text NOT NULL CHECK (unit IN ('input_mtok', 'cached_input_mtok', 'output_mtok', 'search_unit', 'page')),
    -- US dollars; null: the listed price counts from then on.
    price numeric(14, 8) CHECK (price >= 0),
    -- By the calendar of UTC.
    valid_from date NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON tenant_prices (tenant_id, model, unit, valid_from DESC, id DESC);
COMMENT ON TABLE tenant_prices IS 'Prices of a tenant''s own in US dollars; of each model and unit the latest that has begun counts.';

-- What may be spent in a calendar month by the company, a group or a person. Once it is, no paid model answers; searching
-- goes on.
CREATE TABLE budgets (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    scope text NOT NULL CHECK (scope IN ('company', 'group', 'person')),
    -- The group's name; empty for the others.
    user_group text NOT NULL DEFAULT '' CHECK ((scope = 'group') = (user_group <> '')),
    account_id uuid CHECK ((scope = 'person') = (account_id IS NOT NULL)),
    -- US dollars a month.
    amount numeric(14, 4) NOT NULL CHECK (amount >= 0),
    -- From this share on, administrators and managers are warned.
    warn_share numeric(4, 3) NOT NULL DEFAULT 0.8 CHECK (warn_share BETWEEN 0 AND 1),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- From this share on, people are asked before a paid model is called for them; null: they are not asked.
    ask_share numeric(4, 3) CHECK (ask_share BETWEEN 0 AND 1),
    -- The month whose end of the budget webhooks were told of.
    told_month date,
    CONSTRAINT budgets_of_tenant UNIQUE (id, tenant_id),
    UNIQUE NULLS NOT DISTINCT (tenant_id, scope, user_group, account_id),
    CONSTRAINT budgets_account_id_fkey FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);

-- Who agreed, once a budget asks, that paid models go on being called for them this month.
CREATE TABLE budget_consents (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    budget_id uuid NOT NULL,
    account_id uuid NOT NULL,
    -- The first day of the month.
    month date NOT NULL,
    PRIMARY KEY (budget_id, account_id, month),
    CONSTRAINT budget_consents_budget_id_fkey FOREIGN KEY (budget_id, tenant_id)
        REFERENCES budgets (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT budget_consents_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON budget_consents (tenant_id, account_id);
