-- Golden questions and runs over them.

-- put_golden_question --
-- Add one question of a collection; the same words again replace it.
INSERT INTO golden_questions (tenant_id, collection_id, golden)
VALUES (rag_tenant(), %(collection_id)s, %(golden)s)
ON CONFLICT (collection_id, md5(golden ->> 'question')) DO UPDATE SET golden = excluded.golden

-- list_golden_questions --
-- List the golden questions of a collection, the oldest first.
SELECT id, golden FROM golden_questions WHERE collection_id = %(collection_id)s ORDER BY created_at, id

-- delete_same_golden_question --
-- Delete another golden question of the collection that has the words of this one.
DELETE FROM golden_questions
WHERE collection_id = %(collection_id)s AND golden ->> 'question' = %(golden)s::jsonb ->> 'question' AND id <> %(id)s

-- change_golden_question --
-- Put another golden question in the place of one.
UPDATE golden_questions SET golden = %(golden)s WHERE id = %(id)s AND collection_id = %(collection_id)s

-- delete_golden_questions --
-- Delete golden questions; return them to put back.
WITH removed AS (DELETE FROM golden_questions WHERE id = ANY (%(ids)s::uuid[]) RETURNING *)
SELECT jsonb_agg(to_jsonb(removed))::text FROM removed

-- put_golden_questions_back --
-- Keep golden questions again, as they were, but for those that were written again meanwhile.
WITH kept AS (
    INSERT INTO golden_questions
    SELECT g.* FROM jsonb_populate_recordset(NULL::golden_questions, %(kept)s::jsonb) g
    ON CONFLICT DO NOTHING
)
SELECT 1

-- golden_from_feedback --
-- Suggest questions of the last half year whose answer was rated as helpful, with the chunks that support it; each
-- wording once, and none that is a golden question already.
SELECT DISTINCT ON (lower(l.question)) l.question, coalesce(d.file_name, '') AS document, l.answer, l.language,
       coalesce((SELECT array_agg(DISTINCT page ORDER BY page)
                 FROM jsonb_array_elements(p.passages) AS passage,
                      generate_series((passage ->> 'firstPage')::integer, (passage ->> 'lastPage')::integer) AS page
                 WHERE passage ->> 'state' = 'held' AND passage ->> 'documentId' = d.id::text), '{}') AS pages,
       true AS is_answerable, l.id::text AS asked_as
FROM question_outcomes l
JOIN prompts p ON p.chat_log_id = l.id
JOIN documents d ON d.id = l.document_ids[1]
WHERE l.collection_id = %(collection_id)s AND l.created_at > now() - interval '180 days' AND l.kind = 'question'
  AND l.is_answered AND (%(document_id)s::uuid IS NULL OR d.id = %(document_id)s)
  AND EXISTS (SELECT FROM feedback f WHERE f.chat_log_id = l.id AND f.rating = 1)
  AND NOT EXISTS (SELECT FROM golden_questions g WHERE g.collection_id = l.collection_id
                  AND lower(g.golden ->> 'question') = lower(l.question))
ORDER BY lower(l.question), l.created_at DESC
LIMIT %(limit)s

-- golden_from_gaps --
-- Suggest solved gaps, with the document that answers them, and dismissed ones, which are not to be answered.
SELECT latest.question, coalesce(d.file_name, '') AS document, '' AS answer, latest.language,
       '{}'::integer[] AS pages, g.status = 'solved' AS is_answerable, latest.id::text AS asked_as
FROM gaps g
JOIN LATERAL (SELECT l.id, l.question, l.language FROM gap_questions q JOIN chat_logs l ON l.id = q.chat_log_id
              WHERE q.gap_id = g.id AND l.question <> '' ORDER BY l.created_at DESC LIMIT 1) latest ON true
LEFT JOIN documents d ON d.id = g.solved_by_id
WHERE g.collection_id = %(collection_id)s
  AND (g.status = 'solved' AND d.id IS NOT NULL OR g.status = 'dismissed' AND %(document_id)s::uuid IS NULL)
  AND (%(document_id)s::uuid IS NULL OR d.id = %(document_id)s)
  AND NOT EXISTS (SELECT FROM golden_questions o WHERE o.collection_id = g.collection_id
                  AND lower(o.golden ->> 'question') = lower(latest.question))
ORDER BY g.changed_at DESC
LIMIT %(limit)s

-- golden_from_documents --
-- Suggest questions that documents answer: those a model wrote when it tagged them, and those about their headings.
SELECT asked.question, d.file_name AS document, '' AS answer, d.language, '{}'::integer[] AS pages,
       true AS is_answerable, '' AS asked_as
