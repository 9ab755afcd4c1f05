-- Conversations, questions and answers, and what people say of them.

-- Questions of one person, or one program, that follow each other.
CREATE TABLE conversations (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid,
    collection_id uuid NOT NULL,
    title text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    api_key_id uuid,
    -- What a program asks belongs to its key, as what a person asks belongs to their account.
    owner_id uuid GENERATED ALWAYS AS (COALESCE(account_id, api_key_id)) STORED,
    pinned_at timestamptz,
    shared_at timestamptz,
    -- Whether the latest question was asked in all collections that its owner may read.
    asks_all boolean NOT NULL DEFAULT false,
    -- What the latest question was narrowed to: documents, categories, years, importance, fields. Empty: nothing.
    narrowed_to jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT conversations_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT conversations_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT conversations_api_key_id_fkey FOREIGN KEY (api_key_id, tenant_id)
        REFERENCES api_keys (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT conversations_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT conversation_has_one_owner CHECK (num_nonnulls(account_id, api_key_id) = 1)
);
CREATE INDEX ON conversations (tenant_id, account_id, updated_at DESC);
CREATE INDEX ON conversations (tenant_id, owner_id, updated_at DESC);
CREATE INDEX conversations_of_key ON conversations (api_key_id, created_at) WHERE api_key_id IS NOT NULL;
COMMENT ON COLUMN conversations.shared_at IS 'Messages up to then may be read by colleagues who may read the collection.';

-- What a question's stages took, beside the JSON, which is long and stored apart.
CREATE FUNCTION public.rag_ms(details jsonb, field text) RETURNS real LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(details -> 'timing' -> field) = 'number'
           THEN (details -> 'timing' ->> field)::numeric::real END;

-- Questions and searches, with how each was answered, its cost and its timing.
CREATE TABLE chat_logs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid,
    user_group text NOT NULL DEFAULT '',
    conversation_id uuid,
    collection_id uuid,
    question text NOT NULL,
    answer text NOT NULL DEFAULT '',
    language text NOT NULL DEFAULT '',
    -- Null while it is being answered; a row left so by a dead process is closed as failed at the next start.
    outcome text
        CHECK (outcome IN ('answered', 'perhaps', 'no_context', 'small_talk', 'asked_back', 'refused', 'stopped',
                           'failed')),
    error text NOT NULL DEFAULT '',
    model text NOT NULL DEFAULT '',
    document_ids uuid[] NOT NULL DEFAULT '{}',
    rag_details jsonb NOT NULL DEFAULT '{}',
    -- Known costs; is_priced is false when a call had no known price.
    cost numeric(14, 8) NOT NULL DEFAULT 0,
    is_priced boolean NOT NULL DEFAULT true,
    first_token_ms integer,
    total_ms integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Searches of programs are logged for their costs, apart from the questions that people ask. Questions of an evaluation
    -- are logged with everything, and are no question of a person.
    kind text NOT NULL DEFAULT 'question' CHECK (kind IN ('question', 'search', 'evaluation')),
    translation_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'translationMs')) STORED,
    embedding_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'embeddingMs')) STORED,
    search_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'searchMs')) STORED,
    reranking_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'rerankingMs')) STORED,
    model_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'openaiMs')) STORED,
    -- As in messages.
    limited_to uuid[],
    CONSTRAINT chat_logs_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT chat_logs_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (account_id),
    CONSTRAINT chat_logs_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE SET NULL (collection_id),
    CONSTRAINT chat_logs_conversation_id_fkey FOREIGN KEY (conversation_id, tenant_id)
        REFERENCES conversations (id, tenant_id) ON DELETE SET NULL (conversation_id)
);
-- Questions that a dead process left open are looked for again and again; hardly any question is open.
CREATE INDEX chat_logs_tenant_id_created_at_idx1 ON chat_logs (tenant_id, created_at) WHERE outcome IS NULL;
CREATE INDEX chat_logs_of_account ON chat_logs (account_id, created_at) WHERE account_id IS NOT NULL;
CREATE INDEX chat_logs_documents ON chat_logs USING gin (document_ids);
-- The filters of the analytics page, after the time: of others no question is read.
CREATE INDEX chat_logs_of_period ON chat_logs (tenant_id, created_at DESC, user_group, language, collection_id);
CREATE INDEX chat_logs_slowest ON chat_logs (tenant_id, total_ms DESC NULLS LAST, created_at DESC);
-- The few questions of an outcome, where they are looked for alone; the few failures of a group, or in a language.
CREATE INDEX chat_logs_outcomes ON chat_logs (tenant_id, outcome, created_at DESC) WHERE outcome <> 'answered';
CREATE INDEX chat_logs_outcomes_of_groups ON chat_logs (tenant_id, outcome, user_group, created_at DESC)
    WHERE outcome <> 'answered';
