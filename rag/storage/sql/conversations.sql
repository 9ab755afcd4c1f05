-- history_changes --
-- Count the changes of what the tenant's people can find, and of this person's conversations.
SELECT coalesce((SELECT changes FROM tenant_changes WHERE tenant_id = (SELECT rag_tenant())), 0),
       coalesce((SELECT changes FROM history_changes
                 WHERE tenant_id = (SELECT rag_tenant()) AND owner_id = %(owner_id)s), 0)

-- list_conversations --
-- List a person's conversations: pinned ones first, then the one last used.
SELECT id, title, collection_id, created_at, updated_at, pinned_at, shared_at,
       EXISTS (
           SELECT FROM help_requests h
           WHERE h.conversation_id = conversations.id AND h.answered_at IS NOT NULL AND h.seen_at IS NULL
       ) AS has_news
FROM conversations
WHERE owner_id = %(account_id)s
  AND NOT EXISTS (SELECT FROM collections l WHERE l.id = conversations.collection_id AND l.binned_at IS NOT NULL)
ORDER BY pinned_at DESC NULLS LAST, updated_at DESC, id
LIMIT %(limit)s

-- find_conversations --
-- List a person's conversations that hold all words, in their titles or messages, the last used first.
SELECT id, title, collection_id, created_at, updated_at, pinned_at, shared_at
FROM conversations
WHERE owner_id = %(account_id)s
  AND NOT EXISTS (SELECT FROM collections l WHERE l.id = conversations.collection_id AND l.binned_at IS NOT NULL)
  AND NOT EXISTS (
      SELECT FROM unnest(%(patterns)s::text[]) AS wanted (pattern)
      WHERE NOT (
          title ILIKE pattern
          OR EXISTS (SELECT FROM messages m WHERE m.conversation_id = conversations.id AND m.content ILIKE pattern)
      )
  )
ORDER BY pinned_at DESC NULLS LAST, updated_at DESC, id
LIMIT %(limit)s

-- get_conversation --
-- Read one conversation, if it is this person's and its collection is not in the bin.
SELECT id, title, collection_id, created_at, updated_at, pinned_at, shared_at, asks_all, narrowed_to
FROM conversations
WHERE id = %(conversation_id)s AND owner_id = %(account_id)s
  AND NOT EXISTS (SELECT FROM collections l WHERE l.id = conversations.collection_id AND l.binned_at IS NOT NULL)

-- create_conversation --
-- Add an empty conversation of an account or an API key to a collection of this tenant.
INSERT INTO conversations (id, tenant_id, account_id, api_key_id, collection_id, title)
SELECT %(conversation_id)s, tenant_id, (SELECT id FROM accounts WHERE id = %(account_id)s),
       (SELECT id FROM api_keys WHERE id = %(account_id)s), id, %(title)s
FROM collections
WHERE id = %(collection_id)s AND binned_at IS NULL
RETURNING id, title, collection_id, created_at, updated_at, pinned_at, shared_at

-- rename_conversation --
-- Rename a conversation without moving it in the list.
UPDATE conversations SET title = %(title)s
WHERE id = %(conversation_id)s AND owner_id = %(account_id)s
RETURNING id, title, collection_id, created_at, updated_at, pinned_at, shared_at

-- pin_conversation --
-- Pin a conversation to the top of the list, or no longer.
UPDATE conversations SET pinned_at = CASE WHEN %(is_pinned)s THEN coalesce(pinned_at, now()) END
WHERE id = %(conversation_id)s AND owner_id = %(account_id)s
RETURNING id, title, collection_id, created_at, updated_at, pinned_at, shared_at

-- share_conversation --
-- Let everybody of the tenant who may read its collection read what it holds by now; sharing again adds the rest.
UPDATE conversations SET shared_at = CASE WHEN %(is_shared)s THEN clock_timestamp() END
WHERE id = %(conversation_id)s AND owner_id = %(account_id)s
RETURNING id, title, collection_id, created_at, updated_at, pinned_at, shared_at

