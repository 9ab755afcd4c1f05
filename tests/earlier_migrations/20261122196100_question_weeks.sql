-- Long periods are read from sums of weeks for questions and costs as well, where a day has a row for each group and
-- language; who asked is counted once a week there. What is not added up is read by functions with a plan of their own,
-- made once: as part of the statements that read both, it was planned again with every one of them, which took longer than
-- reading the sums. Questions of a group or a language are chosen in the index, without reading those of others.

CREATE OR REPLACE FUNCTION public.rag_count_questions(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.question_days LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 20
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT l.tenant_id, (l.created_at AT TIME ZONE (SELECT public.rag_zone()))::date AS day, p_is_total,
           l.collection_id,
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
END
$$;

CREATE OR REPLACE FUNCTION public.rag_count_times(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.question_time_days LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 150
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT t.tenant_id, t.day, p_is_total, t.collection_id, t.user_group, t.language, t.stage,
           array_agg(t.bucket ORDER BY t.bucket), array_agg(t.questions ORDER BY t.bucket)
    FROM (
        SELECT l.tenant_id, (l.created_at AT TIME ZONE (SELECT public.rag_zone()))::date AS day, l.collection_id,
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
END
$$;

CREATE OR REPLACE FUNCTION public.rag_count_documents(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.document_days LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 200
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT u.tenant_id, (u.created_at AT TIME ZONE (SELECT public.rag_zone()))::date AS day, u.collection_id,
           u.document_id, count(*), max(u.created_at), coalesce(sum(f.rated), 0)::bigint,
           coalesce(sum(f.helpful), 0)::bigint, p_is_total, u.user_group, u.language
    FROM (
        SELECT DISTINCT l.id, l.tenant_id, l.created_at, l.collection_id, used.document_id,
               CASE WHEN p_is_total THEN '' ELSE l.user_group END AS user_group,
               CASE WHEN p_is_total THEN '' ELSE l.language END AS language
        FROM public.chat_logs l, unnest(l.document_ids) AS used(document_id)
        WHERE public.rag_is_asked(
            l, 'question', p_start, p_end, p_document_id, p_user_group, p_collection_id, p_language)
    ) u
    LEFT JOIN LATERAL (
        SELECT count(*) AS rated, count(*) FILTER (WHERE rating = 1) AS helpful
        FROM public.feedback WHERE chat_log_id = u.id
    ) f ON true
    GROUP BY u.tenant_id, 2, u.collection_id, u.document_id, u.user_group, u.language;
END
$$;

CREATE OR REPLACE FUNCTION public.rag_count_costs(
    p_start timestamptz, p_end timestamptz, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text
) RETURNS SETOF public.cost_days LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 50
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT c.tenant_id, (c.created_at AT TIME ZONE (SELECT public.rag_zone()))::date AS day, c.collection_id,
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
END
$$;

-- Days of a period that have to be read from the rows, those that follow each other together; all of them for one document.
CREATE OR REPLACE FUNCTION public.rag_raw_days(p_first date, p_last date, p_document_id uuid)
RETURNS TABLE (starts_at timestamptz, ends_at timestamptz) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT min(d.day) AT TIME ZONE (SELECT public.rag_zone()),
           (max(d.day) + interval '1 day') AT TIME ZONE (SELECT public.rag_zone())
    FROM (
        SELECT d.day, d.day - row_number() OVER (ORDER BY d.day) * interval '1 day' AS run
        FROM generate_series(p_first::timestamp, p_last::timestamp, interval '1 day') AS d(day)
        WHERE p_document_id IS NULL AND NOT EXISTS (SELECT FROM public.rolled_days r WHERE r.day = d.day::date)
    ) d
    GROUP BY d.run
    UNION ALL
    SELECT p_first::timestamp AT TIME ZONE (SELECT public.rag_zone()),
           (p_last + 1)::timestamp AT TIME ZONE (SELECT public.rag_zone())
    WHERE p_document_id IS NOT NULL;
END;

-- Each question is in three rows: of all, of its group and of its language (part: all, group, language). Where both are
-- asked for, days are read.
CREATE TABLE question_weeks (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    part text NOT NULL,
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
    people uuid[] NOT NULL
);
CREATE INDEX question_weeks_parts ON question_weeks (tenant_id, part, day);

CREATE TABLE cost_weeks (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    part text NOT NULL,
    collection_id uuid,
    user_group text NOT NULL,
    language text NOT NULL,
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
CREATE INDEX cost_weeks_parts ON cost_weeks (tenant_id, part, day);

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['question_weeks', 'cost_weeks'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                       'OR collection_id IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
        EXECUTE format('GRANT SELECT, INSERT, DELETE ON %I TO rag_app', t);
    END LOOP;
END
$$;
-- The weeks that are there have neither of them yet; they are summed again when somebody looks.
TRUNCATE rolled_weeks;

-- Which rows of a week are meant where figures are wanted by group, by language or by collection (p_by).
CREATE FUNCTION public.rag_part_by(p_by text, p_user_group text, p_language text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN public.rag_part(CASE WHEN p_by = 'group' THEN '' ELSE p_user_group END,
                           CASE WHEN p_by = 'language' THEN '' ELSE p_language END);

-- p_by: figures are wanted by group or by language, and a row has to be of one. p_in_weeks: whole weeks are one row, on
-- their Monday.
DROP FUNCTION public.rag_question_days;
CREATE FUNCTION public.rag_question_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text,
    p_by text DEFAULT NULL, p_in_weeks boolean DEFAULT false
) RETURNS SETOF public.question_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.tenant_id, q.day, q.part = 'all', q.collection_id, q.user_group, q.language, q.questions, q.answered,
           q.perhaps, q.no_context, q.small_talk, q.asked_back, q.refused, q.stopped, q.failed, q.rated, q.helpful,
           q.people
    FROM public.question_weeks q
    JOIN public.rolled_weeks r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_in_weeks AND p_document_id IS NULL AND q.day BETWEEN p_first AND p_last - 6
      AND q.part = public.rag_part_by(p_by, p_user_group, p_language)
      AND (p_user_group IS NULL OR q.user_group = p_user_group)
      AND (p_language IS NULL OR q.language = p_language)
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT q.* FROM public.question_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND q.day = ANY (ARRAY(SELECT public.rag_single_days(
            p_first, p_last, p_in_weeks AND public.rag_part_by(p_by, p_user_group, p_language) IS NOT NULL)))
      AND q.is_total = (public.rag_part_by(p_by, p_user_group, p_language) IS NOT DISTINCT FROM 'all')
      AND (p_user_group IS NULL OR q.user_group = p_user_group)
      AND (p_language IS NULL OR q.language = p_language)
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT c.* FROM public.rag_raw_days(p_first, p_last, p_document_id) d
    CROSS JOIN LATERAL public.rag_count_questions(
        d.starts_at, d.ends_at, public.rag_part_by(p_by, p_user_group, p_language) IS NOT DISTINCT FROM 'all',
        p_document_id, p_user_group, p_collection_id, p_language) c;
END;

DROP FUNCTION public.rag_cost_days;
CREATE FUNCTION public.rag_cost_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text,
    p_by text DEFAULT NULL, p_in_weeks boolean DEFAULT false
) RETURNS SETOF public.cost_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.tenant_id, q.day, q.collection_id, q.user_group, q.language, q.purpose, q.operation, q.provider, q.model,
           q.calls, q.unpriced_calls, q.cost, q.input_tokens, q.cached_input_tokens, q.output_tokens, q.search_units,
           q.pages
    FROM public.cost_weeks q
    JOIN public.rolled_weeks r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_in_weeks AND p_document_id IS NULL AND q.day BETWEEN p_first AND p_last - 6
      AND q.part = public.rag_part_by(p_by, p_user_group, p_language)
      -- A group or a language names questions: what documents cost belongs to neither.
      AND (p_user_group IS NULL OR q.purpose NOT IN ('document', 'other') AND q.user_group = p_user_group)
      AND (p_language IS NULL OR q.purpose NOT IN ('document', 'other') AND q.language = p_language)
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT q.* FROM public.cost_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND q.day = ANY (ARRAY(SELECT public.rag_single_days(
            p_first, p_last, p_in_weeks AND public.rag_part_by(p_by, p_user_group, p_language) IS NOT NULL)))
      AND (p_user_group IS NULL OR q.purpose NOT IN ('document', 'other') AND q.user_group = p_user_group)
      AND (p_language IS NULL OR q.purpose NOT IN ('document', 'other') AND q.language = p_language)
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT c.* FROM public.rag_raw_days(p_first, p_last, p_document_id) d
    CROSS JOIN LATERAL public.rag_count_costs(
        d.starts_at, d.ends_at, p_document_id, p_user_group, p_collection_id, p_language) c;
END;

-- The filters of the page, after the time: of others no question is read.
CREATE INDEX chat_logs_of_period ON chat_logs (tenant_id, created_at DESC, user_group, language, collection_id);
DROP INDEX chat_logs_tenant_id_created_at_idx;

SELECT rag_close_rest_api();
