-- The read models of the analytics page. Days are of the company's time zone; everything is one tenant's by row-level
-- security.
-- A question belongs to a document when its answer was built on passages of it (chat_logs.document_ids).
-- Only questions count as questions; what searches of programs cost is part of the costs.
-- Figures are added up by day (migration days): rag_question_days, rag_time_days, rag_document_days and rag_cost_days
-- give the days of a period that meet the filters, or whole weeks, where a chart needs no days.
-- Single questions are chosen by rag_is_asked.

-- lock_days --
-- Take the turn to add up days, until the transaction ends; false when another process adds them up, or changes one.
SELECT pg_try_advisory_xact_lock(hashtextextended('days ' || rag_tenant(), 0))

-- days_to_roll --
-- List the newest days that are over and not added up yet, from the first question or payment on.
SELECT d.day::date
FROM generate_series(
    (SELECT date_trunc('day', least(
        (SELECT created_at FROM chat_logs WHERE tenant_id = rag_tenant() ORDER BY tenant_id, created_at LIMIT 1),
        (SELECT created_at FROM cost_ledger WHERE tenant_id = rag_tenant() ORDER BY tenant_id, created_at LIMIT 1)
    ) AT TIME ZONE rag_zone())),
    rag_day_start(2) AT TIME ZONE rag_zone() - interval '1 day', interval '1 day') AS d(day)
WHERE NOT EXISTS (SELECT FROM rolled_days r WHERE r.tenant_id = rag_tenant() AND r.day = d.day::date)
ORDER BY d.day DESC
LIMIT %(limit)s

-- forget_question_days --
-- Remove the sums of questions of these days.
DELETE FROM question_days WHERE tenant_id = rag_tenant() AND day = ANY (%(days)s)

-- forget_time_days --
-- Remove the sums of times of these days.
DELETE FROM question_time_days WHERE tenant_id = rag_tenant() AND day = ANY (%(days)s)

-- forget_document_days --
-- Remove the sums of documents of these days.
DELETE FROM document_days WHERE tenant_id = rag_tenant() AND day = ANY (%(days)s)

-- forget_cost_days --
-- Remove the sums of costs of these days.
DELETE FROM cost_days WHERE tenant_id = rag_tenant() AND day = ANY (%(days)s)

-- roll_question_days --
-- Add up the questions of these days.
INSERT INTO question_days
SELECT c.* FROM unnest(%(days)s::date[]) AS d(day) CROSS JOIN (VALUES (true), (false)) AS kind(is_total)
CROSS JOIN LATERAL rag_count_questions(
    d.day::timestamp AT TIME ZONE (SELECT rag_zone()), (d.day + 1)::timestamp AT TIME ZONE (SELECT rag_zone()),
    kind.is_total, NULL, NULL, NULL, NULL) c

-- roll_time_days --
-- Add up the times of these days.
INSERT INTO question_time_days
SELECT c.* FROM unnest(%(days)s::date[]) AS d(day) CROSS JOIN (VALUES (true), (false)) AS kind(is_total)
CROSS JOIN LATERAL rag_count_times(
    d.day::timestamp AT TIME ZONE (SELECT rag_zone()), (d.day + 1)::timestamp AT TIME ZONE (SELECT rag_zone()),
    kind.is_total, NULL, NULL, NULL, NULL) c

-- roll_document_days --
-- Add up the documents of these days.
INSERT INTO document_days
SELECT c.* FROM unnest(%(days)s::date[]) AS d(day) CROSS JOIN (VALUES (true), (false)) AS kind(is_total)
CROSS JOIN LATERAL rag_count_documents(
    d.day::timestamp AT TIME ZONE (SELECT rag_zone()), (d.day + 1)::timestamp AT TIME ZONE (SELECT rag_zone()),
    kind.is_total, NULL, NULL, NULL, NULL) c

-- roll_cost_days --
-- Add up the costs of these days.
INSERT INTO cost_days
SELECT c.* FROM unnest(%(days)s::date[]) AS d(day) CROSS JOIN LATERAL rag_count_costs(
    d.day::timestamp AT TIME ZONE (SELECT rag_zone()), (d.day + 1)::timestamp AT TIME ZONE (SELECT rag_zone()),
    NULL, NULL, NULL, NULL) c

-- note_rolled_days --
-- Note that these days are added up.
INSERT INTO rolled_days (tenant_id, day) SELECT rag_tenant(), unnest(%(days)s::date[])

-- weeks_to_roll --
-- List the newest whole weeks whose days are all added up and that are not yet, by their Mondays.
SELECT date_trunc('week', r.day::timestamp)::date AS week
FROM rolled_days r
WHERE r.tenant_id = rag_tenant() AND NOT EXISTS (
    SELECT FROM rolled_weeks w WHERE w.tenant_id = r.tenant_id AND w.day = date_trunc('week', r.day::timestamp)::date)
GROUP BY 1
HAVING count(*) = 7
ORDER BY 1 DESC
LIMIT %(limit)s

