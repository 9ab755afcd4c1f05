-- The read models of the analytics page. Days are UTC. Everything is one tenant's by row-level security.
-- A question belongs to a document when its answer was built on passages of it (chat_logs.document_ids).
-- Only questions count as questions; what searches of programs cost is part of the costs.
-- The filters of the page are rag_is_asked (questions) and rag_costs (paid calls).

-- analytics_summary --
-- Figures of all questions asked, and of all paid calls made, from `start` until before `end`. Small talk, and what was
-- asked back, were asked but count neither as answered nor as a gap, and their few milliseconds not as an answer's time.
WITH asked AS MATERIALIZED (
    SELECT l.id, l.outcome, l.total_ms
    FROM chat_logs l
    WHERE rag_is_asked(l, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s)
), rated AS (
    SELECT count(*) AS rated, count(*) FILTER (WHERE f.rating = 1) AS helpful
    FROM feedback f JOIN asked ON asked.id = f.chat_log_id
), spent AS (
    SELECT sum(c.cost) AS cost, count(*) AS calls, count(*) FILTER (WHERE c.cost IS NULL) AS unpriced_calls
    FROM rag_costs(%(start)s, %(end)s, %(document_id)s, %(user_group)s) AS c
)
SELECT count(asked.id) AS questions,
       count(*) FILTER (WHERE asked.outcome NOT IN ('small_talk', 'asked_back')) AS closed,
       count(*) FILTER (WHERE asked.outcome = 'answered') AS answered,
       count(*) FILTER (WHERE asked.outcome = 'no_context') AS no_context,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY asked.total_ms)
           FILTER (WHERE asked.outcome NOT IN ('small_talk', 'asked_back')) AS median_ms,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY asked.total_ms)
           FILTER (WHERE asked.outcome NOT IN ('small_talk', 'asked_back')) AS p95_ms,
       (SELECT rated FROM rated) AS rated,
       (SELECT helpful FROM rated) AS helpful,
       (SELECT coalesce(cost, 0) FROM spent) AS cost,
       (SELECT calls FROM spent) AS calls,
       (SELECT unpriced_calls FROM spent) AS unpriced_calls
FROM asked

-- analytics_by_day --
-- The same figures for every day from `first` to `last`, days without questions included.
WITH asked AS (
    SELECT (l.created_at AT TIME ZONE 'UTC')::date AS day, l.outcome, l.total_ms, f.rated, f.helpful
    FROM chat_logs l
    LEFT JOIN (
        SELECT chat_log_id, count(*) AS rated, count(*) FILTER (WHERE rating = 1) AS helpful
        FROM feedback GROUP BY chat_log_id
    ) f ON f.chat_log_id = l.id
    WHERE rag_is_asked(l, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s)
), asked_by_day AS (
    SELECT day, count(*) AS questions,
           count(*) FILTER (WHERE outcome NOT IN ('small_talk', 'asked_back')) AS closed,
           count(*) FILTER (WHERE outcome = 'answered') AS answered,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY total_ms)
               FILTER (WHERE outcome NOT IN ('small_talk', 'asked_back')) AS median_ms,
           percentile_cont(0.95) WITHIN GROUP (ORDER BY total_ms)
               FILTER (WHERE outcome NOT IN ('small_talk', 'asked_back')) AS p95_ms,
           sum(rated)::bigint AS rated, sum(helpful)::bigint AS helpful
    FROM asked GROUP BY day
), spent_by_day AS (
    SELECT (c.created_at AT TIME ZONE 'UTC')::date AS day, sum(c.cost) AS cost
    FROM rag_costs(%(start)s, %(end)s, %(document_id)s, %(user_group)s) AS c
    GROUP BY 1
)
SELECT days.day::date AS day, coalesce(questions, 0) AS questions, coalesce(closed, 0) AS closed,
       coalesce(answered, 0) AS answered, median_ms, p95_ms, coalesce(rated, 0) AS rated,
       coalesce(helpful, 0) AS helpful, coalesce(cost, 0) AS cost
FROM generate_series(%(first)s::date, %(last)s::date, interval '1 day') AS days(day)
LEFT JOIN asked_by_day ON asked_by_day.day = days.day::date
LEFT JOIN spent_by_day ON spent_by_day.day = days.day::date
ORDER BY days.day