-- get_shared_conversation --
-- Read a conversation that somebody shared, with their name; row-level security asks for its collection.
SELECT c.id, c.title, c.collection_id, c.created_at, c.updated_at, c.shared_at,
       coalesce(nullif(rag_name_of(c.account_id), ''), rag_address_of(c.account_id), '') AS shared_by
FROM conversations c
WHERE c.tenant_id = rag_tenant() AND c.id = %(conversation_id)s AND c.shared_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM collections l WHERE l.id = c.collection_id AND l.binned_at IS NOT NULL)

-- list_shared_messages --
-- List what a conversation held when it was shared, without passages of documents that its reader may not open.
SELECT m.id, m.conversation_id, m.role, m.content, m.state, m.notice, NULL::uuid AS chat_log_id, m.created_at,
       NULL AS outcome, NULL AS cost, NULL AS total_ms, NULL AS rating,
       coalesce((
           SELECT jsonb_agg(shown ORDER BY position)
           FROM jsonb_array_elements(m.citations) WITH ORDINALITY AS stored (shown, position)
           WHERE EXISTS (SELECT FROM documents d WHERE d.id = (shown ->> 'document_id')::uuid)
       ), '[]') AS citations
FROM messages m
JOIN conversations c ON c.id = m.conversation_id AND c.shared_at IS NOT NULL AND m.created_at <= c.shared_at
WHERE c.tenant_id = rag_tenant() AND c.id = %(conversation_id)s AND m.state <> 'streaming'
ORDER BY m.created_at, m.id

-- delete_conversation --
-- Delete a conversation with its messages; return it to put back. The log of its questions stays, for the costs.
WITH gone AS (
    DELETE FROM conversations
    WHERE id = %(conversation_id)s AND owner_id = %(account_id)s
    RETURNING *
)
SELECT jsonb_build_object(
    'conversation', to_jsonb(gone),
    'messages', (SELECT coalesce(jsonb_agg(m), '[]') FROM messages m WHERE m.conversation_id = gone.id),
    'threads', (SELECT coalesce(jsonb_agg(t), '[]') FROM chat_threads t WHERE t.conversation_id = gone.id),
    'logs', (SELECT coalesce(jsonb_agg(l.id), '[]') FROM chat_logs l
             WHERE l.tenant_id = gone.tenant_id AND l.conversation_id = gone.id),
    'help', (SELECT coalesce(jsonb_agg(h.id), '[]') FROM help_requests h
             WHERE h.tenant_id = gone.tenant_id AND h.conversation_id = gone.id)
)::text
FROM gone

-- put_conversation_back --
-- Keep a deleted conversation again, as it was, and so far without what was in it.
INSERT INTO conversations (id, tenant_id, account_id, api_key_id, collection_id, title, created_at, updated_at,
                           pinned_at, shared_at, asks_all, narrowed_to)
SELECT id, tenant_id, account_id, api_key_id, collection_id, title, created_at, updated_at,
       pinned_at, shared_at, asks_all, coalesce(narrowed_to, '{}')
FROM jsonb_populate_record(NULL::conversations, %(kept)s::jsonb -> 'conversation')
RETURNING id

