-- open_help_request --
-- Pass the question behind a person's own answer on, once; passing it on again while it is open changes the reason.
INSERT INTO help_requests (tenant_id, collection_id, account_id, conversation_id, chat_log_id, question, reason, comment)
SELECT m.tenant_id, coalesce(l.collection_id, c.collection_id), c.account_id, c.id, l.id, l.question, %(reason)s,
       %(comment)s
FROM messages m
JOIN conversations c ON c.id = m.conversation_id AND c.owner_id = %(account_id)s
JOIN chat_logs l ON l.id = m.chat_log_id
WHERE m.id = %(message_id)s AND m.role = 'assistant'
ON CONFLICT (chat_log_id) DO UPDATE
    SET reason = CASE WHEN help_requests.status = 'open' THEN excluded.reason ELSE help_requests.reason END,
        comment = CASE WHEN help_requests.status = 'open' THEN excluded.comment ELSE help_requests.comment END
RETURNING id

-- list_help_requests --
-- List requests of the collections that the reader may read: open ones first, those waiting longest at the top; then
-- the rest, the latest first.
SELECT h.id, h.collection_id, h.conversation_id, h.chat_log_id, h.question, h.reason, h.comment, h.status, h.answer,
       h.created_at, h.answered_at, h.seen_at,
       coalesce(nullif(asker.name, ''), asker.email, '') AS asker,
       coalesce(nullif(helper.name, ''), helper.email, '') AS answered_by,
       coalesce(l.answer, '') AS answer_of_documents
FROM help_requests h
LEFT JOIN accounts asker ON asker.id = h.account_id
LEFT JOIN accounts helper ON helper.id = h.answered_by
LEFT JOIN chat_logs l ON l.id = h.chat_log_id
WHERE h.tenant_id = rag_tenant()
  AND (%(request_id)s::uuid IS NULL OR h.id = %(request_id)s)
  AND (%(status)s::text IS NULL OR h.status = %(status)s)
  AND (%(collection_id)s::uuid IS NULL OR h.collection_id = %(collection_id)s)
  AND (%(account_id)s::uuid IS NULL OR h.account_id = %(account_id)s)
  AND (%(conversation_id)s::uuid IS NULL OR h.conversation_id = %(conversation_id)s)
ORDER BY h.status <> 'open', CASE h.status WHEN 'open' THEN h.created_at END, h.answered_at DESC, h.id
LIMIT %(limit)s

-- count_open_help_requests --
-- Count the requests that wait in the collections the reader may read.
SELECT count(*) FROM help_requests WHERE tenant_id = rag_tenant() AND status = 'open'

-- end_help_request --
-- Answer or dismiss one; answering again replaces the answer, which its asker has not seen then.
UPDATE help_requests
SET status = %(status)s, answer = %(answer)s, answered_by = %(answered_by)s, answered_at = now(), seen_at = NULL
WHERE tenant_id = rag_tenant() AND id = %(request_id)s
RETURNING id

-- see_help_answers --
-- Note that the asker has seen the answers.
UPDATE help_requests SET seen_at = now()
WHERE tenant_id = rag_tenant() AND account_id = %(account_id)s AND conversation_id = %(conversation_id)s
  AND answered_at IS NOT NULL AND seen_at IS NULL

-- conversations_with_unseen_help --
-- List the conversations in which a person's answer waits for the asker.
SELECT DISTINCT conversation_id AS id FROM help_requests
WHERE tenant_id = rag_tenant() AND account_id = %(account_id)s AND answered_at IS NOT NULL AND seen_at IS NULL
  AND conversation_id IS NOT NULL