-- analytics_cost_by_day_and_operation --
-- Known costs and unpriced calls of each day by what they were made for. `cost` is null when no call had a price.
SELECT (c.created_at AT TIME ZONE 'UTC')::date AS day, c.operation AS name, count(*) AS calls, sum(c.cost) AS cost,
       count(*) FILTER (WHERE c.cost IS NULL) AS unpriced_calls
FROM rag_costs(%(start)s, %(end)s, %(document_id)s, %(user_group)s) AS c
GROUP BY 1, 2
ORDER BY 1, 2

-- analytics_cost_by_day_and_model --
-- The same by model.
SELECT (c.created_at AT TIME ZONE 'UTC')::date AS day, c.model AS name, count(*) AS calls, sum(c.cost) AS cost,
       count(*) FILTER (WHERE c.cost IS NULL) AS unpriced_calls
FROM rag_costs(%(start)s, %(end)s, %(document_id)s, %(user_group)s) AS c
GROUP BY 1, 2
ORDER BY 1, 2

-- analytics_cost_by_model --
-- What each model was used for over the whole period, dearest first.
SELECT c.provider, c.model, c.operation, count(*) AS calls, sum(c.cost) AS cost,
       count(*) FILTER (WHERE c.cost IS NULL) AS unpriced_calls,
       sum(c.input_tokens)::bigint AS input_tokens, sum(c.output_tokens)::bigint AS output_tokens,
       sum(c.search_units)::bigint AS search_units, sum(c.pages)::bigint AS pages
FROM rag_costs(%(start)s, %(end)s, %(document_id)s, %(user_group)s) AS c
GROUP BY 1, 2, 3
ORDER BY sum(c.cost) DESC NULLS LAST, c.provider, c.model, c.operation

-- analytics_stage_percentiles --
-- How long each stage took, by day, over the questions in which it ran (a stage that did not run is logged as 0 ms).
-- OFFSET 0 keeps the planner from reading the whole JSON once per stage.
SELECT (l.created_at AT TIME ZONE 'UTC')::date AS day, stage.name AS stage, count(*) AS questions,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY stage.ms) AS p50_ms,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY stage.ms) AS p95_ms
FROM chat_logs l
CROSS JOIN LATERAL (SELECT l.rag_details -> 'timing' AS timing OFFSET 0) t
CROSS JOIN LATERAL (VALUES
    ('translation', (t.timing ->> 'translationMs')::float8),
    ('embedding', (t.timing ->> 'embeddingMs')::float8),
    ('search', (t.timing ->> 'searchMs')::float8),
    ('reranking', (t.timing ->> 'rerankingMs')::float8),
    ('model', (t.timing ->> 'openaiMs')::float8)
) AS stage(name, ms)
WHERE rag_is_asked(l, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s)
  AND stage.ms > 0
GROUP BY 1, 2
ORDER BY 1, 2

-- analytics_top_documents --
-- Documents by the number of questions whose answers were built on them. A deleted document is no longer there.
WITH used AS MATERIALIZED (
    SELECT DISTINCT l.id, l.created_at, document_id
    FROM chat_logs l, unnest(l.document_ids) AS document_id
    WHERE rag_is_asked(l, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s)
), rated AS MATERIALIZED (
    SELECT used.document_id, count(*) AS rated, count(*) FILTER (WHERE f.rating = 1) AS helpful
    FROM feedback f JOIN used ON used.id = f.chat_log_id
    GROUP BY used.document_id
), counted AS MATERIALIZED (
    SELECT document_id, count(*) AS questions, max(created_at) AS last_asked_at FROM used GROUP BY document_id
)
SELECT d.id AS document_id, d.title, counted.questions, counted.last_asked_at,
       coalesce(rated.rated, 0) AS rated, coalesce(rated.helpful, 0) AS helpful
FROM counted
JOIN documents d ON d.id = counted.document_id
LEFT JOIN rated ON rated.document_id = counted.document_id
ORDER BY counted.questions DESC, d.title
LIMIT %(limit)s

-- analytics_unanswered --
-- Questions the documents could not answer, the same wording counted once, most asked first.
SELECT (array_agg(l.question ORDER BY l.created_at DESC))[1] AS question,
       (array_agg(l.id ORDER BY l.created_at DESC))[1] AS latest_id,
       count(*) AS times, max(l.created_at) AS last_asked_at,
       coalesce(array_agg(DISTINCT l.user_group) FILTER (WHERE l.user_group <> ''), '{}') AS user_groups
