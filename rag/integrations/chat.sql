-- Threads of chat programs such as Slack.

-- account_in_chat --
-- Find the account that has the e-mail address by which a chat program knows somebody.
SELECT id, name, role, user_group, email FROM accounts
WHERE tenant_id = (SELECT rag_tenant()) AND lower(email) = lower(%(email)s) AND is_active
  AND NOT EXISTS (SELECT FROM tenants WHERE suspended_at IS NOT NULL)

-- conversation_of_thread --
-- Find the conversation that a person's questions in a thread continue.
SELECT conversation_id FROM chat_threads
WHERE tenant_id = (SELECT rag_tenant()) AND program = %(program)s AND channel = %(channel)s AND thread = %(thread)s
  AND account_id = %(account_id)s

-- note_thread --
-- Remember which conversation a person's questions in a thread go on with.
INSERT INTO chat_threads (tenant_id, program, channel, thread, account_id, conversation_id)
VALUES (rag_tenant(), %(program)s, %(channel)s, %(thread)s, %(account_id)s, %(conversation_id)s)
ON CONFLICT (tenant_id, program, channel, thread, account_id) DO UPDATE
    SET conversation_id = excluded.conversation_id

-- forget_thread --
-- Have the next question of a person in a thread begin a new conversation.
DELETE FROM chat_threads
WHERE tenant_id = (SELECT rag_tenant()) AND program = %(program)s AND channel = %(channel)s AND thread = %(thread)s
  AND account_id = %(account_id)s

-- note_chat_delivery --
-- Remember for a day what a chat program delivered; no row where it was delivered before.
WITH forgotten AS (
    DELETE FROM chat_deliveries WHERE tenant_id = (SELECT rag_tenant()) AND delivered_at < now() - interval '1 day'
)
INSERT INTO chat_deliveries (tenant_id, program, delivery) VALUES (rag_tenant(), %(program)s, %(delivery)s)
ON CONFLICT DO NOTHING
