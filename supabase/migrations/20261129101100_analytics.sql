-- Figures of each day for the analytics page, kept so that it need not read every question: a year of half a million
-- questions is some hundred rows. A day is added up once it is over, and again after a row of it changed late; days that
-- are not added up are read from the questions themselves. Whole weeks are summed from their days, for long periods.

-- Days

-- Days whose figures are kept.
CREATE TABLE rolled_days (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    PRIMARY KEY (tenant_id, day)
);
COMMENT ON TABLE rolled_days IS 'Days whose figures are added up and still right. Days are of the tenant''s time zone.';

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
    people uuid[] NOT NULL,
    -- How many came to an end.
    ended bigint NOT NULL
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

-- What documents answered, in rows as of question_days: a manager who looks at one group reads days, not every question
-- of the year.
CREATE TABLE document_days (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    collection_id uuid,
    document_id uuid NOT NULL,
    questions bigint NOT NULL,
    last_asked_at timestamptz NOT NULL,
    rated bigint NOT NULL,
    helpful bigint NOT NULL,
    is_total boolean NOT NULL DEFAULT true,
    user_group text NOT NULL DEFAULT '',
    language text NOT NULL DEFAULT ''
);
CREATE INDEX document_days_parts ON document_days (tenant_id, day, is_total);

-- What was paid.
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

-- Weeks

-- A week, from Monday on, is summed once all its days are, and is right as long as they are.

CREATE TABLE rolled_weeks (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    PRIMARY KEY (tenant_id, day)
);
COMMENT ON TABLE rolled_weeks IS 'Mondays of the weeks whose figures are summed and still right.';

-- Each question is in three rows: of all, of its group and of its language (part: all, group, language). Where both are
-- asked for, days are read. Who asked is counted once a week.
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
    people uuid[] NOT NULL,
    -- How many came to an end.
    ended bigint NOT NULL
);
CREATE INDEX question_weeks_parts ON question_weeks (tenant_id, part, day);

-- The same for how long questions took.
CREATE TABLE question_time_weeks (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    part text NOT NULL,
    collection_id uuid,
    user_group text NOT NULL,
    language text NOT NULL,
    stage text NOT NULL,
    buckets integer[] NOT NULL,
    questions bigint[] NOT NULL
);
CREATE INDEX question_time_weeks_parts ON question_time_weeks (tenant_id, part, user_group, language, day);

-- The same for what documents answered.
CREATE TABLE document_weeks (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    part text NOT NULL,
    collection_id uuid,
    user_group text NOT NULL,
    language text NOT NULL,
    document_id uuid NOT NULL,
    questions bigint NOT NULL,
    last_asked_at timestamptz NOT NULL,
    rated bigint NOT NULL,
    helpful bigint NOT NULL
);
CREATE INDEX document_weeks_parts ON document_weeks (tenant_id, part, user_group, language, day);

-- The same for what was paid.
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

-- Which days are still right

-- Days that are over for an hour can be changed only late, and for two hours they are added up: a transaction that
-- began within its day has ended by then.
CREATE FUNCTION public.rag_day_start(p_hours_ago integer) RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN date_trunc('day', now() - p_hours_ago * interval '1 hour', public.rag_zone());

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
DECLARE
    zone text := public.rag_zone();
    day_start timestamptz := public.rag_day_start(1);
BEGIN
    PERFORM public.rag_forget_days(c.tenant_id, array_agg(DISTINCT (c.created_at AT TIME ZONE zone)::date))
    FROM changed c WHERE c.created_at < day_start GROUP BY c.tenant_id;
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
DECLARE
    zone text := public.rag_zone();
    day_start timestamptz := public.rag_day_start(1);
BEGIN
    PERFORM public.rag_forget_days(l.tenant_id, array_agg(DISTINCT (l.created_at AT TIME ZONE zone)::date))
    FROM changed c JOIN public.chat_logs l ON l.id = c.chat_log_id
    WHERE l.created_at < day_start GROUP BY l.tenant_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER days_added AFTER INSERT ON feedback REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_rated();
