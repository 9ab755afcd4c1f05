-- Sums of whole weeks, from Monday on, for the figures of long periods that have many rows a day: how long questions took,
-- and what documents answered. A week is summed from its days once all of them are, and is right as long as they are.

CREATE TABLE rolled_weeks (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day date NOT NULL,
    PRIMARY KEY (tenant_id, day)
);
COMMENT ON TABLE rolled_weeks IS 'Mondays of the weeks whose figures are summed and still right.';

-- Each question is in three rows: of all, of its group and of its language (part: all, group, language). Where both are
-- asked for, days are read.
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

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['rolled_weeks', 'question_time_weeks', 'document_weeks'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
        EXECUTE format('GRANT SELECT, INSERT, DELETE ON %I TO rag_app', t);
        IF t <> 'rolled_weeks' THEN
            EXECUTE format('CREATE POLICY reader ON %I AS RESTRICTIVE FOR SELECT USING ((SELECT rag_reads_all()) '
                           'OR collection_id IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)))', t);
        END IF;
    END LOOP;
END
$$;

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

-- Which rows of a week these filters mean; null where only days have them.
CREATE FUNCTION public.rag_part(p_user_group text, p_language text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN p_user_group IS NULL AND p_language IS NULL THEN 'all'
                WHEN p_language IS NULL THEN 'group' WHEN p_user_group IS NULL THEN 'language' END;

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

-- p_in_weeks: whole weeks are one row, on their Monday.
DROP FUNCTION public.rag_time_days;
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

DROP FUNCTION public.rag_document_days;
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

-- The few failures of a group, or in a language: without these all failures of the year are looked at. They serve what
-- chat_logs_failures did.
DROP INDEX chat_logs_failures;
CREATE INDEX chat_logs_outcomes_of_groups ON chat_logs (tenant_id, outcome, user_group, created_at DESC)
    WHERE outcome <> 'answered';
CREATE INDEX chat_logs_outcomes_of_languages ON chat_logs (tenant_id, outcome, language, created_at DESC)
    WHERE outcome <> 'answered';

SELECT rag_close_rest_api();
