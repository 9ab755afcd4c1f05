-- list_conversations --
-- A person's conversations, the one last used first.
SELECT id, title, collection_id, created_at, updated_at
FROM conversations
WHERE account_id = %(account_id)s
ORDER BY updated_at DESC, id
LIMIT %(limit)s

-- get_conversation --
-- One conversation, if it is this person's.
SELECT id, title, collection_id, created_at, updated_at
FROM conversations
WHERE id = %(conversation_id)s AND account_id = %(account_id)s

-- create_conversation --
-- A new, empty conversation in a collection of this tenant.
INSERT INTO conversations (tenant_id, account_id, collection_id, title)
SELECT tenant_id, %(account_id)s, id, %(title)s
FROM collections
WHERE id = %(collection_id)s
RETURNING id, title, collection_id, created_at, updated_at

-- rename_conversation --
-- Its place in the list stays as it was.
UPDATE conversations SET title = %(title)s
WHERE id = %(conversation_id)s AND account_id = %(account_id)s
RETURNING id, title, collection_id, created_at, updated_at

-- delete_conversation --
-- Messages go with it; the log of its questions stays, for the costs.
DELETE FROM conversations
WHERE id = %(conversation_id)s AND account_id = %(account_id)s

-- list_messages --
-- The last messages of a person's conversation, oldest first, with what the log and the person's own rating say.
SELECT *
FROM (
    SELECT m.id, m.conversation_id, m.role, m.content, m.state, m.notice, m.citations, m.chat_log_id, m.created_at,
           l.outcome, CASE WHEN l.is_priced THEN l.cost END AS cost, l.total_ms, f.rating
    FROM messages m
    JOIN conversations c ON c.id = m.conversation_id AND c.account_id = %(account_id)s
    LEFT JOIN chat_logs l ON l.id = m.chat_log_id AND l.outcome IS NOT NULL
    LEFT JOIN feedback f ON f.chat_log_id = m.chat_log_id AND f.account_id = %(account_id)s
    WHERE m.conversation_id = %(conversation_id)s
    ORDER BY m.created_at DESC, m.id DESC
    LIMIT %(last)s
) AS newest
ORDER BY created_at, id

-- rate_answer --
-- One rating per person and answer; rating again replaces it.
INSERT INTO feedback (tenant_id, chat_log_id, account_id, rating, comment)
SELECT m.tenant_id, m.chat_log_id, c.account_id, %(rating)s, %(comment)s
FROM messages m
JOIN conversations c ON c.id = m.conversation_id AND c.account_id = %(account_id)s
WHERE m.id = %(message_id)s AND m.chat_log_id IS NOT NULL
ON CONFLICT (chat_log_id, account_id) DO UPDATE
    SET rating = excluded.rating, comment = excluded.comment, created_at = now()