CREATE TRIGGER days_changed AFTER UPDATE ON feedback REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_rated();
CREATE TRIGGER days_removed AFTER DELETE ON feedback REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION days_rated();

-- Of another zone all days are others: none that is added up is right any more.
CREATE FUNCTION public.zone_changed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('days ' || NEW.id, 0));
    DELETE FROM public.rolled_days WHERE tenant_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER zone_changed AFTER UPDATE ON tenants FOR EACH ROW
    WHEN (OLD.settings ->> 'time_zone' IS DISTINCT FROM NEW.settings ->> 'time_zone')
    EXECUTE FUNCTION zone_changed();

-- A day that is no longer right takes its week with it.
CREATE FUNCTION public.weeks_changed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.rolled_weeks w USING removed r
    WHERE w.tenant_id = r.tenant_id AND w.day = date_trunc('week', r.day::timestamp)::date;
    RETURN NULL;
END
$$;
CREATE TRIGGER weeks_changed AFTER DELETE ON rolled_days REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION weeks_changed();

-- Adding up a span of time, in one place: whole days are stored with it, and what is not stored is read by it. The page asks
-- the functions below it, which take each day from where it is.
--
-- These functions have a plan of their own, made once: as part of the statements that read both, it was planned again with
-- every one of them, which took longer than reading the sums.