-- forget_question_weeks --
-- Remove the sums of questions of these weeks.
DELETE FROM question_weeks WHERE tenant_id = rag_tenant() AND day = ANY (%(weeks)s)

-- forget_cost_weeks --
-- Remove the sums of costs of these weeks.
DELETE FROM cost_weeks WHERE tenant_id = rag_tenant() AND day = ANY (%(weeks)s)

-- forget_time_weeks --
-- Remove the sums of times of these weeks.
DELETE FROM question_time_weeks WHERE tenant_id = rag_tenant() AND day = ANY (%(weeks)s)

-- forget_document_weeks --
-- Remove the sums of documents of these weeks.
DELETE FROM document_weeks WHERE tenant_id = rag_tenant() AND day = ANY (%(weeks)s)

-- roll_question_weeks --
-- Sum the questions of the days of these weeks: of all, by group, and by language.
WITH days AS MATERIALIZED (
    SELECT w.week, d.* FROM unnest(%(weeks)s::date[]) AS w(week)
    JOIN question_days d ON d.tenant_id = rag_tenant() AND d.day BETWEEN w.week AND w.week + 6 AND NOT d.is_total
), counted AS (
    SELECT week, collection_id, user_group, language, sum(questions)::bigint AS questions,
           sum(answered)::bigint AS answered, sum(perhaps)::bigint AS perhaps, sum(no_context)::bigint AS no_context,
           sum(small_talk)::bigint AS small_talk, sum(asked_back)::bigint AS asked_back,
           sum(refused)::bigint AS refused, sum(stopped)::bigint AS stopped, sum(failed)::bigint AS failed,
           sum(rated)::bigint AS rated, sum(helpful)::bigint AS helpful, sum(ended)::bigint AS ended
    FROM days GROUP BY week, collection_id, GROUPING SETS ((), (user_group), (language))
), asked_by AS (
    SELECT week, collection_id, user_group, language, array_agg(DISTINCT person) AS people
    FROM days, unnest(people) AS person
    GROUP BY week, collection_id, GROUPING SETS ((), (user_group), (language))
)
INSERT INTO question_weeks
SELECT rag_tenant(), c.week,
       CASE WHEN c.user_group IS NOT NULL THEN 'group' WHEN c.language IS NOT NULL THEN 'language' ELSE 'all' END,
       c.collection_id, coalesce(c.user_group, ''), coalesce(c.language, ''), c.questions, c.answered, c.perhaps,
       c.no_context, c.small_talk, c.asked_back, c.refused, c.stopped, c.failed, c.rated, c.helpful,
       coalesce(p.people, '{}'), c.ended
FROM counted c
LEFT JOIN asked_by p ON p.week = c.week AND p.collection_id IS NOT DISTINCT FROM c.collection_id
    AND p.user_group IS NOT DISTINCT FROM c.user_group AND p.language IS NOT DISTINCT FROM c.language

-- roll_cost_weeks --
-- Sum the costs of the days of these weeks: of all, by group, and by language.
INSERT INTO cost_weeks
SELECT rag_tenant(), w.week,
       (ARRAY['all', 'group', 'language'])[1 + (1 - grouping(d.user_group)) + 2 * (1 - grouping(d.language))],
       d.collection_id, coalesce(d.user_group, ''), coalesce(d.language, ''), d.purpose, d.operation, d.provider,
       d.model, sum(d.calls)::bigint, sum(d.unpriced_calls)::bigint, sum(d.cost), sum(d.input_tokens)::bigint,
       sum(d.cached_input_tokens)::bigint, sum(d.output_tokens)::bigint, sum(d.search_units)::bigint,
       sum(d.pages)::bigint
FROM unnest(%(weeks)s::date[]) AS w(week)
JOIN cost_days d ON d.tenant_id = rag_tenant() AND d.day BETWEEN w.week AND w.week + 6
GROUP BY w.week, d.collection_id, d.purpose, d.operation, d.provider, d.model,
         GROUPING SETS ((), (d.user_group), (d.language))

-- roll_time_weeks --
-- Sum the times of the days of these weeks: of all, by group, and by language.
INSERT INTO question_time_weeks
SELECT rag_tenant(), t.week, t.part, t.collection_id, t.user_group, t.language, t.stage,
       array_agg(t.bucket ORDER BY t.bucket), array_agg(t.questions ORDER BY t.bucket)
FROM (
    SELECT w.week, (ARRAY['all', 'group', 'language'])[1 + (1 - grouping(d.user_group)) + 2 * (1 - grouping(d.language))]
               AS part,
           d.collection_id, coalesce(d.user_group, '') AS user_group, coalesce(d.language, '') AS language, d.stage,
           u.bucket, sum(u.questions)::bigint AS questions
    FROM unnest(%(weeks)s::date[]) AS w(week)
    JOIN question_time_days d ON d.tenant_id = rag_tenant() AND d.day BETWEEN w.week AND w.week + 6 AND NOT d.is_total
    CROSS JOIN LATERAL unnest(d.buckets, d.questions) AS u(bucket, questions)
    GROUP BY w.week, d.collection_id, d.stage, u.bucket, GROUPING SETS ((), (d.user_group), (d.language))
) t
GROUP BY 1, 2, 3, 4, 5, 6, 7

