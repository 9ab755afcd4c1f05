-- Days, weeks and months are those of the company: a budget of November ends at midnight where its people are. The zone
-- is a setting of the tenant, `time_zone`; without one days are UTC.

CREATE FUNCTION public.rag_zone() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce((SELECT settings ->> 'time_zone' FROM public.tenants WHERE id = public.rag_tenant()), 'UTC');
COMMENT ON FUNCTION public.rag_zone() IS 'The time zone of the tenant''s days.';
COMMENT ON TABLE rolled_days IS 'Days whose figures are added up and still right. Days are of the tenant''s time zone.';

CREATE OR REPLACE FUNCTION public.rag_day_start(p_hours_ago integer) RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN date_trunc('day', now() - p_hours_ago * interval '1 hour', public.rag_zone());

CREATE OR REPLACE FUNCTION public.days_changed() RETURNS trigger
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

CREATE OR REPLACE FUNCTION public.days_rated() RETURNS trigger
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

CREATE OR REPLACE FUNCTION public.rag_count_questions(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.question_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
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
END;

CREATE OR REPLACE FUNCTION public.rag_count_times(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.question_time_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
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
END;

CREATE OR REPLACE FUNCTION public.rag_count_documents(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.document_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
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
END;

CREATE OR REPLACE FUNCTION public.rag_count_costs(
    p_start timestamptz, p_end timestamptz, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text
) RETURNS SETOF public.cost_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
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
END;

CREATE OR REPLACE FUNCTION public.rag_raw_days(p_first date, p_last date, p_document_id uuid)
RETURNS TABLE (starts_at timestamptz, ends_at timestamptz) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT d.day AT TIME ZONE (SELECT public.rag_zone()),
           (d.day + interval '1 day') AT TIME ZONE (SELECT public.rag_zone())
    FROM generate_series(p_first::timestamp, p_last::timestamp, interval '1 day') AS d(day)
    WHERE p_document_id IS NULL AND NOT EXISTS (SELECT FROM public.rolled_days r WHERE r.day = d.day::date)
    UNION ALL
    SELECT p_first::timestamp AT TIME ZONE (SELECT public.rag_zone()),
           (p_last + 1)::timestamp AT TIME ZONE (SELECT public.rag_zone())
    WHERE p_document_id IS NOT NULL;
END;

SELECT rag_close_rest_api();