CREATE FUNCTION public.rag_count_questions(
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
           count(*), count(*) FILTER (WHERE l.is_answered), count(*) FILTER (WHERE l.is_perhaps),
           count(*) FILTER (WHERE l.is_not_found), count(*) FILTER (WHERE l.is_small_talk),
           count(*) FILTER (WHERE l.is_asked_back), count(*) FILTER (WHERE l.is_refused),
           count(*) FILTER (WHERE l.is_stopped), count(*) FILTER (WHERE l.is_failed),
           coalesce(sum(f.rated), 0)::bigint, coalesce(sum(f.helpful), 0)::bigint,
           coalesce(array_agg(DISTINCT l.account_id) FILTER (WHERE l.account_id IS NOT NULL), '{}'),
           count(*) FILTER (WHERE l.is_ended)
    FROM public.question_outcomes l
    LEFT JOIN LATERAL (
        SELECT count(*) AS rated, count(*) FILTER (WHERE rating = 1) AS helpful
        FROM public.feedback WHERE chat_log_id = l.id
    ) f ON true
    WHERE public.rag_is_asked(
        l.log, 'question', p_start, p_end, p_document_id, p_user_group, p_collection_id, p_language)
    GROUP BY 1, 2, 3, 4, 5, 6;
END
$$;

CREATE FUNCTION public.rag_count_times(
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
        FROM public.question_outcomes l
        CROSS JOIN LATERAL (VALUES
            ('whole', l.whole_ms), ('first', l.first_ms),
            ('translation', nullif(l.translation_ms, 0)), ('embedding', nullif(l.embedding_ms, 0)),
            ('search', nullif(l.search_ms, 0)), ('reranking', nullif(l.reranking_ms, 0)),
            ('model', nullif(l.model_ms, 0))
        ) AS taken(stage, ms)
        WHERE taken.ms IS NOT NULL AND public.rag_is_asked(
            l.log, 'question', p_start, p_end, p_document_id, p_user_group, p_collection_id, p_language)
        GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) t
    GROUP BY 1, 2, 3, 4, 5, 6, 7;
END
$$;

-- Each question is in two rows: by group and language, and with all groups and languages together (is_total).
CREATE FUNCTION public.rag_count_documents(
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

-- A paid call belongs to the document it processed or to the question it was made for.
CREATE FUNCTION public.rag_count_costs(
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

-- Reading a period

-- Which rows of a week these filters mean; null where only days have them.
CREATE FUNCTION public.rag_part(p_user_group text, p_language text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN p_user_group IS NULL AND p_language IS NULL THEN 'all'
                WHEN p_language IS NULL THEN 'group' WHEN p_user_group IS NULL THEN 'language' END;

-- Which rows of a week are meant where figures are wanted by group, by language or by collection (p_by).
CREATE FUNCTION public.rag_part_by(p_by text, p_user_group text, p_language text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN public.rag_part(CASE WHEN p_by = 'group' THEN '' ELSE p_user_group END,
                           CASE WHEN p_by = 'language' THEN '' ELSE p_language END);

-- Days of a period that are not in a whole week of it that is summed; all of them where weeks are not wanted.
CREATE FUNCTION public.rag_single_days(p_first date, p_last date, p_in_weeks boolean)
RETURNS SETOF date LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT d.day::date FROM generate_series(p_first::timestamp, p_last::timestamp, interval '1 day') AS d(day)
    WHERE NOT (p_in_weeks AND EXISTS (
        SELECT FROM public.rolled_weeks w
        WHERE w.tenant_id = (SELECT public.rag_tenant()) AND w.day = date_trunc('week', d.day)::date
          AND w.day >= p_first AND w.day + 6 <= p_last));
END;

-- Days of a period that have to be read from the rows, those that follow each other together; all of them for one document.
CREATE FUNCTION public.rag_raw_days(p_first date, p_last date, p_document_id uuid)
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

-- p_by: figures are wanted by group or by language, and a row has to be of one. p_in_weeks: whole weeks are one row, on
-- their Monday.
CREATE FUNCTION public.rag_question_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text,
    p_by text DEFAULT NULL, p_in_weeks boolean DEFAULT false
) RETURNS SETOF public.question_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.tenant_id, q.day, q.part = 'all', q.collection_id, q.user_group, q.language, q.questions, q.answered,
           q.perhaps, q.no_context, q.small_talk, q.asked_back, q.refused, q.stopped, q.failed, q.rated, q.helpful,
           q.people, q.ended
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

CREATE FUNCTION public.rag_time_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text,
    p_in_weeks boolean DEFAULT false
) RETURNS SETOF public.question_time_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.tenant_id, q.day, q.part = 'all', q.collection_id, q.user_group, q.language, q.stage, q.buckets, q.questions
    FROM public.question_time_weeks q
    JOIN public.rolled_weeks r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_in_weeks AND p_document_id IS NULL AND q.day BETWEEN p_first AND p_last - 6
      AND q.part = public.rag_part(p_user_group, p_language)
      AND q.user_group = coalesce(p_user_group, '') AND q.language = coalesce(p_language, '')
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT q.* FROM public.question_time_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND q.day = ANY (ARRAY(SELECT public.rag_single_days(
            p_first, p_last, p_in_weeks AND public.rag_part(p_user_group, p_language) IS NOT NULL)))
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
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text,
    p_in_weeks boolean DEFAULT false
) RETURNS SETOF public.document_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.tenant_id, q.day, q.collection_id, q.document_id, q.questions, q.last_asked_at, q.rated, q.helpful,
           q.part = 'all', q.user_group, q.language
    FROM public.document_weeks q
    JOIN public.rolled_weeks r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_in_weeks AND p_document_id IS NULL AND q.day BETWEEN p_first AND p_last - 6
      AND q.part = public.rag_part(p_user_group, p_language)
      AND q.user_group = coalesce(p_user_group, '') AND q.language = coalesce(p_language, '')
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT q.* FROM public.document_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND q.day = ANY (ARRAY(SELECT public.rag_single_days(
            p_first, p_last, p_in_weeks AND public.rag_part(p_user_group, p_language) IS NOT NULL)))
      AND q.is_total = (p_user_group IS NULL AND p_language IS NULL)
      AND (p_user_group IS NULL OR q.user_group = p_user_group)
      AND (p_language IS NULL OR q.language = p_language)
      AND (p_collection_id IS NULL OR q.collection_id = p_collection_id)
    UNION ALL
    SELECT c.* FROM public.rag_raw_days(p_first, p_last, p_document_id) d
    CROSS JOIN LATERAL public.rag_count_documents(
        d.starts_at, d.ends_at, p_user_group IS NULL AND p_language IS NULL, p_document_id, p_user_group,
        p_collection_id, p_language) c;
END;

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
