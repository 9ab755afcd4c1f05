-- Figures of each day for the analytics page, kept so that it need not read every question: a year of half a million
-- questions is some hundred rows. A day is added up once it is over, and again after a row of it changed late; days that
-- are not added up are read from the questions themselves.

ALTER TABLE chat_logs NO FORCE ROW LEVEL SECURITY;
ALTER TABLE messages NO FORCE ROW LEVEL SECURITY;

-- A reply is answered when a source that it names holds: not where it names none, or where no sentence is on its page.
UPDATE chat_logs l
SET outcome = 'perhaps'
WHERE l.kind = 'question' AND l.outcome = 'answered'
  AND (l.answer !~ '\[\d+\]' OR EXISTS (
        SELECT FROM messages m WHERE m.chat_log_id = l.id AND m.role = 'assistant'
        AND jsonb_typeof(m.citations) = 'array' AND NOT EXISTS (
            SELECT FROM jsonb_array_elements(m.citations) AS c
            WHERE coalesce(c ->> 'kind', 'cited') = 'cited' AND coalesce(c ->> 'is_supported', 'true') = 'true')));

-- What a question's stages took, beside the JSON, which is long and stored apart.
CREATE FUNCTION public.rag_ms(details jsonb, field text) RETURNS real LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(details -> 'timing' -> field) = 'number'
           THEN (details -> 'timing' ->> field)::numeric::real END;
ALTER TABLE chat_logs
    ADD COLUMN translation_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'translationMs')) STORED,
    ADD COLUMN embedding_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'embeddingMs')) STORED,
    ADD COLUMN search_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'searchMs')) STORED,
    ADD COLUMN reranking_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'rerankingMs')) STORED,
    ADD COLUMN model_ms real GENERATED ALWAYS AS (public.rag_ms(rag_details, 'openaiMs')) STORED;

-- Questions of an evaluation are logged with everything, and are no question of a person.
ALTER TABLE chat_logs DROP CONSTRAINT chat_logs_kind_check;
ALTER TABLE chat_logs ADD CONSTRAINT chat_logs_kind_check CHECK (kind IN ('question', 'search', 'evaluation'));
CREATE INDEX chat_logs_documents ON chat_logs USING gin (document_ids);

ALTER TABLE chat_logs FORCE ROW LEVEL SECURITY;
ALTER TABLE messages FORCE ROW LEVEL SECURITY;

-- The days, and what they hold

CREATE TABLE rolled_days (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    PRIMARY KEY (tenant_id, day)
);
COMMENT ON TABLE rolled_days IS 'Days whose figures are added up and still right. Days are of UTC.';

-- Each question is in two rows: by group and language, and with all groups and languages together (is_total).
CREATE TABLE question_days (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    is_total boolean NOT NULL,
    collection_id uuid,
    user_group text NOT NULL,
    language text NOT NULL,
    questions bigint NOT NULL,
    answered bigint NOT NULL,
    perhaps bigint NOT NULL,
    no_context bigint NOT NULL,
    small_talk bigint NOT NULL,
    asked_back bigint NOT NULL,
    refused bigint NOT NULL,
    stopped bigint NOT NULL,
    failed bigint NOT NULL,
    rated bigint NOT NULL,
    helpful bigint NOT NULL,
    -- Who asked, so that people are counted once over many days.
    people uuid[] NOT NULL
);
CREATE INDEX ON question_days (tenant_id, day, is_total);

-- How long questions took, by stage, as a histogram: bucket b is exp(b / 50) ms, one percent around.
CREATE TABLE question_time_days (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    is_total boolean NOT NULL,
    collection_id uuid,
    user_group text NOT NULL,
    language text NOT NULL,
    stage text NOT NULL,
    buckets integer[] NOT NULL,
    questions bigint[] NOT NULL
);
CREATE INDEX ON question_time_days (tenant_id, day, is_total);

CREATE TABLE document_days (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    collection_id uuid,
    document_id uuid NOT NULL,
    questions bigint NOT NULL,
    last_asked_at timestamptz NOT NULL,
    rated bigint NOT NULL,
    helpful bigint NOT NULL
);
CREATE INDEX ON document_days (tenant_id, day);