-- roll_document_weeks --
-- Sum the documents of the days of these weeks: of all, by group, and by language.
INSERT INTO document_weeks
SELECT rag_tenant(), w.week,
       (ARRAY['all', 'group', 'language'])[1 + (1 - grouping(d.user_group)) + 2 * (1 - grouping(d.language))],
       d.collection_id, coalesce(d.user_group, ''), coalesce(d.language, ''), d.document_id, sum(d.questions)::bigint,
       max(d.last_asked_at), sum(d.rated)::bigint, sum(d.helpful)::bigint
FROM unnest(%(weeks)s::date[]) AS w(week)
JOIN document_days d ON d.tenant_id = rag_tenant() AND d.day BETWEEN w.week AND w.week + 6 AND NOT d.is_total
GROUP BY w.week, d.collection_id, d.document_id, GROUPING SETS ((), (d.user_group), (d.language))

-- note_rolled_weeks --
-- Note that these weeks are added up.
INSERT INTO rolled_weeks (tenant_id, day) SELECT rag_tenant(), unnest(%(weeks)s::date[])

-- analytics_totals --
-- Sum all questions asked and all paid calls made, from `first` to `last`. Small talk and questions that were asked
-- back count as asked, but neither as answered nor as a gap.
WITH asked AS MATERIALIZED (
    SELECT * FROM rag_question_days(
        %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, NULL, true)
), spent AS (
    SELECT coalesce(sum(c.cost), 0) AS cost, coalesce(sum(c.calls), 0)::bigint AS calls,
           coalesce(sum(c.unpriced_calls), 0)::bigint AS unpriced_calls,
           coalesce(sum(c.cost) FILTER (WHERE c.purpose = 'question'), 0) AS questions_cost
    FROM rag_cost_days(
        %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, NULL, true) c
)
SELECT coalesce(sum(questions), 0)::bigint AS questions, coalesce(sum(answered), 0)::bigint AS answered,
       coalesce(sum(perhaps), 0)::bigint AS perhaps, coalesce(sum(no_context), 0)::bigint AS no_context,
       coalesce(sum(small_talk), 0)::bigint AS small_talk, coalesce(sum(asked_back), 0)::bigint AS asked_back,
       coalesce(sum(refused), 0)::bigint AS refused, coalesce(sum(stopped), 0)::bigint AS stopped,
       coalesce(sum(failed), 0)::bigint AS failed, coalesce(sum(ended), 0)::bigint AS ended,
       coalesce(sum(rated), 0)::bigint AS rated,
       coalesce(sum(helpful), 0)::bigint AS helpful,
       -- Hashed; count(DISTINCT …) would sort everybody of every day.
       (SELECT count(*) FROM (SELECT DISTINCT unnest(people) FROM asked) AS person) AS people,
       (SELECT cost FROM spent) AS cost, (SELECT calls FROM spent) AS calls,
       (SELECT unpriced_calls FROM spent) AS unpriced_calls, (SELECT questions_cost FROM spent) AS questions_cost
FROM asked

-- analytics_by_day --
-- Sum the same for every day, week or month (`unit`) from `first` to `last`, those without questions included.
WITH asked AS (
    SELECT date_trunc(%(unit)s, day::timestamp)::date AS day, sum(questions)::bigint AS questions,
           sum(answered)::bigint AS answered, sum(perhaps)::bigint AS perhaps, sum(no_context)::bigint AS no_context,
           sum(small_talk)::bigint AS small_talk, sum(asked_back)::bigint AS asked_back,
           sum(refused)::bigint AS refused, sum(stopped)::bigint AS stopped, sum(failed)::bigint AS failed,
           sum(ended)::bigint AS ended, sum(rated)::bigint AS rated, sum(helpful)::bigint AS helpful
    FROM rag_question_days(
        %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, NULL, %(in_weeks)s)
    GROUP BY 1
), spent AS (
    SELECT date_trunc(%(unit)s, day::timestamp)::date AS day, sum(cost) AS cost
    FROM rag_cost_days(
        %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, NULL, %(in_weeks)s)
    GROUP BY 1
)
SELECT days.day::date AS day, coalesce(questions, 0) AS questions, coalesce(answered, 0) AS answered,
       coalesce(perhaps, 0) AS perhaps, coalesce(no_context, 0) AS no_context, coalesce(small_talk, 0) AS small_talk,
       coalesce(asked_back, 0) AS asked_back, coalesce(refused, 0) AS refused, coalesce(stopped, 0) AS stopped,
       coalesce(failed, 0) AS failed, coalesce(ended, 0) AS ended,
       coalesce(rated, 0) AS rated, coalesce(helpful, 0) AS helpful,
       coalesce(cost, 0) AS cost
FROM generate_series(date_trunc(%(unit)s, %(first)s::timestamp), %(last)s::timestamp, %(step)s::interval) AS days(day)
LEFT JOIN asked ON asked.day = days.day::date
LEFT JOIN spent ON spent.day = days.day::date
ORDER BY days.day

