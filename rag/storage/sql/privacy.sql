-- Texts of people: exported, erased for one person, and forgotten after a time.

-- person_by_email --
-- Find the account with this e-mail address.
SELECT id, email, name FROM accounts WHERE email = %(email)s

-- export_person --
-- Read everything kept about one person, as JSON, without the hashes of passwords and sessions.
SELECT jsonb_build_object(
    'account', (SELECT to_jsonb(a) FROM (
        SELECT id, tenant_id, email, name, role, user_group, is_active, language, created_at, last_signed_in_at,
               last_failed_at, failed_attempts, password_asked_at, last_collection_id, directory_fields,
               removed_by_directory_at
        FROM accounts WHERE id = %(account_id)s) AS a),
    'sessions', (SELECT coalesce(jsonb_agg(to_jsonb(s) - 'token_hash' ORDER BY s.created_at), '[]')
                 FROM sessions s WHERE s.account_id = %(account_id)s),
    'conversations', (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'title', c.title, 'created_at', c.created_at, 'messages', (
                SELECT coalesce(jsonb_agg(jsonb_build_object('role', m.role, 'content', m.content,
                                                             'created_at', m.created_at) ORDER BY m.created_at), '[]')
                FROM messages m WHERE m.conversation_id = c.id)) ORDER BY c.created_at), '[]')
        FROM conversations c WHERE c.account_id = %(account_id)s),
    'questions', (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'asked_at', l.created_at, 'question', l.question, 'answer', l.answer, 'outcome', l.outcome,
            'group', l.user_group, 'cost', l.cost, 'sent',
            (SELECT p.messages FROM prompts p WHERE p.chat_log_id = l.id)) ORDER BY l.created_at), '[]')
        FROM chat_logs l WHERE l.account_id = %(account_id)s),
    'golden_questions', (SELECT coalesce(jsonb_agg(g.golden ORDER BY g.created_at), '[]')
        FROM golden_questions g
        WHERE g.golden ->> 'asked_as' IN (SELECT id::text FROM chat_logs WHERE account_id = %(account_id)s)),
    'ratings', (SELECT coalesce(jsonb_agg(to_jsonb(f) ORDER BY f.created_at), '[]')
                FROM feedback f WHERE f.account_id = %(account_id)s),
    'asked_a_person', (SELECT coalesce(jsonb_agg(to_jsonb(h) ORDER BY h.created_at), '[]')
                       FROM help_requests h WHERE h.account_id = %(account_id)s),
    'acts', (SELECT coalesce(jsonb_agg(to_jsonb(g) ORDER BY g.id), '[]')
             FROM audit_log g WHERE g.account_id = %(account_id)s OR g.target_id = %(account_id)s::text)
)

-- erase_ratings --
-- Remove a person's comments, and their name from ratings.
UPDATE feedback SET comment = '', account_id = NULL
WHERE account_id = %(account_id)s OR chat_log_id IN (SELECT id FROM chat_logs WHERE account_id = %(account_id)s)

-- erase_help_requests --
-- Delete a person's requests for help.
DELETE FROM help_requests
WHERE account_id = %(account_id)s OR chat_log_id IN (SELECT id FROM chat_logs WHERE account_id = %(account_id)s)

-- erase_gap_questions --
-- Delete a person's questions from the gaps.
DELETE FROM gap_questions WHERE chat_log_id IN (SELECT id FROM chat_logs WHERE account_id = %(account_id)s)

-- erase_trials --
-- Erase the texts of a person's questions that were asked again: by somebody who looked into one and ran it with other
-- settings, or in a run, as golden questions made of them. Times, costs and outcomes stay.
WITH trials AS MATERIALIZED (
    SELECT again.id FROM chat_logs asked
    JOIN chat_logs again ON again.tenant_id = asked.tenant_id AND again.kind = 'evaluation'
        AND again.question = asked.question
    WHERE asked.account_id = %(account_id)s AND asked.question <> ''
      AND NOT EXISTS (SELECT FROM evaluation_results e WHERE e.chat_log_id = again.id)
    UNION
    SELECT e.chat_log_id FROM chat_logs asked
    JOIN evaluation_runs r ON r.tenant_id = asked.tenant_id
    CROSS JOIN LATERAL jsonb_array_elements(r.golden) WITH ORDINALITY AS golden(question, place)
    JOIN evaluation_results e ON e.run_id = r.id AND e.place = golden.place - 1
    WHERE asked.account_id = %(account_id)s AND golden.question ->> 'asked_as' = asked.id::text
), forgotten AS (
    DELETE FROM prompts WHERE chat_log_id IN (SELECT id FROM trials)
)
UPDATE chat_logs
SET question = '', answer = '', error = '',
    rag_details = jsonb_build_object('timing', coalesce(rag_details -> 'timing', '{}'),
                                     'costs', coalesce(rag_details -> 'costs', '{}'))
WHERE id IN (SELECT id FROM trials)

-- erase_golden_questions --
-- Delete golden questions that were made of a person's.
DELETE FROM golden_questions
WHERE golden ->> 'asked_as' IN (SELECT id::text FROM chat_logs WHERE account_id = %(account_id)s)

-- erase_run_questions --
-- Erase golden questions that were made of a person's from the runs that asked them; what was measured stays.
UPDATE evaluation_runs r
SET golden = (SELECT jsonb_agg(CASE WHEN asked.golden ->> 'asked_as' IN (
                                        SELECT id::text FROM chat_logs WHERE account_id = %(account_id)s)
                                    THEN jsonb_build_object('question', 'erased ' || asked.place) ELSE asked.golden END
                               ORDER BY asked.place)
              FROM jsonb_array_elements(r.golden) WITH ORDINALITY AS asked(golden, place))
