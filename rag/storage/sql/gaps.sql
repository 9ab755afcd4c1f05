-- Gaps: questions that the documents did not answer, grouped by what they ask.

-- ungrouped_questions --
-- List questions of the last half year that may be gaps and belong to none, those whose asker waits for a person first,
-- then the latest: not in the documents, refused, answered without a source, only some of several questions answered,
-- rated as not helpful, or passed on.
WITH wanted AS (
    (SELECT h.chat_log_id AS id, h.status = 'open' AS waits, h.created_at FROM help_requests h
     WHERE h.tenant_id = rag_tenant() AND h.created_at > now() - interval '180 days'
       AND NOT EXISTS (SELECT FROM gap_questions g WHERE g.chat_log_id = h.chat_log_id)
     ORDER BY h.status <> 'open', h.created_at DESC LIMIT %(limit)s)
    UNION ALL
    (SELECT l.id, false, l.created_at FROM question_outcomes l
     WHERE l.tenant_id = rag_tenant() AND l.created_at > now() - interval '180 days' AND l.kind = 'question'
       AND l.may_be_gap AND (NOT l.is_perhaps OR l.document_ids = '{}' OR (l.log).has_unanswered)
       -- Texts that were forgotten are nobody's question any more.
       AND l.question <> ''
       AND NOT EXISTS (SELECT FROM gap_questions g WHERE g.chat_log_id = l.id)
     ORDER BY l.created_at DESC LIMIT %(limit)s)
    UNION ALL
    (SELECT f.chat_log_id, false, f.created_at FROM feedback f
     WHERE f.tenant_id = rag_tenant() AND f.created_at > now() - interval '180 days' AND f.rating = 0
       AND NOT EXISTS (SELECT FROM gap_questions g WHERE g.chat_log_id = f.chat_log_id)
     ORDER BY f.created_at DESC LIMIT %(limit)s)
), first AS (
    SELECT id, bool_or(waits) AS waits, max(created_at) AS created_at FROM wanted GROUP BY id
)
SELECT l.id, l.collection_id, l.question, c.embedding_model, coalesce(l.language, '') AS language
FROM first
JOIN chat_logs l ON l.id = first.id
JOIN collections c ON c.id = l.collection_id
WHERE l.created_at > now() - interval '180 days' AND l.kind = 'question' AND l.question <> ''
ORDER BY NOT first.waits, first.created_at DESC, l.id
LIMIT %(limit)s