-- analytics_times --
-- Compute the median and the 95th percentile of each stage over the questions themselves, by day, week or month, or
-- (`unit` null) over the whole period. For periods with fewer questions than `EXACT_BELOW`. A stage that did not run took 0.
SELECT counted.day, stage.name AS stage, stage.questions, stage.taken[1] AS p50_ms, stage.taken[2] AS p95_ms,
       false AS is_about
FROM (
    -- A row for each question and stage would take five times as long.
    SELECT date_trunc(%(unit)s::text, l.created_at AT TIME ZONE (SELECT rag_zone()))::date AS day,
           count(l.whole_ms) AS whole_questions, percentile_cont(ARRAY[0.5, 0.95])
               WITHIN GROUP (ORDER BY l.whole_ms::float8)
               FILTER (WHERE 'whole' = ANY (%(stages)s::text[])) AS whole,
           count(l.first_ms) AS first_questions, percentile_cont(ARRAY[0.5, 0.95])
               WITHIN GROUP (ORDER BY l.first_ms::float8)
               FILTER (WHERE 'first' = ANY (%(stages)s::text[])) AS first,
           count(nullif(l.translation_ms, 0)) AS translation_questions, percentile_cont(ARRAY[0.5, 0.95])
               WITHIN GROUP (ORDER BY nullif(l.translation_ms, 0)::float8)
               FILTER (WHERE 'translation' = ANY (%(stages)s::text[])) AS translation,
           count(nullif(l.embedding_ms, 0)) AS embedding_questions, percentile_cont(ARRAY[0.5, 0.95])
               WITHIN GROUP (ORDER BY nullif(l.embedding_ms, 0)::float8)
               FILTER (WHERE 'embedding' = ANY (%(stages)s::text[])) AS embedding,
           count(nullif(l.search_ms, 0)) AS search_questions, percentile_cont(ARRAY[0.5, 0.95])
               WITHIN GROUP (ORDER BY nullif(l.search_ms, 0)::float8)
               FILTER (WHERE 'search' = ANY (%(stages)s::text[])) AS search,
           count(nullif(l.reranking_ms, 0)) AS reranking_questions, percentile_cont(ARRAY[0.5, 0.95])
               WITHIN GROUP (ORDER BY nullif(l.reranking_ms, 0)::float8)
               FILTER (WHERE 'reranking' = ANY (%(stages)s::text[])) AS reranking,
           count(nullif(l.model_ms, 0)) AS model_questions, percentile_cont(ARRAY[0.5, 0.95])
               WITHIN GROUP (ORDER BY nullif(l.model_ms, 0)::float8)
               FILTER (WHERE 'model' = ANY (%(stages)s::text[])) AS model
    FROM question_outcomes l
    WHERE rag_is_asked(l.log, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                       %(language)s)
    GROUP BY 1
) counted
CROSS JOIN LATERAL (VALUES
    ('whole', whole_questions, whole),
    ('first', first_questions, first),
    ('translation', translation_questions, translation),
    ('embedding', embedding_questions, embedding),
    ('search', search_questions, search),
    ('reranking', reranking_questions, reranking),
    ('model', model_questions, model)
) AS stage(name, questions, taken)
WHERE stage.taken[1] IS NOT NULL
ORDER BY counted.day, array_position(%(stages)s::text[], stage.name)

-- analytics_times_about --
-- Compute the median and the 95th percentile of each stage, by day, week or month or (`unit` null) over the whole
-- period, within one percent, and between two values as percentile_cont does.
WITH days AS MATERIALIZED (
    -- Filtered by day before the buckets are unnested, a hundred for each row. A stage is its place in the list: words
    -- are grouped and sorted more slowly.
    SELECT date_trunc(%(unit)s::text, day::timestamp)::date AS day,
           array_position(%(stages)s::text[], stage) AS stage, buckets, questions
    FROM rag_time_days(
        %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, %(in_weeks)s)
    WHERE stage = ANY (%(stages)s::text[])
), counted AS (
    -- Sums of bigint are numeric, which is slow.
    SELECT days.day, days.stage, u.bucket, sum(u.questions::integer)::integer AS questions
    FROM days CROSS JOIN LATERAL unnest(days.buckets, days.questions) AS u(bucket, questions)
    GROUP BY 1, 2, 3
), ranked AS (
    SELECT day, stage, bucket,
           sum(questions) OVER (PARTITION BY day, stage ORDER BY bucket ROWS UNBOUNDED PRECEDING) AS reached,
           sum(questions) OVER (PARTITION BY day, stage) AS questions
    FROM counted
), placed AS (
    SELECT day, stage, max(questions) AS questions,
           min(bucket) FILTER (WHERE reached > floor(0.5::float8 * (questions - 1))) AS low_p50,
           min(bucket) FILTER (WHERE reached > ceil(0.5::float8 * (questions - 1))) AS high_p50,
           min(bucket) FILTER (WHERE reached > floor(0.95::float8 * (questions - 1))) AS low_p95,
           min(bucket) FILTER (WHERE reached > ceil(0.95::float8 * (questions - 1))) AS high_p95
    FROM ranked GROUP BY day, stage
)
SELECT day, (%(stages)s::text[])[stage] AS stage, questions::bigint AS questions,
       exp(low_p50 / 50.0::float8) + (exp(high_p50 / 50.0::float8) - exp(low_p50 / 50.0::float8))
           * (0.5::float8 * (questions - 1) - floor(0.5::float8 * (questions - 1))) AS p50_ms,
       exp(low_p95 / 50.0::float8) + (exp(high_p95 / 50.0::float8) - exp(low_p95 / 50.0::float8))
           * (0.95::float8 * (questions - 1) - floor(0.95::float8 * (questions - 1))) AS p95_ms,
       true AS is_about