-- put_messages_back --
-- Keep what was in a conversation that is back. An answer that was being written then has ended.
WITH kept AS (
    SELECT (%(kept)s::jsonb #>> '{conversation,id}')::uuid AS id
), said AS (
    INSERT INTO messages (id, tenant_id, conversation_id, role, content, state, notice, citations, chat_log_id,
                          created_at, limited_to)
    SELECT m.id, m.tenant_id, m.conversation_id, m.role, m.content,
           CASE m.state WHEN 'streaming' THEN 'stopped' ELSE m.state END, m.notice, m.citations,
           (SELECT l.id FROM chat_logs l WHERE l.tenant_id = m.tenant_id AND l.id = m.chat_log_id),
           m.created_at, m.limited_to
    FROM jsonb_populate_recordset(NULL::messages, %(kept)s::jsonb -> 'messages') m
), followed AS (
    INSERT INTO chat_threads
    SELECT t.* FROM jsonb_populate_recordset(NULL::chat_threads, %(kept)s::jsonb -> 'threads') t
    ON CONFLICT DO NOTHING
), logged AS (
    UPDATE chat_logs l SET conversation_id = kept.id
    FROM kept
    WHERE l.tenant_id = rag_tenant() AND l.id IN (SELECT jsonb_array_elements_text(%(kept)s::jsonb -> 'logs')::uuid)
), helped AS (
    UPDATE help_requests h SET conversation_id = kept.id
    FROM kept
    WHERE h.tenant_id = rag_tenant() AND h.id IN (SELECT jsonb_array_elements_text(%(kept)s::jsonb -> 'help')::uuid)
)
SELECT id FROM kept

-- list_messages --
-- List the last messages of a person's conversation, oldest first, with what the log and the person's own rating say.
-- Chunks of documents deleted since are left out; only their numbers remain.
SELECT *
FROM (
    SELECT m.id, m.conversation_id, m.role, m.content, m.state, m.notice, m.chat_log_id, m.created_at,
           l.outcome, CASE WHEN l.is_priced THEN l.cost END AS cost, l.total_ms, f.rating,
           coalesce((
               SELECT jsonb_agg(shown ORDER BY position)
               FROM jsonb_array_elements(m.citations) WITH ORDINALITY AS stored (shown, position)
               WHERE EXISTS (SELECT FROM documents d
                             WHERE d.id = (shown ->> 'document_id')::uuid AND d.status <> 'binned')
           ), '[]') AS citations,
           ARRAY (
               SELECT (shown ->> 'number')::integer
               FROM jsonb_array_elements(m.citations) AS shown
               WHERE NOT EXISTS (SELECT FROM documents d
                             WHERE d.id = (shown ->> 'document_id')::uuid AND d.status <> 'binned')
               ORDER BY 1
           ) AS removed_sources,
           coalesce(h.status, '') AS help_status, coalesce(h.answer, '') AS help_answer,
           coalesce(nullif(rag_name_of(h.answered_by), ''), rag_address_of(h.answered_by), '') AS help_by,
           coalesce(h.answered_at, h.created_at) AS help_at
    FROM messages m
    JOIN conversations c ON c.id = m.conversation_id AND c.owner_id = %(account_id)s
    LEFT JOIN chat_logs l ON l.id = m.chat_log_id AND l.outcome IS NOT NULL
    LEFT JOIN feedback f ON f.chat_log_id = m.chat_log_id AND f.account_id = %(account_id)s
    LEFT JOIN help_requests h ON h.chat_log_id = m.chat_log_id AND h.account_id = %(account_id)s
    WHERE m.conversation_id = %(conversation_id)s
    ORDER BY m.created_at DESC, m.id DESC
    LIMIT %(last)s
) AS newest
ORDER BY created_at, id

-- rate_answer --
-- Store one rating per person and answer; rating again replaces it.
INSERT INTO feedback (tenant_id, chat_log_id, account_id, rating, comment, reason)
SELECT m.tenant_id, m.chat_log_id, c.account_id, %(rating)s, %(comment)s, %(reason)s
FROM messages m
JOIN conversations c ON c.id = m.conversation_id AND c.owner_id = %(account_id)s
WHERE m.id = %(message_id)s AND m.chat_log_id IS NOT NULL
ON CONFLICT (chat_log_id, account_id) DO UPDATE
    SET rating = excluded.rating, comment = excluded.comment, reason = excluded.reason, created_at = now()

-- lock_conversation --
-- Make two questions asked at once in one conversation take turns.
SELECT id FROM conversations
WHERE id = %(conversation_id)s AND owner_id = %(account_id)s
FOR UPDATE

-- touch_conversation --
-- Move it to the top of the list, and note where its latest question was asked.
UPDATE conversations SET updated_at = clock_timestamp(), asks_all = %(asks_all)s, narrowed_to = %(narrowed_to)s
WHERE id = %(conversation_id)s

-- has_streaming_answer --
-- Tell whether any process is writing an answer in a conversation.
SELECT EXISTS (SELECT FROM messages WHERE conversation_id = %(conversation_id)s AND state = 'streaming')

-- add_message --
-- Add a question, or the answer that is about to be written.
INSERT INTO messages (tenant_id, conversation_id, role, content, state, chat_log_id, limited_to)
VALUES (rag_tenant(), %(conversation_id)s, %(role)s, %(content)s, %(state)s, %(chat_log_id)s, %(limited_to)s::uuid[])
RETURNING id

-- flush_answers --
-- Write the text so far of answers being written, and how long they have run, which is also their sign of life.
-- Returns those still wanted: one that was stopped elsewhere, whose conversation was deleted, or whose tenant is
-- suspended, is not among them.
WITH given AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(texts)s::text[], %(elapsed_ms)s::integer[]) AS g (id, content, elapsed_ms)
), written AS (
    UPDATE messages m SET content = given.content
    FROM given
    WHERE m.id = given.id AND m.state = 'streaming'
      AND NOT EXISTS (SELECT FROM tenants WHERE suspended_at IS NOT NULL)
    RETURNING m.id, m.chat_log_id, given.elapsed_ms
), alive AS (
    UPDATE chat_logs l SET total_ms = written.elapsed_ms
    FROM written
    WHERE l.id = written.chat_log_id AND l.outcome IS NULL
)
SELECT id FROM written