FROM documents d
CROSS JOIN LATERAL (
    SELECT question, min(place) AS place
    FROM jsonb_array_elements_text(coalesce(d.metadata -> 'questions', '[]')
                                   || coalesce(d.metadata -> 'suggested_questions', '[]'))
        WITH ORDINALITY AS listed (question, place)
    GROUP BY question
) asked
WHERE d.collection_id = %(collection_id)s AND d.status = 'completed'
  AND (%(document_id)s::uuid IS NULL OR d.id = %(document_id)s)
  AND NOT EXISTS (SELECT FROM golden_questions g WHERE g.collection_id = d.collection_id
                  AND lower(g.golden ->> 'question') = lower(asked.question))
ORDER BY d.created_at DESC, d.id, asked.place
LIMIT %(limit)s

-- open_evaluation_run --
-- Add a run with the questions, the model and the settings that it measures.
INSERT INTO evaluation_runs (tenant_id, collection_id, profile, model, overrides, golden, is_judged, is_nightly)
VALUES (rag_tenant(), %(collection_id)s, %(profile)s, %(model)s, %(overrides)s, %(golden)s, %(is_judged)s,
        %(is_nightly)s)
RETURNING id

-- evaluation_runs --
-- List the newest runs, or read one, with the progress of each.
SELECT r.id, r.collection_id, c.name AS collection, r.profile, r.model, r.overrides,
       jsonb_array_length(r.golden) AS questions,
       (SELECT count(*) FROM evaluation_results e WHERE e.run_id = r.id) AS done, r.figures, r.created_at, r.finished_at,
       r.is_judged, r.is_nightly,
       r.finished_at IS NULL AND coalesce(r.claimed_until > clock_timestamp(), false) AS is_worked_on
FROM evaluation_runs r JOIN collections c ON c.id = r.collection_id
WHERE (%(run_id)s::uuid IS NULL OR r.id = %(run_id)s)
  AND (%(collection_id)s::uuid IS NULL OR r.collection_id = %(collection_id)s)
ORDER BY r.created_at DESC
LIMIT %(limit)s

-- evaluation_golden --
-- Read the questions of a run.
SELECT golden FROM evaluation_runs WHERE id = %(run_id)s

-- evaluation_results --
-- List the figures of each question of a run, in their order.
SELECT e.place, e.figures, e.chat_log_id, coalesce(l.outcome, '') AS outcome, coalesce(l.answer, '') AS answer
FROM evaluation_results e LEFT JOIN chat_logs l ON l.id = e.chat_log_id
WHERE e.run_id = %(run_id)s
ORDER BY e.place

-- claim_run --
-- Claim a run for one worker, or renew its claim, for so many seconds; nothing while another worker has it.
UPDATE evaluation_runs
SET claimed_by = %(worker)s, claimed_until = clock_timestamp() + %(seconds)s * interval '1 second'
WHERE id = %(run_id)s AND (claimed_by = %(worker)s OR claimed_until IS NULL OR claimed_until < clock_timestamp())

-- release_run --
-- End a worker's claim on a run.
UPDATE evaluation_runs SET claimed_by = NULL, claimed_until = NULL WHERE id = %(run_id)s AND claimed_by = %(worker)s

-- add_evaluation_result --
-- Add the figures of one question; nothing where another worker has claimed the run.
INSERT INTO evaluation_results (run_id, place, tenant_id, chat_log_id, figures)
SELECT r.id, %(place)s, r.tenant_id, %(chat_log_id)s, %(figures)s
FROM evaluation_runs r WHERE r.id = %(run_id)s AND r.claimed_by = %(worker)s
ON CONFLICT DO NOTHING

-- finish_evaluation_run --
-- Store the figures of a run at its end; nothing where another worker has claimed it.
UPDATE evaluation_runs SET figures = %(figures)s, finished_at = clock_timestamp()
WHERE id = %(run_id)s AND claimed_by = %(worker)s

-- recent_questions --
-- List the questions people asked a collection last, each wording once.
SELECT array_agg(recent.question ORDER BY recent.asked_at DESC)
FROM (SELECT min(l.question) AS question, max(l.created_at) AS asked_at
      FROM question_outcomes l
      WHERE l.collection_id = %(collection_id)s AND l.kind = 'question' AND l.is_judged
        AND length(l.question) BETWEEN 3 AND %(longest)s
      GROUP BY lower(btrim(l.question, ' .?!'))
      ORDER BY asked_at DESC
      LIMIT %(limit)s) AS recent