FROM placed
ORDER BY day, stage

-- analytics_time_histogram --
-- Count how many questions a stage took how long, in buckets about ten percent wide.
SELECT exp(counted.bucket / 10.0::float8) AS ms, counted.questions
FROM (
    SELECT (u.bucket + 2) / 5 AS bucket, sum(u.questions::integer) AS questions
    FROM rag_time_days(
        %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, true) t
    CROSS JOIN LATERAL unnest(t.buckets, t.questions) AS u(bucket, questions)
    WHERE t.stage = %(stage)s
    GROUP BY 1
) counted
ORDER BY 1

-- analytics_cost_by_day --
-- Sum known costs and count unpriced calls by day, week or month and by `by`: operation, model, collection, group or
-- purpose. `cost` is null when no call had a price.
SELECT date_trunc(%(unit)s, c.day::timestamp)::date AS day, name.name, sum(c.calls)::bigint AS calls,
       sum(c.cost) AS cost, sum(c.unpriced_calls)::bigint AS unpriced_calls
FROM rag_cost_days(
    %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, %(by)s, %(in_weeks)s) c
LEFT JOIN collections ON collections.id = c.collection_id
CROSS JOIN LATERAL (SELECT CASE %(by)s
    WHEN 'operation' THEN c.operation WHEN 'model' THEN c.model WHEN 'group' THEN c.user_group
    WHEN 'collection' THEN coalesce(collections.name, '') ELSE c.purpose END AS name) name
GROUP BY 1, 2
ORDER BY 1, 2

-- analytics_cost_by_model --
-- Sum the use of each model over the whole period, dearest first.
SELECT c.provider, c.model, c.operation, sum(c.calls)::bigint AS calls, sum(c.cost) AS cost,
       sum(c.unpriced_calls)::bigint AS unpriced_calls, sum(c.input_tokens)::bigint AS input_tokens,
       sum(c.cached_input_tokens)::bigint AS cached_input_tokens, sum(c.output_tokens)::bigint AS output_tokens,
       sum(c.search_units)::bigint AS search_units, sum(c.pages)::bigint AS pages
FROM rag_cost_days(
    %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, NULL, true) c
GROUP BY 1, 2, 3
ORDER BY sum(c.cost) DESC NULLS LAST, c.provider, c.model, c.operation

-- analytics_by_part --
-- Count questions and outcomes by `by`: language, group or collection. Each question is counted once.
SELECT name.name, sum(q.questions)::bigint AS questions, sum(q.answered)::bigint AS answered,
       sum(q.perhaps)::bigint AS perhaps, sum(q.no_context)::bigint AS no_context,
       sum(q.ended)::bigint AS ended, sum(q.rated)::bigint AS rated,
       sum(q.helpful)::bigint AS helpful
FROM rag_question_days(
    %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, %(by)s, true) q
LEFT JOIN collections ON collections.id = q.collection_id
CROSS JOIN LATERAL (SELECT CASE %(by)s WHEN 'language' THEN q.language WHEN 'group' THEN q.user_group
    ELSE coalesce(collections.name, '') END AS name) name
GROUP BY 1
ORDER BY 2 DESC, 1

-- analytics_top_documents --
-- List documents by the number of questions whose answers were built on them. Deleted documents are left out.
SELECT d.id AS document_id, d.title, used.questions, used.last_asked_at, used.rated, used.helpful
FROM (
    -- Sums of integers: sums of bigint are numeric, which is slow.
    SELECT document_id, sum(questions::integer) AS questions, max(last_asked_at) AS last_asked_at,
           sum(rated::integer) AS rated, sum(helpful::integer) AS helpful
    FROM rag_document_days(
        %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, true)
    GROUP BY document_id
) used
JOIN documents d ON d.id = used.document_id
ORDER BY used.questions DESC, d.title
LIMIT %(limit)s

-- analytics_unused_documents --
-- List documents that could be found all through the period and that no answer was built on, the oldest first.
SELECT d.id AS document_id, d.title, d.created_at
FROM documents d
WHERE d.status = 'completed' AND d.created_at < %(start)s
  AND (%(collection_id)s::uuid IS NULL OR d.collection_id = %(collection_id)s)
  AND NOT EXISTS (
        SELECT FROM rag_document_days(%(first)s, %(last)s, NULL, NULL, %(collection_id)s, NULL, true) used
        WHERE used.document_id = d.id)