-- finish_answer --
-- Store the answer as it ended.
UPDATE messages
SET content = %(content)s, state = %(state)s, notice = %(notice)s, citations = %(citations)s
WHERE id = %(message_id)s

-- stop_answer --
-- Ask the process that writes a person's answer to stop; it sees this when it next writes the text so far.
UPDATE messages m SET state = 'stopped'
FROM conversations c
WHERE m.id = %(message_id)s AND m.state = 'streaming' AND c.id = m.conversation_id AND c.owner_id = %(account_id)s

-- find_answer --
-- Read a stored answer, if it is this person's.
SELECT m.id, m.conversation_id, m.content, m.state, m.notice, m.citations, l.outcome,
       coalesce(l.question, '') AS question
FROM messages m
JOIN conversations c ON c.id = m.conversation_id AND c.owner_id = %(account_id)s
LEFT JOIN chat_logs l ON l.id = m.chat_log_id
WHERE m.id = %(message_id)s AND m.role = 'assistant'

-- find_active_answer --
-- Find the answer that is being written in a person's conversation.
SELECT m.id
FROM messages m
JOIN conversations c ON c.id = m.conversation_id AND c.owner_id = %(account_id)s
WHERE m.conversation_id = %(conversation_id)s AND m.state = 'streaming'
ORDER BY m.created_at DESC
LIMIT 1

-- open_chat_log --
-- Add the log of a question before anything is done for it. A program that asks has no account.
INSERT INTO chat_logs (
    id, tenant_id, account_id, user_group, conversation_id, collection_id, question, kind, limited_to
)
SELECT %(chat_log_id)s, rag_tenant(), (SELECT id FROM accounts WHERE id = %(account_id)s), %(user_group)s, %(conversation_id)s,
       %(collection_id)s, %(question)s, %(kind)s, %(limited_to)s::uuid[]

-- close_chat_log --
-- Store how a question ended. Its cost is the sum of its rows in the ledger.
UPDATE chat_logs l
SET outcome = %(outcome)s, answer = %(answer)s, error = %(error)s, language = %(language)s, model = %(model)s,
    document_ids = %(document_ids)s, rag_details = %(rag_details)s, first_token_ms = %(first_token_ms)s,
    total_ms = %(total_ms)s, has_unanswered = %(has_unanswered)s, cost = spent.cost, is_priced = spent.is_priced
FROM (
    SELECT coalesce(sum(cost), 0) AS cost, count(*) = count(cost) AS is_priced
    FROM cost_ledger
    WHERE chat_log_id = %(chat_log_id)s
) AS spent
WHERE l.id = %(chat_log_id)s
RETURNING l.cost, l.is_priced

-- keep_prompt --
-- Keep the messages sent for a question, as long as its text is kept.
INSERT INTO prompts (chat_log_id, tenant_id, messages, passages)
VALUES (%(chat_log_id)s, rag_tenant(), %(messages)s, %(passages)s)
ON CONFLICT (chat_log_id) DO UPDATE SET messages = excluded.messages, passages = excluded.passages