-- nearest_gap --
-- Find the gap of a collection whose questions are most like a vector on average. `offsets` are the products of the
-- vector with the mean of each language, which is no part of a question's meaning; `offset` is that of other languages.
SELECT m.gap_id,
       sum(-(m.total <#> %(vector)s) - m.questions * coalesce((%(offsets)s::jsonb ->> m.language)::float8, %(offset)s))
           / sum(m.questions) AS likeness
FROM gap_meanings m JOIN gaps g ON g.id = m.gap_id
WHERE g.collection_id = %(collection_id)s AND m.tenant_id = rag_tenant() AND m.embedder = %(embedder)s
GROUP BY m.gap_id ORDER BY likeness DESC, m.gap_id LIMIT 1

-- lock_gaps --
-- Take the turn to group questions, until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('gaps ' || rag_tenant(), 0))

-- open_gap --
-- Add a gap.
INSERT INTO gaps (tenant_id, collection_id) VALUES (rag_tenant(), %(collection_id)s) RETURNING id

-- add_gap_question --
-- Put a question to its gap. One that is asked again although it was solved is open again.
WITH reopened AS (
    UPDATE gaps SET status = 'open', changed_at = now()
    WHERE id = %(gap_id)s AND status = 'solved' AND solved_by_id IS NOT NULL
      AND changed_at < (SELECT created_at FROM chat_logs WHERE id = %(chat_log_id)s)
)
INSERT INTO gap_questions (chat_log_id, tenant_id, gap_id, embedder, embedding, probability, asked_at, account_id,
                           user_group, language, outcome, wording)
SELECT l.id, l.tenant_id, %(gap_id)s, %(embedder)s, %(embedding)s,
       (l.rag_details #>> '{evidence,probability}')::real, l.created_at, l.account_id, l.user_group,
       coalesce(l.language, ''), coalesce(l.outcome, ''), hashtext(l.question)
FROM chat_logs l WHERE l.id = %(chat_log_id)s

-- list_gaps --
-- List gaps that were asked in a period or for which somebody waits: those first, then the most asked, with the latest
-- wording and how often it was asked in the period before. The nearest chunk is the one that the latest question found.
-- Questions are read for the listed gaps alone.
WITH waits AS MATERIALIZED (
    SELECT q.gap_id, count(*) AS waiting FROM help_requests h JOIN gap_questions q ON q.chat_log_id = h.chat_log_id
    WHERE h.tenant_id = rag_tenant() AND h.status = 'open' GROUP BY q.gap_id
), asked AS MATERIALIZED (
    SELECT q.gap_id, q.chat_log_id, q.asked_at, q.user_group, q.language, q.account_id, q.outcome, q.wording,
           q.asked_at >= %(start)s AND q.asked_at < %(end)s AS is_current,
           q.asked_at < %(start)s AND q.asked_at >= %(before)s AS is_before,
           -- Without evidence nothing is known of the topic.
           coalesce(q.probability, 1) AS probability
    FROM gap_questions q
    WHERE (q.asked_at >= %(before)s AND q.asked_at < %(end)s OR q.gap_id IN (SELECT gap_id FROM waits))
      AND (%(of_group)s::text IS NULL OR q.user_group = %(of_group)s)
      AND (%(language)s::text IS NULL OR q.language = %(language)s)
), counted AS (
    SELECT gap_id, count(*) FILTER (WHERE is_current) AS times, count(*) FILTER (WHERE is_before) AS times_before,
           max(asked_at) AS last_asked_at,
           count(*) FILTER (WHERE is_current AND rag_is_answered(outcome)) AS badly_rated,
           max(probability) FILTER (WHERE is_current) AS probability
    FROM asked GROUP BY gap_id
), listed AS MATERIALIZED (
    SELECT g.id, g.collection_id, g.status, g.reason, g.assigned_to, g.solved_by_id, g.awaits_id, counted.times,
           counted.times_before, counted.last_asked_at, counted.badly_rated, coalesce(waits.waiting, 0) AS waiting
    FROM counted
    JOIN gaps g ON g.id = counted.gap_id
    LEFT JOIN waits ON waits.gap_id = g.id
    WHERE (counted.times > 0 OR waits.waiting IS NOT NULL)
      -- Who waits is found among the open ones, also where the others were answered or dismissed.
      AND (g.status = %(status)s OR %(status)s = 'open' AND waits.waiting IS NOT NULL)
      AND (%(collection_id)s::uuid IS NULL OR g.collection_id = %(collection_id)s)
      AND (%(off_topic)s::boolean IS NULL
           OR %(off_topic)s = (counted.probability < %(least_probability)s AND counted.badly_rated = 0
                               AND waits.waiting IS NULL))
    ORDER BY waits.waiting IS NULL, counted.times DESC, counted.last_asked_at DESC
    LIMIT %(limit)s
), worded AS (
    SELECT asked.gap_id, count(DISTINCT asked.account_id) FILTER (WHERE is_current) AS people,
           coalesce(array_agg(DISTINCT asked.user_group) FILTER (WHERE is_current AND asked.user_group <> ''), '{}')
               AS user_groups,
           coalesce(array_agg(DISTINCT asked.language) FILTER (WHERE is_current AND asked.language <> ''), '{}')
               AS languages,
           count(DISTINCT asked.wording) FILTER (WHERE is_current) AS wordings
    FROM asked JOIN listed ON listed.id = asked.gap_id
    GROUP BY asked.gap_id
), newest AS (
    SELECT DISTINCT ON (asked.gap_id) asked.gap_id, asked.chat_log_id
    FROM asked JOIN listed ON listed.id = asked.gap_id
    ORDER BY asked.gap_id, asked.asked_at DESC, asked.chat_log_id
)
SELECT listed.id, listed.collection_id, listed.status, listed.reason, listed.assigned_to,
       coalesce(nullif(a.name, ''), a.email, '') AS assignee,
       listed.solved_by_id, coalesce(d.title, '') AS solved_by, listed.awaits_id, listed.times, listed.times_before, worded.people,
       listed.last_asked_at, worded.user_groups, worded.languages, worded.wordings, listed.badly_rated,
       listed.waiting, latest.id AS latest_id, latest.question,
       coalesce((latest.rag_details #>> '{search,rawResults,0,similarity}')::float8, 0) AS nearest_similarity,
       coalesce((SELECT n.title FROM documents n
                 WHERE n.id = nullif(latest.rag_details #>> '{search,rawResults,0,documentId}', '')::uuid), '') AS nearest
FROM listed
JOIN worded ON worded.gap_id = listed.id
JOIN newest ON newest.gap_id = listed.id
JOIN chat_logs latest ON latest.id = newest.chat_log_id
LEFT JOIN accounts a ON a.id = listed.assigned_to
LEFT JOIN documents d ON d.id = listed.solved_by_id
ORDER BY listed.waiting = 0, listed.times DESC, listed.last_asked_at DESC

-- gap_wordings --
-- List the wordings of a gap in a period, each once, the latest first.
SELECT l.question AS wording
FROM gap_questions q JOIN chat_logs l ON l.id = q.chat_log_id
WHERE q.gap_id = %(gap_id)s AND q.asked_at >= %(start)s AND q.asked_at < %(end)s
  AND (%(of_group)s::text IS NULL OR q.user_group = %(of_group)s)
  AND (%(language)s::text IS NULL OR q.language = %(language)s)
GROUP BY l.question ORDER BY max(q.asked_at) DESC, l.question LIMIT %(limit)s

-- waiting_for_gap --
-- List questions of a gap that people passed on and that nobody has answered.
SELECT h.id FROM help_requests h JOIN gap_questions q ON q.chat_log_id = h.chat_log_id
WHERE q.gap_id = %(gap_id)s AND h.status = 'open'
ORDER BY h.created_at

-- change_gap --
-- Change the state of a gap; nothing where it is closed already, or the document that solves it is not there.
UPDATE gaps SET status = %(status)s, reason = %(reason)s, solved_by_id = %(solved_by_id)s, awaits_id = NULL,
                changed_at = now()
WHERE id = %(gap_id)s AND (status = 'open' OR %(status)s = 'open')
  AND (%(solved_by_id)s::uuid IS NULL OR EXISTS (SELECT FROM documents WHERE id = %(solved_by_id)s))

-- await_document --
-- Note the document that was uploaded to answer a gap, in the place of one noted before; nothing where it is closed.
UPDATE gaps SET awaits_id = %(document_id)s, awaited_by = %(account_id)s, changed_at = now()
WHERE id = %(gap_id)s AND status = 'open'

-- answered_gaps --
-- List open gaps whose uploaded document is searchable now, with who uploaded it. Documents of a version that was
-- replaced meanwhile answer too.
SELECT g.id, d.id AS document_id, d.title, a.id AS account_id, a.email, a.name, a.role, a.language
FROM gaps g
JOIN documents d ON d.id = g.awaits_id AND d.status IN ('completed', 'superseded')
JOIN accounts a ON a.id = g.awaited_by
WHERE g.status = 'open'

-- gap_status --
-- Read whether a gap is open, solved or dismissed.
SELECT status FROM gaps WHERE id = %(gap_id)s

-- assign_gap --
-- Assign a gap to a person, or to nobody.
UPDATE gaps SET assigned_to = %(account_id)s, changed_at = now() WHERE id = %(gap_id)s

-- people_to_assign --
-- List the people who can fill a gap: the tenant's managers and administrators.
SELECT id, coalesce(nullif(name, ''), email) AS name FROM accounts
WHERE is_active AND role IN ('manager', 'admin') ORDER BY 2

-- note_answer_document --
-- Note who answers for a written answer, and when it is due for review.
UPDATE documents SET title = %(title)s, metadata = metadata || %(metadata)s WHERE id = %(document_id)s
