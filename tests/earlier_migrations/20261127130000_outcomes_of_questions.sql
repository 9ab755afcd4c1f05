-- How each question ended, in one view: what counts as answered, as come to an end, and as a gap. Sums of days and weeks
-- keep how many came to an end, and times are read from the same rows.

-- Copies of an outcome ask this; questions are read from the view.
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

GRANT SELECT ON question_outcomes TO rag_app;

-- Row-level security binds the owner, too.
ALTER TABLE question_days NO FORCE ROW LEVEL SECURITY;
ALTER TABLE question_weeks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE question_days ADD COLUMN ended bigint NOT NULL DEFAULT 0;
ALTER TABLE question_weeks ADD COLUMN ended bigint NOT NULL DEFAULT 0;
UPDATE question_days SET ended = answered + perhaps + no_context + refused + stopped + failed;
UPDATE question_weeks SET ended = answered + perhaps + no_context + refused + stopped + failed;
ALTER TABLE question_days ALTER COLUMN ended DROP DEFAULT;
ALTER TABLE question_weeks ALTER COLUMN ended DROP DEFAULT;
ALTER TABLE question_days FORCE ROW LEVEL SECURITY;
ALTER TABLE question_weeks FORCE ROW LEVEL SECURITY;

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

CREATE OR REPLACE FUNCTION public.rag_question_days(
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

SELECT rag_close_rest_api();