-- discard_search --
-- Remove the log of a search that cost nothing.
DELETE FROM chat_logs WHERE tenant_id = rag_tenant() AND id = %(chat_log_id)s AND kind = 'search'

-- close_abandoned --
-- Close what a dead process left: answers being written that have given no sign of life for a while, and their logs.
-- A row for each; null for an answer without a log.
WITH quiet AS MATERIALIZED (
    SELECT m.id, m.chat_log_id
    FROM messages m
    LEFT JOIN chat_logs l ON l.id = m.chat_log_id
    WHERE m.state = 'streaming'
      AND (%(conversation_id)s::uuid IS NULL OR m.conversation_id = %(conversation_id)s)
      AND greatest(m.created_at, l.created_at + coalesce(l.total_ms, 0) * interval '1 millisecond')
          <= clock_timestamp() - %(quiet_seconds)s * interval '1 second'
), cut AS (
    UPDATE messages m
    SET state = 'cut',
        notice = CASE WHEN m.content = '' THEN %(notice)s::text ELSE %(notice_with_text)s::text END
    FROM quiet
    WHERE m.id = quiet.id
    RETURNING m.id, m.chat_log_id
), closed AS (
    UPDATE chat_logs l
    SET outcome = CASE WHEN EXISTS (SELECT FROM messages m WHERE m.chat_log_id = l.id AND m.state = 'stopped')
                       THEN 'stopped' ELSE 'failed' END,
        error = %(notice)s,
        answer = coalesce((SELECT m.content FROM messages m WHERE m.chat_log_id = l.id), ''),
        cost = coalesce((SELECT sum(c.cost) FROM cost_ledger c WHERE c.chat_log_id = l.id), 0),
        is_priced = NOT EXISTS (SELECT FROM cost_ledger c WHERE c.chat_log_id = l.id AND c.cost IS NULL)
    WHERE l.outcome IS NULL
      AND (%(conversation_id)s::uuid IS NULL OR l.conversation_id = %(conversation_id)s)
      AND l.created_at + coalesce(l.total_ms, 0) * interval '1 millisecond'
          <= clock_timestamp() - CASE WHEN l.conversation_id IS NULL THEN %(quiet_seconds_of_programs)s
                                      ELSE %(quiet_seconds)s END * interval '1 second'
    RETURNING l.id
)
SELECT DISTINCT coalesce(closed.id, cut.chat_log_id)
FROM cut FULL JOIN closed ON closed.id = cut.chat_log_id

-- page_texts --
-- Read the text of some pages of one document.
SELECT text FROM document_pages
WHERE document_id = %(document_id)s AND number BETWEEN %(first_page)s AND %(last_page)s
ORDER BY number

-- passage_places --
-- Read the positions of chunks in their documents, with all headings of these documents, for chunks in which a section
-- begins.
SELECT c.id AS chunk_id, c.start_character AS start, c.end_character AS end, d.metadata -> 'sections' AS sections
FROM document_chunks c JOIN documents d ON d.id = c.document_id
WHERE c.tenant_id = rag_tenant() AND c.id = ANY (%(chunk_ids)s::uuid[]) AND jsonb_path_exists(
    d.metadata -> 'sections', '$[*] ? (@.start > $start && @.start < $end)',
    jsonb_build_object('start', c.start_character, 'end', c.end_character))

-- sheet_pages --
-- Read the pages of spreadsheets that chunks are on, in their order, with the places of their rows.
SELECT c.id AS chunk_id, p.text, d.metadata -> 'sheet_rows' -> p.number::text AS places
FROM document_chunks c JOIN documents d ON d.id = c.document_id
JOIN document_pages p ON p.document_id = d.id AND p.number BETWEEN c.first_page AND c.last_page
WHERE c.tenant_id = rag_tenant() AND c.id = ANY (%(chunk_ids)s::uuid[])
  AND d.metadata -> 'sheet_rows' ? p.number::text
ORDER BY c.id, p.number

-- own_query_details --
-- Read how a person's own question was understood before the search.
SELECT rag_details -> 'query' FROM chat_logs
WHERE tenant_id = rag_tenant() AND id = %(chat_log_id)s AND account_id = %(account_id)s
