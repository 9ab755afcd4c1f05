-- Documents of a day by group and language too, as questions are: a manager who looks at one group reads days, not every
-- question of the year. Days that were added up before are added up again, from the newest on.

DROP FUNCTION public.rag_document_days;
DROP FUNCTION public.rag_count_documents;
ALTER TABLE document_days
    ADD COLUMN is_total boolean NOT NULL DEFAULT true,
    ADD COLUMN user_group text NOT NULL DEFAULT '',
    ADD COLUMN language text NOT NULL DEFAULT '';
DROP INDEX document_days_tenant_id_day_idx;
CREATE INDEX document_days_parts ON document_days (tenant_id, day, is_total);

-- Each question is in two rows: by group and language, and with all groups and languages together (is_total).
CREATE FUNCTION public.rag_count_documents(
    p_start timestamptz, p_end timestamptz, p_is_total boolean, p_document_id uuid, p_user_group text,
    p_collection_id uuid, p_language text
) RETURNS SETOF public.document_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT u.tenant_id, (u.created_at AT TIME ZONE 'UTC')::date AS day, u.collection_id, u.document_id, count(*),
           max(u.created_at), coalesce(sum(f.rated), 0)::bigint, coalesce(sum(f.helpful), 0)::bigint, p_is_total,
           u.user_group, u.language
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

CREATE FUNCTION public.rag_document_days(
    p_first date, p_last date, p_document_id uuid, p_user_group text, p_collection_id uuid, p_language text
) RETURNS SETOF public.document_days LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.* FROM public.document_days q
    JOIN public.rolled_days r ON r.tenant_id = q.tenant_id AND r.day = q.day
    WHERE p_document_id IS NULL AND q.day BETWEEN p_first AND p_last
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

ALTER TABLE rolled_days NO FORCE ROW LEVEL SECURITY;
DELETE FROM rolled_days;
ALTER TABLE rolled_days FORCE ROW LEVEL SECURITY;

-- The few questions of an outcome, where they are looked for alone.
CREATE INDEX chat_logs_outcomes ON chat_logs (tenant_id, outcome, created_at DESC) WHERE outcome <> 'answered';

SELECT rag_close_rest_api();