ORDER BY d.created_at, d.title
LIMIT %(limit)s

-- analytics_has_settled_documents --
-- Tell whether there is a document that could be found all through the period.
SELECT EXISTS (
    SELECT FROM documents d
    WHERE d.status = 'completed' AND d.created_at < %(start)s
      AND (%(collection_id)s::uuid IS NULL OR d.collection_id = %(collection_id)s)
) AS has_some

-- analytics_unanswered --
-- List questions that the documents could not answer, each wording once, most asked first.
SELECT (array_agg(l.question ORDER BY l.created_at DESC))[1] AS question,
       (array_agg(l.id ORDER BY l.created_at DESC))[1] AS latest_id,
       count(*) AS times, max(l.created_at) AS last_asked_at,
       coalesce(array_agg(DISTINCT l.user_group) FILTER (WHERE l.user_group <> ''), '{}') AS user_groups
FROM question_outcomes l
WHERE rag_is_asked(l.log, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                   %(language)s)
  AND l.is_not_found
GROUP BY lower(trim(BOTH ' .?!' FROM l.question))
ORDER BY times DESC, last_asked_at DESC
LIMIT %(limit)s

-- analytics_questions --
-- List questions, or searches of programs, newest or slowest first, with their rating, and with names if they are
-- shown. `text` is searched in question and answer. Each order has its own index.
WITH chosen AS (
    (SELECT l.id FROM chat_logs l
     WHERE NOT %(slowest_first)s
           AND rag_is_asked(l, %(kind)s, %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                            %(language)s)
           AND (%(outcome)s::text IS NULL OR l.outcome = %(outcome)s)
           AND (%(rating)s::integer IS NULL
                OR EXISTS (SELECT FROM feedback f WHERE f.chat_log_id = l.id AND f.rating = %(rating)s))
           AND (%(text)s::text IS NULL OR position(lower(%(text)s) IN lower(l.question)) > 0
                OR position(lower(%(text)s) IN lower(l.answer)) > 0)
     ORDER BY l.created_at DESC, l.id LIMIT %(limit)s OFFSET %(offset)s)
    UNION ALL
    (SELECT l.id FROM chat_logs l
     WHERE %(slowest_first)s
           AND rag_is_asked(l, %(kind)s, %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                            %(language)s)
           AND (%(outcome)s::text IS NULL OR l.outcome = %(outcome)s)
           AND (%(rating)s::integer IS NULL
                OR EXISTS (SELECT FROM feedback f WHERE f.chat_log_id = l.id AND f.rating = %(rating)s))
           AND (%(text)s::text IS NULL OR position(lower(%(text)s) IN lower(l.question)) > 0
                OR position(lower(%(text)s) IN lower(l.answer)) > 0)
     ORDER BY l.total_ms DESC NULLS LAST, l.created_at DESC, l.id LIMIT %(limit)s OFFSET %(offset)s)
)
SELECT l.id, l.created_at, l.user_group,
       coalesce((SELECT coalesce(nullif(a.name, ''), a.email) FROM accounts a
                 WHERE a.id = l.account_id AND %(shows_names)s), '') AS asker,
       l.language, l.question, l.answer, l.outcome, l.model, l.total_ms,
       l.first_token_ms, l.cost, l.is_priced,
       (SELECT max(f.rating) FROM feedback f WHERE f.chat_log_id = l.id) AS rating,
       (SELECT coalesce(string_agg(f.comment, ' / ' ORDER BY f.created_at), '')
        FROM feedback f WHERE f.chat_log_id = l.id AND f.comment <> '') AS comment,
       (SELECT coalesce(array_agg(d.title ORDER BY d.title), '{}')
        FROM documents d WHERE d.id = ANY (l.document_ids)) AS documents
FROM chosen JOIN chat_logs l ON l.id = chosen.id
ORDER BY CASE WHEN %(slowest_first)s THEN coalesce(l.total_ms, -1) END DESC, l.created_at DESC, l.id

-- analytics_count_by_days --
-- Count questions, all or those with one outcome, from daily sums; used when no text is searched.
SELECT coalesce(sum(CASE %(outcome)s::text
    WHEN 'answered' THEN answered WHEN 'perhaps' THEN perhaps WHEN 'no_context' THEN no_context
    WHEN 'small_talk' THEN small_talk WHEN 'asked_back' THEN asked_back WHEN 'refused' THEN refused
    WHEN 'stopped' THEN stopped WHEN 'failed' THEN failed ELSE questions END), 0)::bigint AS questions
FROM rag_question_days(
    %(first)s, %(last)s, %(document_id)s, %(user_group)s, %(collection_id)s, %(language)s, NULL, true)