WHERE EXISTS (SELECT FROM jsonb_array_elements(r.golden) AS asked(golden)
              WHERE asked.golden ->> 'asked_as' IN (
                  SELECT id::text FROM chat_logs WHERE account_id = %(account_id)s))

-- erase_prompts --
-- Delete the prompts sent for a person's questions.
DELETE FROM prompts WHERE chat_log_id IN (SELECT id FROM chat_logs WHERE account_id = %(account_id)s)

-- erase_empty_gaps --
-- Delete gaps that have no question left.
DELETE FROM gaps g WHERE g.tenant_id = rag_tenant() AND NOT EXISTS (SELECT FROM gap_questions q WHERE q.gap_id = g.id)

-- erase_conversations --
-- Delete a person's conversations.
DELETE FROM conversations WHERE account_id = %(account_id)s

-- erase_questions --
-- Erase the texts of a person's questions; times, costs and outcomes stay.
UPDATE chat_logs
SET question = '', answer = '', error = '', account_id = NULL, conversation_id = NULL,
    rag_details = jsonb_build_object('timing', coalesce(rag_details -> 'timing', '{}'),
                                     'costs', coalesce(rag_details -> 'costs', '{}'))
WHERE account_id = %(account_id)s

-- erase_counted_people --
-- Drop the sums of days and weeks, which name who asked; they are added up again without the person.
WITH weeks AS (DELETE FROM question_weeks WHERE people @> ARRAY[%(account_id)s::uuid])
DELETE FROM question_days WHERE people @> ARRAY[%(account_id)s::uuid]

-- erase_acts --
-- Erase a person from the audit log.
UPDATE audit_log
SET account_id = NULLIF(account_id, %(account_id)s),
    actor = CASE WHEN actor IN (%(email)s, %(name)s) THEN 'erased' ELSE actor END,
    target = CASE WHEN target IN (%(email)s, %(name)s) THEN 'erased' ELSE target END,
    changes = CASE WHEN target_id = %(account_id)s::text OR target = %(email)s THEN '{}' ELSE changes END,
    target_id = CASE WHEN target_id = %(account_id)s::text THEN '' ELSE target_id END,
    thing_id = CASE WHEN thing_id = %(account_id)s::text THEN '' ELSE thing_id END
WHERE account_id = %(account_id)s OR actor = %(email)s OR target = %(email)s OR target_id = %(account_id)s::text

-- erase_owned_answers --
-- Remove a person as the owner of documents.
UPDATE documents SET metadata = metadata - 'owner'
WHERE metadata ->> 'owner' IN (%(email)s, %(name)s) AND metadata ->> 'owner' <> ''

-- erase_account --
-- Delete an account.
DELETE FROM accounts WHERE id = %(account_id)s

-- note_erasure --
-- Note that a person was erased, with the counts.
INSERT INTO erasures (tenant_id, erased_id, counts) VALUES (rag_tenant(), %(account_id)s, %(counts)s)
RETURNING id, erased_at

-- keep_erasure --
-- Keep the receipt of an erasure that this database forgot by a restore.
INSERT INTO erasures (id, tenant_id, erased_id, counts, erased_at)
VALUES (%(id)s, rag_tenant(), %(erased_id)s, %(counts)s, %(erased_at)s)
ON CONFLICT DO NOTHING

-- person_by_id --
-- Find the account with this id.
SELECT id, email, name FROM accounts WHERE id = %(account_id)s

-- erasures --
-- List erasures, the latest first.
SELECT id, erased_id, counts, erased_at FROM erasures ORDER BY erased_at DESC

-- retention_days --
-- Read after how many days texts are forgotten; null keeps them.
SELECT (settings ->> 'retention_days')::integer FROM tenants WHERE id = rag_tenant()

-- set_retention_days --
-- Set after how many days texts are forgotten; null keeps them.
UPDATE tenants SET settings = CASE WHEN %(days)s::integer IS NULL THEN settings - 'retention_days'
    ELSE settings || jsonb_build_object('retention_days', %(days)s::integer) END
WHERE id = rag_tenant()

-- forget_ratings --
-- Forget comments of old ratings.
UPDATE feedback SET comment = '' WHERE comment <> '' AND created_at < %(before)s

-- forget_help_requests --
-- Forget the question and comment of old requests; an answer stays for its asker as long as the conversation does.
UPDATE help_requests SET question = '', comment = '' WHERE created_at < %(before)s AND (question, comment) <> ('', '')

-- forget_gap_questions --
-- Delete old questions from the gaps.
DELETE FROM gap_questions q USING chat_logs l WHERE l.id = q.chat_log_id AND l.created_at < %(before)s

-- forget_prompts --
-- Delete prompts of old questions.
DELETE FROM prompts p USING chat_logs l WHERE l.id = p.chat_log_id AND l.created_at < %(before)s

-- forget_questions --
-- Forget the texts of old questions, those that somebody asked again included; golden questions are the company's.
UPDATE chat_logs l
SET question = '', answer = '', error = '',
    rag_details = jsonb_build_object('timing', coalesce(rag_details -> 'timing', '{}'),
                                     'costs', coalesce(rag_details -> 'costs', '{}'))
WHERE created_at < %(before)s AND outcome IS NOT NULL AND (question, answer) <> ('', '')
  AND (kind <> 'evaluation' OR NOT EXISTS (SELECT FROM evaluation_results e WHERE e.chat_log_id = l.id))

-- forget_conversations --
-- Delete whole conversations once their last message is as old.
DELETE FROM conversations WHERE updated_at < %(before)s
