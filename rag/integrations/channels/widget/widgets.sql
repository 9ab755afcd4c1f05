-- Collections that pages of other sites may ask, with a public key.

-- add_widget_key --
-- Add the key that a widget's questions belong to; nobody has its secret.
INSERT INTO api_keys (tenant_id, name, secret_hash, hint, scopes, requests_per_minute, is_operators, expires_at)
VALUES (rag_tenant(), %(name)s, decode(%(secret_hash)s, 'hex'), '', '{chat}', %(requests_per_minute)s, true,
        now() + interval '100 years')
RETURNING id

-- add_widget --
-- Keep a widget, off until somebody turns it on.
INSERT INTO widgets (tenant_id, api_key_id, collection_id, name, public_key, key_hash, sites)
SELECT rag_tenant(), %(api_key_id)s, id, %(name)s, %(public_key)s, decode(%(key_hash)s, 'hex'), %(sites)s
FROM collections WHERE id = %(collection_id)s AND cardinality(groups) = 0 AND binned_at IS NULL
RETURNING id

-- list_widgets --
-- List the tenant's widgets with what they were asked and cost, the oldest first.
SELECT w.id, w.tenant_id, w.api_key_id, w.collection_id, l.name AS collection_name, w.name, w.public_key, w.sites,
       w.is_active, w.has_page, w.title, w.greeting, k.requests_per_minute, w.questions_per_day, w.budget, w.created_at,
       (SELECT count(*) FROM conversations c JOIN chat_logs q ON q.conversation_id = c.id
        WHERE c.api_key_id = w.api_key_id AND q.created_at >= date_trunc('day', now(), (SELECT rag_zone()))) AS asked_today,
       (SELECT coalesce(sum(q.cost), 0) FROM conversations c JOIN chat_logs q ON q.conversation_id = c.id
        WHERE c.api_key_id = w.api_key_id AND q.created_at >= date_trunc('month', now(), (SELECT rag_zone()))) AS spent
FROM widgets w JOIN api_keys k ON k.id = w.api_key_id JOIN collections l ON l.id = w.collection_id
WHERE w.tenant_id = (SELECT rag_tenant()) AND l.binned_at IS NULL
  AND (%(widget_id)s::uuid IS NULL OR w.id = %(widget_id)s)
ORDER BY w.created_at, w.id

-- change_widget --
-- Change a widget; null leaves a field as it is.
UPDATE widgets SET
    name = coalesce(%(name)s, name), sites = coalesce(%(sites)s::text[], sites),
    is_active = coalesce(%(is_active)s, is_active), has_page = coalesce(%(has_page)s, has_page),
    title = coalesce(%(title)s, title), greeting = coalesce(%(greeting)s, greeting),
    questions_per_day = coalesce(%(questions_per_day)s, questions_per_day), budget = coalesce(%(budget)s, budget)
WHERE id = %(widget_id)s

-- change_widget_limit --
-- Set how many questions a minute a widget takes, from everybody together.
UPDATE api_keys SET requests_per_minute = %(requests_per_minute)s
WHERE id = (SELECT api_key_id FROM widgets WHERE id = %(widget_id)s)

-- remove_widget --
-- Remove a widget and stop its key; its questions stay in the log. Return it to put back.
WITH removed AS (DELETE FROM widgets WHERE id = %(widget_id)s RETURNING *), stopped AS (
    UPDATE api_keys SET revoked_at = now() FROM removed WHERE api_keys.id = removed.api_key_id
)
SELECT to_jsonb(removed)::text FROM removed

-- put_widget_back --
-- Keep a widget again, as it was, and let its key work, where everybody may still read its collection.
WITH kept AS (
    INSERT INTO widgets
    SELECT w.* FROM jsonb_populate_record(NULL::widgets, %(kept)s::jsonb) w JOIN collections c ON c.id = w.collection_id
    WHERE cardinality(c.groups) = 0 AND c.binned_at IS NULL
    RETURNING api_key_id
)
UPDATE api_keys SET revoked_at = NULL FROM kept WHERE api_keys.id = kept.api_key_id RETURNING api_keys.id

-- tenant_of_widget --
-- Find the tenant of a public key; needs its hash presented.
SELECT tenant_id FROM widgets WHERE key_hash = decode(%(key_hash)s, 'hex')

-- widget_of_key --
-- Read a widget that is on, by its public key.
SELECT w.id FROM widgets w JOIN api_keys k ON k.id = w.api_key_id AND k.revoked_at IS NULL
WHERE w.public_key = %(public_key)s AND w.is_active
  AND NOT EXISTS (SELECT FROM tenants WHERE suspended_at IS NOT NULL)

-- count_widget_question --
-- Count one question of a widget; the count stops one past the limit of a minute.
UPDATE api_keys k
SET last_used_at = now(),
    minute_started_at = CASE WHEN k.minute_started_at > now() - interval '1 minute' THEN k.minute_started_at
                             ELSE now() END,
    minute_requests = CASE WHEN k.minute_started_at > now() - interval '1 minute'
                           THEN least(k.minute_requests, k.requests_per_minute) + 1 ELSE 1 END
WHERE k.id = %(api_key_id)s
RETURNING k.minute_requests > k.requests_per_minute AS is_many,
          ceil(extract(epoch FROM k.minute_started_at + interval '1 minute' - now()))::integer AS wait_seconds

-- count_widget_day --
-- Count one question of this day, if the limit of the day leaves room for it: of several at once, as many as it leaves.
UPDATE widgets w
SET counted_on = t.today, counted = CASE WHEN w.counted_on = t.today THEN w.counted ELSE 0 END + 1
FROM (SELECT (now() AT TIME ZONE (SELECT rag_zone()))::date AS today) t
WHERE w.id = %(widget_id)s AND (w.counted_on IS DISTINCT FROM t.today OR w.counted < w.questions_per_day)