-- analytics_count_questions --
-- Count the questions or searches that these filters leave, the newest first and no more than `most`: the texts of a
-- year take seconds.
SELECT count(*) AS questions FROM (
    SELECT FROM chat_logs l
    WHERE rag_is_asked(l, %(kind)s, %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                       %(language)s)
      AND (%(outcome)s::text IS NULL OR l.outcome = %(outcome)s)
      AND (%(rating)s::integer IS NULL
           OR EXISTS (SELECT FROM feedback f WHERE f.chat_log_id = l.id AND f.rating = %(rating)s))
      AND (%(text)s::text IS NULL OR position(lower(%(text)s) IN lower(l.question)) > 0
           OR position(lower(%(text)s) IN lower(l.answer)) > 0)
    ORDER BY l.created_at DESC LIMIT %(most)s) AS found

-- analytics_question --
-- Read one question with everything that was logged of it.
SELECT l.id, l.created_at, l.user_group,
       coalesce((SELECT coalesce(nullif(a.name, ''), a.email) FROM accounts a
                 WHERE a.id = l.account_id AND %(shows_names)s), '') AS asker,
       l.language, l.question, l.answer, l.outcome, l.error, l.model, l.total_ms,
       l.first_token_ms, l.cost, l.is_priced, l.rag_details, l.collection_id,
       (SELECT max(f.rating) FROM feedback f WHERE f.chat_log_id = l.id) AS rating,
       (SELECT coalesce(string_agg(f.comment, ' / ' ORDER BY f.created_at), '')
        FROM feedback f WHERE f.chat_log_id = l.id AND f.comment <> '') AS comment,
       (SELECT coalesce(array_agg(d.title ORDER BY d.title), '{}')
        FROM documents d WHERE d.id = ANY (l.document_ids)) AS documents
FROM chat_logs l
WHERE l.id = %(chat_log_id)s

-- analytics_question_passages --
-- List the chunks found for a question in the order found, with their places before and after reranking. Of a deleted
-- document the title is null and the preview empty.
SELECT found.position::integer AS position, nullif(found.passage ->> 'chunkId', '') AS chunk_id, d.title,
       c.first_page, c.last_page, coalesce(c.section, '') AS section,
       (found.passage ->> 'similarity')::float8 AS similarity,
       CASE WHEN d.id IS NULL THEN '' ELSE coalesce(found.passage ->> 'preview', '') END AS preview,
       (reranked.result ->> 'originalRank')::integer AS original_rank,
       (reranked.result ->> 'newRank')::integer AS new_rank,
       (reranked.result ->> 'score')::float8 AS rerank_score