FROM chat_logs l
WHERE rag_is_asked(l, 'question', %(start)s, %(end)s, %(document_id)s, %(user_group)s)
  AND l.outcome = 'no_context'
GROUP BY lower(trim(BOTH ' .?!' FROM l.question))
ORDER BY times DESC, last_asked_at DESC
LIMIT %(limit)s

-- analytics_questions --
-- Questions, or searches of programs, newest first, with their rating. No person is named. `text` is looked for in
-- question and answer.
SELECT l.id, l.created_at, l.user_group, l.language, l.question, l.answer, l.outcome, l.model, l.total_ms,
       l.first_token_ms, l.cost, l.is_priced,
       (SELECT max(f.rating) FROM feedback f WHERE f.chat_log_id = l.id) AS rating,
       (SELECT coalesce(string_agg(f.comment, ' / ' ORDER BY f.created_at), '')
        FROM feedback f WHERE f.chat_log_id = l.id AND f.comment <> '') AS comment,
       (SELECT coalesce(array_agg(d.title ORDER BY d.title), '{}')
        FROM documents d WHERE d.id = ANY (l.document_ids)) AS documents
FROM chat_logs l
WHERE rag_is_asked(l, %(kind)s, %(start)s, %(end)s, %(document_id)s, %(user_group)s)
  AND (%(outcome)s::text IS NULL OR l.outcome = %(outcome)s)
  AND (%(text)s::text IS NULL OR position(lower(%(text)s) IN lower(l.question)) > 0
       OR position(lower(%(text)s) IN lower(l.answer)) > 0)
ORDER BY CASE WHEN %(slowest_first)s THEN coalesce(l.total_ms, 0) END DESC, l.created_at DESC, l.id
LIMIT %(limit)s OFFSET %(offset)s

-- analytics_count_questions --
-- How many questions these filters leave.
SELECT count(*)
FROM chat_logs l
WHERE rag_is_asked(l, %(kind)s, %(start)s, %(end)s, %(document_id)s, %(user_group)s)
  AND (%(outcome)s::text IS NULL OR l.outcome = %(outcome)s)
  AND (%(text)s::text IS NULL OR position(lower(%(text)s) IN lower(l.question)) > 0
       OR position(lower(%(text)s) IN lower(l.answer)) > 0)

-- analytics_question --
-- One question with everything that was logged of it.
SELECT l.id, l.created_at, l.user_group, l.language, l.question, l.answer, l.outcome, l.error, l.model, l.total_ms,
       l.first_token_ms, l.cost, l.is_priced, l.rag_details,
       (SELECT max(f.rating) FROM feedback f WHERE f.chat_log_id = l.id) AS rating,
       (SELECT coalesce(string_agg(f.comment, ' / ' ORDER BY f.created_at), '')
        FROM feedback f WHERE f.chat_log_id = l.id AND f.comment <> '') AS comment,
       (SELECT coalesce(array_agg(d.title ORDER BY d.title), '{}')
        FROM documents d WHERE d.id = ANY (l.document_ids)) AS documents
FROM chat_logs l
WHERE l.id = %(chat_log_id)s

-- analytics_question_passages --
-- The passages found for a question in the order found, with their places before and after reranking.
-- What a deleted document held is not shown: its title is null and its preview empty.
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
LEFT JOIN document_chunks c ON c.id = nullif(found.passage ->> 'chunkId', '')::uuid
WHERE l.id = %(chat_log_id)s
ORDER BY found.position

-- analytics_question_charges --
-- The paid calls made for a question, in their order.
SELECT operation, provider, model, input_tokens, cached_input_tokens, output_tokens, search_units, cost, is_estimated
FROM cost_ledger
WHERE chat_log_id = %(chat_log_id)s
ORDER BY created_at, operation

-- analytics_user_groups --
-- Groups to filter by: those of accounts, and those that asked in the period.
SELECT user_group FROM accounts WHERE user_group <> ''
UNION
SELECT user_group FROM chat_logs WHERE user_group <> '' AND created_at >= %(start)s AND created_at < %(end)s
ORDER BY 1