CREATE TABLE cost_days (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    collection_id uuid,
    user_group text NOT NULL,
    language text NOT NULL,
    -- What was paid for: question, search, evaluation, document or other.
    purpose text NOT NULL,
    operation text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    calls bigint NOT NULL,
    unpriced_calls bigint NOT NULL,
    cost numeric,
    input_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    search_units bigint NOT NULL,
    pages bigint NOT NULL
);
CREATE INDEX ON cost_days (tenant_id, day);

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['rolled_days', 'question_days', 'question_time_days', 'document_days', 'cost_days'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, DELETE ON %I TO rag_app', t);
        IF t <> 'rolled_days' THEN
            EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                           'OR collection_id IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
        END IF;
    END LOOP;
END
$$;

-- Which days are still right

-- Days that are over for an hour can be changed only late, and for two hours they are added up: a transaction that
-- began within its day has ended by then.
CREATE FUNCTION public.rag_day_start(p_hours_ago integer) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    RETURN date_trunc('day', (now() - p_hours_ago * interval '1 hour') AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';

-- Waits for whoever adds up the tenant's days, and has them wait, so that no change falls between.
CREATE FUNCTION public.rag_forget_days(p_tenant_id text, p_days date[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('days ' || p_tenant_id, 0));
    DELETE FROM public.rolled_days WHERE tenant_id = p_tenant_id AND day = ANY (p_days);
END
$$;

CREATE FUNCTION public.days_changed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.rag_forget_days(c.tenant_id, array_agg(DISTINCT (c.created_at AT TIME ZONE 'UTC')::date))
    FROM changed c WHERE c.created_at < public.rag_day_start(1) GROUP BY c.tenant_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER days_added AFTER INSERT ON chat_logs REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_changed();
CREATE TRIGGER days_changed AFTER UPDATE ON chat_logs REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_changed();
CREATE TRIGGER days_removed AFTER DELETE ON chat_logs REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_changed();
CREATE TRIGGER days_added AFTER INSERT ON cost_ledger REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_changed();
CREATE TRIGGER days_changed AFTER UPDATE ON cost_ledger REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_changed();

-- A rating counts on the day of its question.
CREATE FUNCTION public.days_rated() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM public.rag_forget_days(l.tenant_id, array_agg(DISTINCT (l.created_at AT TIME ZONE 'UTC')::date))
    FROM changed c JOIN public.chat_logs l ON l.id = c.chat_log_id
    WHERE l.created_at < public.rag_day_start(1) GROUP BY l.tenant_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER days_added AFTER INSERT ON feedback REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_rated();
CREATE TRIGGER days_changed AFTER UPDATE ON feedback REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_rated();
CREATE TRIGGER days_removed AFTER DELETE ON feedback REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_rated();

-- Adding up a span of time, in one place: whole days are stored with it, and what is not stored is read by it. The page
-- asks the functions below it, which take each day from where it is.

DROP FUNCTION public.rag_is_asked;
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

CREATE FUNCTION public.rag_count_questions(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.question_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT l.tenant_id, (l.created_at AT TIME ZONE 'UTC')::date AS day, p_is_total, l.collection_id,
           CASE WHEN p_is_total THEN '' ELSE l.user_group END AS user_group,
           CASE WHEN p_is_total THEN '' ELSE l.language END AS language,
           count(*), count(*) FILTER (WHERE l.outcome = 'answered'), count(*) FILTER (WHERE l.outcome = 'perhaps'),
           count(*) FILTER (WHERE l.outcome = 'no_context'), count(*) FILTER (WHERE l.outcome = 'small_talk'),
           count(*) FILTER (WHERE l.outcome = 'asked_back'), count(*) FILTER (WHERE l.outcome = 'refused'),
           count(*) FILTER (WHERE l.outcome = 'stopped'), count(*) FILTER (WHERE l.outcome = 'failed'),
           coalesce(sum(f.rated), 0)::bigint, coalesce(sum(f.helpful), 0)::bigint,
           coalesce(array_agg(DISTINCT l.account_id) FILTER (WHERE l.account_id IS NOT NULL), '{}')
    FROM public.chat_logs l
    LEFT JOIN LATERAL (
        SELECT count(*) AS rated, count(*) FILTER (WHERE rating = 1) AS helpful
        FROM public.feedback WHERE chat_log_id = l.id
    ) f ON true
    WHERE public.rag_is_asked(l, 'question', p_start, p_end, p_document_id, p_user_group, p_collection_id, p_language)
    GROUP BY 1, 2, 3, 4, 5, 6;
END;

CREATE FUNCTION public.rag_count_times(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.question_time_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT t.tenant_id, t.day, p_is_total, t.collection_id, t.user_group, t.language, t.stage,
           array_agg(t.bucket ORDER BY t.bucket), array_agg(t.questions ORDER BY t.bucket)
    FROM (
        SELECT l.tenant_id, (l.created_at AT TIME ZONE 'UTC')::date AS day, l.collection_id,
               CASE WHEN p_is_total THEN '' ELSE l.user_group END AS user_group,
               CASE WHEN p_is_total THEN '' ELSE l.language END AS language,
               taken.stage, round(50 * ln(greatest(taken.ms, 1)))::integer AS bucket, count(*) AS questions
        FROM public.chat_logs l
        -- Small talk, and what was asked back, take a few milliseconds, which is not an answer's time.
        CROSS JOIN LATERAL (VALUES
            ('whole', CASE WHEN l.outcome NOT IN ('small_talk', 'asked_back') THEN l.total_ms::float8 END),
            ('first', CASE WHEN l.outcome NOT IN ('small_talk', 'asked_back') THEN l.first_token_ms::float8 END),
            ('translation', nullif(l.translation_ms, 0)), ('embedding', nullif(l.embedding_ms, 0)),
            ('search', nullif(l.search_ms, 0)), ('reranking', nullif(l.reranking_ms, 0)),
            ('model', nullif(l.model_ms, 0))
        ) AS taken(stage, ms)
        WHERE taken.ms IS NOT NULL AND public.rag_is_asked(
            l, 'question', p_start, p_end, p_document_id, p_user_group, p_collection_id, p_language)
        GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) t
    GROUP BY 1, 2, 3, 4, 5, 6, 7;
END;

CREATE FUNCTION public.rag_count_documents(
    p_start timestamptz, p_end timestamptz, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text
) RETURNS SETOF public.document_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT u.tenant_id, (u.created_at AT TIME ZONE 'UTC')::date AS day, u.collection_id, u.document_id, count(*),
           max(u.created_at), coalesce(sum(f.rated), 0)::bigint, coalesce(sum(f.helpful), 0)::bigint
    FROM (
        SELECT DISTINCT l.id, l.tenant_id, l.created_at, l.collection_id, used.document_id
        FROM public.chat_logs l, unnest(l.document_ids) AS used(document_id)
        WHERE public.rag_is_asked(
            l, 'question', p_start, p_end, p_document_id, p_user_group, p_collection_id, p_language)
    ) u
    LEFT JOIN LATERAL (
        SELECT count(*) AS rated, count(*) FILTER (WHERE rating = 1) AS helpful
        FROM public.feedback WHERE chat_log_id = u.id
    ) f ON true
    GROUP BY 1, 2, 3, 4;
END;

-- A paid call belongs to the document it processed or to the question it was made for.
DROP FUNCTION public.rag_costs;
CREATE FUNCTION public.rag_count_costs(
    p_start timestamptz, p_end timestamptz, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text
) RETURNS SETOF public.cost_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT c.tenant_id, (c.created_at AT TIME ZONE 'UTC')::date AS day, c.collection_id,
           coalesce(l.user_group, '') AS user_group, coalesce(l.language, '') AS language,
           CASE WHEN l.id IS NOT NULL THEN l.kind WHEN c.document_id IS NOT NULL THEN 'document' ELSE 'other' END
               AS purpose,
           c.operation, c.provider, c.model, count(*), count(*) FILTER (WHERE c.cost IS NULL), sum(c.cost),
           sum(c.input_tokens)::bigint, sum(c.cached_input_tokens)::bigint, sum(c.output_tokens)::bigint,
           sum(c.search_units)::bigint, sum(c.pages)::bigint
    FROM public.cost_ledger c
    LEFT JOIN public.chat_logs l ON l.id = c.chat_log_id
    WHERE c.created_at >= p_start AND c.created_at < p_end
      AND (p_document_id IS NULL OR c.document_id = p_document_id OR l.document_ids @> ARRAY[p_document_id])
      AND (p_user_group IS NULL OR l.user_group = p_user_group)
      AND (p_collection_id IS NULL OR c.collection_id = p_collection_id)
      AND (p_language IS NULL OR l.language = p_language)
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;
END;

-- Days of a period that have to be read from the rows: those not added up, and all of them for one document.
CREATE FUNCTION public.rag_raw_days(p_first date, p_last date, p_document_id uuid)
RETURNS TABLE (starts_at timestamptz, ends_at timestamptz) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT d.day AT TIME ZONE 'UTC', (d.day + interval '1 day') AT TIME ZONE 'UTC'
    FROM generate_series(p_first::timestamp, p_last::timestamp, interval '1 day') AS d(day)
    WHERE p_document_id IS NULL AND NOT EXISTS (SELECT FROM public.rolled_days r WHERE r.day = d.day::date)
    UNION ALL
    SELECT p_first::timestamp AT TIME ZONE 'UTC', (p_last + 1)::timestamp AT TIME ZONE 'UTC'
    WHERE p_document_id IS NOT NULL;
END;

-- p_in_parts: by group and language also where neither is asked for.
CREATE FUNCTION public.rag_question_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text,
    p_in_parts boolean DEFAULT false
) RETURNS SETOF public.question_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.* FROM public.question_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND q.day BETWEEN p_first AND p_last
      AND q.is_total = (NOT p_in_parts AND p_user_group IS NULL AND p_language IS NULL)
      AND (p_user_group IS NULL OR q.user_group = p_user_group)
      AND (p_language IS NULL OR q.language = p_language)
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT c.* FROM public.rag_raw_days(p_first, p_last, p_document_id) d
    CROSS JOIN LATERAL public.rag_count_questions(
        d.starts_at, d.ends_at, NOT p_in_parts AND p_user_group IS NULL AND p_language IS NULL, p_document_id,
        p_user_group, p_collection_id, p_language) c;
END;

CREATE FUNCTION public.rag_time_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text
) RETURNS SETOF public.question_time_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.* FROM public.question_time_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND q.day BETWEEN p_first AND p_last
      AND q.is_total = (p_user_group IS NULL AND p_language IS NULL)
      AND (p_user_group IS NULL OR q.user_group = p_user_group)
      AND (p_language IS NULL OR q.language = p_language)
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT c.* FROM public.rag_raw_days(p_first, p_last, p_document_id) d
    CROSS JOIN LATERAL public.rag_count_times(
        d.starts_at, d.ends_at, p_user_group IS NULL AND p_language IS NULL, p_document_id, p_user_group,
        p_collection_id, p_language) c;
END;

CREATE FUNCTION public.rag_document_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text
) RETURNS SETOF public.document_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.* FROM public.document_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND p_user_group IS NULL AND p_language IS NULL AND q.day BETWEEN p_first AND p_last
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT c.* FROM public.rag_raw_days(p_first, p_last, p_document_id) d
    CROSS JOIN LATERAL public.rag_count_documents(
        d.starts_at, d.ends_at, p_document_id, p_user_group, p_collection_id, p_language) c
    WHERE p_document_id IS NOT NULL OR (p_user_group IS NULL AND p_language IS NULL)
    UNION ALL
    -- Documents are not kept by group and language.
    SELECT c.* FROM public.rag_count_documents(
        p_first::timestamp AT TIME ZONE 'UTC', (p_last + 1)::timestamp AT TIME ZONE 'UTC', NULL, p_user_group,
        p_collection_id, p_language) c
    WHERE p_document_id IS NULL AND (p_user_group IS NOT NULL OR p_language IS NOT NULL);
END;

CREATE FUNCTION public.rag_cost_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text
) RETURNS SETOF public.cost_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.* FROM public.cost_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND q.day BETWEEN p_first AND p_last
      -- A group or a language names questions: what documents cost belongs to neither.
      AND (p_user_group IS NULL OR q.purpose NOT IN ('document', 'other') AND q.user_group = p_user_group)
      AND (p_language IS NULL OR q.purpose NOT IN ('document', 'other') AND q.language = p_language)
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT c.* FROM public.rag_raw_days(p_first, p_last, p_document_id) d
    CROSS JOIN LATERAL public.rag_count_costs(
        d.starts_at, d.ends_at, p_document_id, p_user_group, p_collection_id, p_language) c;
END;

SELECT rag_close_rest_api();