FROM chat_logs l
CROSS JOIN LATERAL jsonb_array_elements(l.rag_details #> '{search,rawResults}')
    WITH ORDINALITY AS found(passage, position)
LEFT JOIN LATERAL (
    SELECT result FROM jsonb_array_elements(l.rag_details #> '{reranking,results}') AS result
    WHERE result ->> 'chunkId' = found.passage ->> 'chunkId' LIMIT 1
) AS reranked ON true
LEFT JOIN documents d ON d.id = nullif(found.passage ->> 'documentId', '')::uuid
LEFT JOIN document_chunks c ON c.tenant_id = rag_tenant() AND c.id = nullif(found.passage ->> 'chunkId', '')::uuid
WHERE l.id = %(chat_log_id)s
ORDER BY found.position

-- analytics_prompt --
-- Read the prompt sent for a question, and which documents of its chunks still exist.
SELECT p.messages, p.passages,
       ARRAY(SELECT d.id::text FROM documents d WHERE d.id IN (
           SELECT (passage ->> 'documentId')::uuid FROM jsonb_array_elements(p.passages) AS passage)) AS documents
FROM prompts p WHERE p.chat_log_id = %(chat_log_id)s

-- time_zone --
-- Read the time zone of the company's days.
SELECT rag_zone()

-- names_for --
-- Read which role sees who asked a question: admin, manager or nobody.
SELECT coalesce(settings ->> 'names_for', 'admin') FROM tenants WHERE id = rag_tenant()

-- analytics_question_charges --
-- List the paid calls made for a question, in their order.
SELECT operation, provider, model, input_tokens, cached_input_tokens, output_tokens, search_units, cost, is_estimated
FROM cost_ledger
WHERE chat_log_id = %(chat_log_id)s
ORDER BY created_at, operation

-- analytics_user_groups --
-- List groups to filter by: the groups of accounts, and groups that asked in the period.
SELECT user_group AS name FROM accounts WHERE user_group <> ''
UNION
SELECT user_group FROM rag_question_days(%(first)s, %(last)s, NULL, NULL, NULL, NULL, 'group', true)
WHERE user_group <> ''
ORDER BY 1

-- analytics_languages --
-- List the languages that people asked in.
SELECT DISTINCT language AS name
FROM rag_question_days(%(first)s, %(last)s, NULL, NULL, NULL, NULL, 'language', true)
WHERE language <> ''
ORDER BY 1

-- analytics_searches --
-- Read the results of the search for the latest questions: the best similarity and rerank score, and the place before
-- reranking of the hit that came first after it.
SELECT l.is_answered, l.language, l.user_group, coalesce(c.name, '') AS collection, found.similarity, reranked.score,
       reranked.moved_from, reranked.score IS NOT NULL AS is_reranked,
       coalesce(l.rag_details #>> '{query,translatedQuery}', '') <> '' AS is_translated
FROM (
    SELECT * FROM question_outcomes l
    WHERE rag_is_asked(l.log, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                       %(language)s)
      AND l.is_ended
    ORDER BY l.created_at DESC LIMIT %(limit)s
) l
LEFT JOIN collections c ON c.id = l.collection_id
CROSS JOIN LATERAL (
    SELECT max((result ->> 'similarity')::float8) AS similarity
    FROM jsonb_array_elements(l.rag_details #> '{search,rawResults}') AS result
) found
CROSS JOIN LATERAL (
    SELECT max((result ->> 'score')::float8) AS score,
           min((result ->> 'originalRank')::integer) FILTER (WHERE result ->> 'newRank' = '1') AS moved_from
    FROM jsonb_array_elements(l.rag_details #> '{reranking,results}') AS result
) reranked
WHERE found.similarity IS NOT NULL OR reranked.score IS NOT NULL

-- analytics_found_documents --
-- Count the documents that the search found for the latest questions, whether they were used or not.
SELECT (result ->> 'documentId')::uuid AS document_id, count(DISTINCT l.id) AS questions
FROM (
    SELECT * FROM chat_logs l
    WHERE rag_is_asked(l, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                       %(language)s)
    ORDER BY l.created_at DESC LIMIT %(limit)s
) l
CROSS JOIN LATERAL jsonb_array_elements(l.rag_details #> '{search,rawResults}') AS result
WHERE coalesce(result ->> 'documentId', '') <> ''
GROUP BY 1

-- analytics_top_passages --
-- List the chunks that most answers name as a source, with how often they do not support the answer.
SELECT d.id AS document_id, d.title, (passage ->> 'firstPage')::integer AS first_page,
       (passage ->> 'lastPage')::integer AS last_page, max(passage ->> 'section') AS section,
       max(passage ->> 'text') AS text, count(*) AS questions,
       count(*) FILTER (WHERE passage ->> 'state' = 'not held') AS not_held
FROM (
    SELECT l.id FROM chat_logs l
    WHERE rag_is_asked(l, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                       %(language)s)
    ORDER BY l.created_at DESC LIMIT %(latest)s
) l
JOIN prompts p ON p.chat_log_id = l.id
CROSS JOIN LATERAL jsonb_array_elements(p.passages) AS passage
JOIN documents d ON d.id = (passage ->> 'documentId')::uuid
WHERE passage ->> 'state' <> 'not named'
GROUP BY d.id, d.title, passage ->> 'chunkId', 3, 4
ORDER BY questions DESC, d.title, first_page
LIMIT %(limit)s

-- analytics_errors --
-- Count the reasons why the latest questions failed or were refused, as people read them, most frequent first, and each
-- with its latest question.
SELECT l.error, l.outcome, count(*) AS times, max(l.created_at) AS last_at,
       (array_agg(l.id ORDER BY l.created_at DESC))[1] AS latest_id
FROM (
    -- Apart, each in the order of its index.
    (SELECT l.id, l.error, l.outcome, l.created_at FROM question_outcomes l
     WHERE rag_is_asked(l.log, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                        %(language)s) AND l.is_failed
     ORDER BY l.created_at DESC LIMIT %(latest)s)
    UNION ALL
    (SELECT l.id, l.error, l.outcome, l.created_at FROM question_outcomes l
     WHERE rag_is_asked(l.log, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                        %(language)s) AND l.is_refused
     ORDER BY l.created_at DESC LIMIT %(latest)s)
    ORDER BY created_at DESC LIMIT %(latest)s
) l
WHERE l.error <> ''
GROUP BY l.error, l.outcome
ORDER BY times DESC, last_at DESC
LIMIT %(limit)s

-- analytics_notices --
-- Count what the latest questions did without, such as a reranker that did not answer, the most frequent first.
SELECT missing.notice, count(*) AS times, max(l.created_at) AS last_at,
       (array_agg(l.id ORDER BY l.created_at DESC))[1] AS latest_id
FROM (
    SELECT l.id, l.created_at, l.rag_details FROM chat_logs l
    WHERE rag_is_asked(l, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s, %(collection_id)s,
                       %(language)s)
    ORDER BY l.created_at DESC LIMIT %(latest)s
) l
CROSS JOIN LATERAL jsonb_array_elements_text(l.rag_details -> 'notices') AS missing(notice)
GROUP BY missing.notice
ORDER BY times DESC, last_at DESC
LIMIT %(limit)s

-- analytics_repeated_calls --
-- List calls whose end the provider did not report: cut off or repeated, and charged by estimate.
SELECT c.provider, c.model, c.operation, count(*) AS calls
FROM cost_ledger c
WHERE c.tenant_id = rag_tenant() AND c.created_at >= %(start)s AND c.created_at < %(end)s AND c.is_estimated
GROUP BY 1, 2, 3
ORDER BY calls DESC, c.model
LIMIT %(limit)s