CREATE INDEX chat_logs_outcomes_of_languages ON chat_logs (tenant_id, outcome, language, created_at DESC)
    WHERE outcome <> 'answered';
-- Questions that may be gaps are a few of a hundred.
CREATE INDEX chat_logs_unanswered ON chat_logs (tenant_id, created_at)
    WHERE kind = 'question' AND outcome IN ('no_context', 'perhaps', 'refused');

-- How each question ended: what counts as answered, as come to an end, and as a gap. Copies of an outcome ask this function;
-- questions are read from the view.
CREATE FUNCTION public.rag_is_answered(outcome text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN outcome = 'answered';
COMMENT ON FUNCTION public.rag_is_answered IS 'Whether a question with this outcome counts as answered.';

-- security_invoker: each reader sees the rows of chat_logs that its policies show. rag_is_asked takes the whole row, `log`.
CREATE VIEW question_outcomes WITH (security_invoker = true) AS
SELECT l.*, l AS log,
       public.rag_is_answered(l.outcome) AS is_answered,
       l.outcome = 'perhaps' AS is_perhaps,
       l.outcome = 'no_context' AS is_not_found,
       l.outcome = 'small_talk' AS is_small_talk,
       l.outcome = 'asked_back' AS is_asked_back,
       l.outcome = 'refused' AS is_refused,
       l.outcome = 'stopped' AS is_stopped,
       l.outcome = 'failed' AS is_failed,
       -- Small talk, and questions that were asked back, are no questions that an answer is due for.
       l.outcome IN ('answered', 'perhaps', 'no_context', 'refused', 'stopped', 'failed') AS is_ended,
       -- The documents were searched and what was found was judged.
       l.outcome IN ('answered', 'perhaps', 'no_context') AS is_judged,
       -- As the index chat_logs_unanswered has it.
       l.outcome IN ('no_context', 'perhaps', 'refused') AS may_be_gap,
       -- Small talk takes a few milliseconds, which is not an answer's time.
       CASE WHEN l.outcome NOT IN ('small_talk', 'asked_back') THEN l.total_ms::float8 END AS whole_ms,
       CASE WHEN l.outcome NOT IN ('small_talk', 'asked_back') THEN l.first_token_ms::float8 END AS first_ms
FROM chat_logs l;
COMMENT ON VIEW question_outcomes IS
    'Questions and searches with how they ended. Answered: is_answered of is_ended. Nothing else may compare outcomes.';

-- The filters of the analytics page. The planner expands the function into the statements that use it, so that indexes serve
-- them; a row is passed whole, so that new columns of its table change nothing here.
CREATE FUNCTION public.rag_is_asked(
    log public.chat_logs, p_kind text, p_start timestamptz, p_end timestamptz, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN log.kind = p_kind AND log.created_at >= p_start AND log.created_at < p_end
       AND (p_document_id IS NULL OR log.document_ids @> ARRAY[p_document_id])
       AND (p_user_group IS NULL OR log.user_group = p_user_group)
       AND (p_collection_id IS NULL OR log.collection_id = p_collection_id)
       AND (p_language IS NULL OR log.language = p_language);
COMMENT ON FUNCTION public.rag_is_asked IS 'Whether a question or search meets the filters of the analytics page.';

-- What was asked and answered in a conversation, as it is shown.
CREATE TABLE messages (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id uuid NOT NULL,
    role text NOT NULL CHECK (role IN ('user', 'assistant')),
    content text NOT NULL DEFAULT '',
    state text NOT NULL DEFAULT 'complete' CHECK (state IN ('streaming', 'complete', 'stopped', 'cut', 'failed')),
    notice text NOT NULL DEFAULT '',
    citations jsonb NOT NULL DEFAULT '[]',
    chat_log_id uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- An answer from several collections may quote those that only some groups read: whoever may not read one of these, or
    -- no longer, reads neither the answer, where it was shared, nor its log. NULL: none of them is limited to groups.
    limited_to uuid[],
    CONSTRAINT messages_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE SET NULL (chat_log_id),
    CONSTRAINT messages_conversation_id_fkey FOREIGN KEY (conversation_id, tenant_id)
        REFERENCES conversations (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON messages (conversation_id, created_at);
CREATE INDEX ON messages (tenant_id);
CREATE INDEX ON messages (chat_log_id);
CREATE INDEX ON messages (tenant_id, created_at) WHERE state = 'streaming';

-- What was sent to the model for a question, and the numbered passages as they were then, with what became of each as a
-- source. It belongs to the text of the question and is forgotten and erased with it.
CREATE TABLE prompts (
    chat_log_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Role and content of each message in its order; empty where no model was asked.
    messages jsonb NOT NULL,
    -- number, chunkId, documentId, title, firstPage, lastPage, section, text, state (held, not held, not named), and the
    -- sentences of the answer that it does not hold.
    passages jsonb NOT NULL,
    CONSTRAINT prompts_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON prompts (tenant_id);

-- Ratings of answers.
CREATE TABLE feedback (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    chat_log_id uuid NOT NULL,
    account_id uuid,
    rating smallint NOT NULL CHECK (rating IN (0, 1)),
    comment text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    reason text NOT NULL DEFAULT '' CHECK (reason IN ('', 'wrong', 'incomplete', 'outdated', 'wrong_source')),
    -- One rating for an answer to a program too, which has no account: a second thumb replaces the first.
    UNIQUE NULLS NOT DISTINCT (chat_log_id, account_id),
    CONSTRAINT feedback_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (account_id),
    CONSTRAINT feedback_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON feedback (tenant_id, created_at);
CREATE INDEX feedback_not_helpful ON feedback (tenant_id, created_at) WHERE rating = 0;

-- Questions that a person passes on to the people in charge, because the answer from the documents did not help, and what
-- those answered.
CREATE TABLE help_requests (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    -- Who asks; the request outlives the account and the conversation.
    account_id uuid,
    conversation_id uuid,
    -- The question as it was asked and answered from the documents.
    chat_log_id uuid,
    question text NOT NULL,
    reason text NOT NULL DEFAULT 'other'
        CHECK (reason IN ('wrong', 'incomplete', 'outdated', 'wrong_source', 'unanswered', 'other')),
    comment text NOT NULL DEFAULT '' CHECK (length(comment) <= 2000),
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'answered', 'dismissed')),
    -- Of a dismissed one: why, where that was said.
    answer text NOT NULL DEFAULT '' CHECK (length(answer) <= 10000),
    answered_by uuid,
    answered_at timestamptz,
    -- When the asker saw how it ended.
    seen_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT help_request_is_ended CHECK ((status = 'open') = (answered_at IS NULL)),
    CONSTRAINT help_request_has_answer CHECK (status <> 'answered' OR answer <> ''),
    -- One for each answer.
    CONSTRAINT help_requests_of_answer UNIQUE (chat_log_id),
    CONSTRAINT help_requests_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT help_requests_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (account_id),
    CONSTRAINT help_requests_answered_by_fkey FOREIGN KEY (answered_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (answered_by),
    CONSTRAINT help_requests_conversation_id_fkey FOREIGN KEY (conversation_id, tenant_id)
        REFERENCES conversations (id, tenant_id) ON DELETE SET NULL (conversation_id),
    CONSTRAINT help_requests_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE SET NULL (chat_log_id)
);
CREATE INDEX ON help_requests (tenant_id, status, created_at);
CREATE INDEX ON help_requests (tenant_id, account_id) WHERE answered_at IS NOT NULL AND seen_at IS NULL;
CREATE INDEX ON help_requests (conversation_id);
COMMENT ON TABLE help_requests IS 'Questions passed on to the people in charge, and their answers.';

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
    -- When its author deleted it: its texts are gone, and what it cost still counts for the month's budgets.
    deleted_at timestamptz,
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
